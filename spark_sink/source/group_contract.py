"""What the reader needs of its group, as a Protocol: its decisions are tested without a broker."""

from collections.abc import Iterable, Mapping
from typing import Protocol

from spark_sink.ranges.assigned_positions import Assignment
from spark_sink.ranges.batch_offset import TopicPartition


class Membership(Protocol):
    """A member of a consumer group that fetches nothing.

    Contract:
    * Heartbeats go on between calls, in a thread of the implementation.
    * Answers about offsets leave out partitions without a leader (one is being elected), and such a partition raises
      no error.
    * After `leave` any other call joins again.
    """

    def assignment(self, timeout_s: float) -> Assignment:
        """The current assignment; while a join is under way, waits up to the timeout and then returns the last one."""
        ...

    def commit(self, positions: Mapping[TopicPartition, int]) -> bool:
        """Commit offsets; False when that is not possible now (a rebalance is under way)."""
        ...

    def committed(self, keys: Iterable[TopicPartition]) -> dict[TopicPartition, int]:
        """Offsets of the group; partitions without one are left out."""
        ...

    def beginnings(self, keys: Iterable[TopicPartition]) -> dict[TopicPartition, int]:
        """The first offset of each log."""
        ...

    def ends(self, keys: Iterable[TopicPartition]) -> dict[TopicPartition, int]:
        """The exclusive last offset of each log that may be read, which is before any open transaction."""
        ...

    def at_times(self, times_ms: Mapping[TopicPartition, int]) -> dict[TopicPartition, int | None]:
        """The first offset at or after a time; None where all records are earlier."""
        ...

    def subscribed(self) -> set[TopicPartition]:
        """Every partition of the subscribed topics, whichever member it is assigned to."""
        ...

    def identities(self, topics: Iterable[str]) -> dict[str, str]:
        """`<cluster id>/<topic id>` of topics; topics without an id or an answer are left out."""
        ...

    def leave(self) -> None:
        """Leave the group, so that others take over at once."""
        ...
