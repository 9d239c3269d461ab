"""The next offset of every partition assigned to this member, between two batches. Pure.

A position is valid only while the partition stays assigned without a break. After a break another member may have read
further, and only the table knows the position. The group's generation shows a break: it rises by one with each
rebalance, so a larger step means that this member missed a rebalance.
"""

from collections.abc import Mapping
from dataclasses import dataclass

from spark_sink.ranges.batch_ends_within_limits import Limit, waited
from spark_sink.ranges.batch_offset import Offset, Range, TopicPartition


@dataclass(frozen=True, slots=True, kw_only=True)
class Assignment:
    """The partitions that the group assigned to this member.

    Attributes:
        generation: generation of the group; -1 while this process is not a member.
        partitions: partitions assigned in that generation.
    """

    generation: int = -1
    partitions: frozenset[TopicPartition] = frozenset()


class AssignedPositions:
    """The assignment, and the next offset of each partition in it."""

    def __init__(self) -> None:
        self._assignment = Assignment()
        self._positions: dict[TopicPartition, int] = {}
        self._waits: dict[TopicPartition, int] = {}

    @property
    def assignment(self) -> Assignment:
        """The last assignment."""
        return self._assignment

    @property
    def positions(self) -> Mapping[TopicPartition, int]:
        """The next offset to read, by partition; batches contain every offset below it."""
        return self._positions

    def forget(self) -> None:
        """Drop the assignment and every position: another member may read the partitions from now on."""
        self._assignment = Assignment()
        self._positions = {}
        self._waits = {}

    def assign(self, assignment: Assignment) -> set[TopicPartition]:
        """Replace the assignment.

        Returns:
            Assigned partitions without a valid position; `seek` sets their positions.
        """
        missed = assignment.generation - self._assignment.generation not in {0, 1}
        kept = frozenset() if missed else assignment.partitions
        self._positions = {key: position for key, position in self._positions.items() if key in kept}
        self._assignment = assignment
        return set(assignment.partitions - self._positions.keys())

    def seek(self, positions: Mapping[TopicPartition, int]) -> None:
        """Set the positions of partitions; partitions that are not assigned are ignored."""
        self._positions.update({key: at for key, at in positions.items() if key in self._assignment.partitions})

    def backlog(self, ends: Mapping[TopicPartition, int]) -> dict[TopicPartition, int]:
        """Return the offsets between position and end of the log; a partition with an unknown end is left out."""
        return {key: max(ends[key] - at, 0) for key, at in self._positions.items() if key in ends}

    def next_offset(self, ends: Mapping[TopicPartition, int], limit: Limit) -> Offset | None:
        """Compute the offset of the next batch, and advance the positions to its end.

        Args:
            ends: exclusive end of each partition's log; the batch reads nothing of partitions that are missing here.
            limit: how far the batch may read.

        Returns:
            A range for each partition with a position, possibly empty. None if all ranges are empty: the reader then
            returns the previous offset to Spark, because Spark runs an empty batch for any other offset.
        """
        backlog = self.backlog(ends)
        granted = limit.admit(backlog, self._waits)
        if not any(granted.values()):
            return None
        self._waits = waited(self._waits, backlog, granted)
        generation = self._assignment.generation
        offset = Offset.of(Range(*key, at, at + granted.get(key, 0), generation) for key, at in self._positions.items())
        self._positions = offset.ends
        return offset
