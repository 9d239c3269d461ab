"""Where every held partition stands between two batches. Pure.

A position is only kept while the partition was held without a break: once another agent may have read on, the truth is
in the table. Breaks show in the group's generation: it rises by one at each rebalance, so two owners of consecutive
generations have nobody between them, and a larger step means that generations went by without us.
"""

from collections.abc import Mapping
from dataclasses import dataclass

from spark_sink.ranges.batch_limits import admit
from spark_sink.ranges.batch_offset import Offset, Range, TopicPartition


@dataclass(frozen=True, slots=True, kw_only=True)
class Holding:
    """What the group gave to this member.

    Attributes:
        generation: of the group; -1 while not a member.
        partitions: held in that generation.
    """

    generation: int = -1
    partitions: frozenset[TopicPartition] = frozenset()


class Cursors:
    """Positions of the partitions held, and the offset of the next batch."""

    def __init__(self) -> None:
        self._holding = Holding()
        self._positions: dict[TopicPartition, int] = {}

    @property
    def positions(self) -> Mapping[TopicPartition, int]:
        """The next offset to read, by partition; everything below has been handed to a batch."""
        return self._positions

    @property
    def holding(self) -> Holding:
        """What was held last."""
        return self._holding

    def forget(self) -> None:
        """Drop every position: the truth is elsewhere now."""
        self._holding = Holding()
        self._positions = {}

    def hold(self, holding: Holding) -> set[TopicPartition]:
        """Take over a new holding.

        Returns:
            Partitions whose position is not known here; `place` is to give it.
        """
        step = holding.generation - self._holding.generation
        unbroken = step in {0, 1}
        self._positions = {
            key: position for key, position in self._positions.items() if unbroken and key in holding.partitions
        }
        self._holding = holding
        return set(holding.partitions - self._positions.keys())

    def place(self, positions: Mapping[TopicPartition, int]) -> None:
        """Set the position of partitions that are held; others are passed over."""
        self._positions.update({key: at for key, at in positions.items() if key in self._holding.partitions})

    def backlog(self, ends: Mapping[TopicPartition, int]) -> dict[TopicPartition, int]:
        """Offsets between position and end of the log; partitions whose end is not known are left out."""
        return {key: max(ends[key] - at, 0) for key, at in self._positions.items() if key in ends}

    def next_offset(self, ends: Mapping[TopicPartition, int], limit: int | None) -> Offset | None:
        """Make the offset of the next batch and move behind it.

        Args:
            ends: exclusive end of each partition's log; partitions that are not in it read nothing this time.
            limit: offsets that the batch may read, None for all.

        Returns:
            The ranges of all partitions whose position is known, empty ones too; None when nothing is to be read:
            then the previous offset is to be returned, as any other one would make Spark run an empty batch.
        """
        granted = admit(self.backlog(ends), limit)
        if not sum(granted.values()):
            return None
        offset = Offset.of(
            Range(*key, at, at + granted.get(key, 0), self._holding.generation) for key, at in self._positions.items()
        )
        self._positions = offset.ends
        return offset
