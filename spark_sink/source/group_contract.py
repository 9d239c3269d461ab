"""What the reader requires of logs and of its group, as Protocols, so that its decisions need no broker in tests."""

from collections.abc import Callable, Iterable, Mapping
from typing import Protocol

from spark_sink.ranges.assigned_positions import Assignment
from spark_sink.ranges.batch_offset import TopicPartition


class Logs(Protocol):
    """The logs of the subscribed partitions.

    Contract: answers leave out partitions without a leader (one is being elected), without an error.
    """

    def beginnings(self, keys: Iterable[TopicPartition]) -> dict[TopicPartition, int]:
        """Return the first offset of each log."""
        ...

    def ends(self, keys: Iterable[TopicPartition]) -> dict[TopicPartition, int]:
        """Return the exclusive end of the readable part of each log, which is before any open transaction."""
        ...

    def at_times(self, times_ms: Mapping[TopicPartition, int]) -> dict[TopicPartition, int | None]:
        """Return the first offset at or after a time; None if all records are earlier."""
        ...

    def subscribed(self) -> set[TopicPartition]:
        """Return every partition of the subscribed topics, of any member."""
        ...


class Membership(Logs, Protocol):
    """A member of a consumer group, without fetching.

    Contract:
    * A thread of the implementation sends heartbeats between calls.
    * After `leave` any other call joins again.
    """

    def assignment(self, timeout_s: float) -> Assignment:
        """Return the assignment; during a join, wait at most for the timeout and then return the last one."""
        ...

    def commit(self, positions: Mapping[TopicPartition, int]) -> bool:
        """Commit offsets; return False if that is not possible now (a rebalance is in progress)."""
        ...

    def begin_commit(self, positions: Mapping[TopicPartition, int]) -> Callable[[], bool]:
        """Commit in the background; call the result once to wait for what `commit` would return."""
        ...

    def committed(self, keys: Iterable[TopicPartition]) -> dict[TopicPartition, int]:
        """Return offsets of the group; partitions without one are left out."""
        ...

    def identities(self, topics: Iterable[str]) -> dict[str, str]:
        """Return `<cluster id>/<topic id>` of topics; topics without an id or an answer are left out."""
        ...

    def leave(self) -> None:
        """Leave the group, so that others take over immediately."""
        ...
