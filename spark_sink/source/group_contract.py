"""What the reader asks of the group. A Protocol, so that the reader's decisions can be tested without a broker."""

from collections.abc import Iterable, Mapping
from typing import Protocol

from spark_sink.ranges.assigned_positions import Assignment
from spark_sink.ranges.batch_offset import TopicPartition


class Membership(Protocol):
    """A member of a consumer group that fetches nothing.

    Contract:
    * Heartbeats go on between calls, in a thread of the implementation.
    * Questions about offsets leave out partitions that cannot be answered at the moment (a leader is being elected)
      and do not raise for them.
    * After `leave` any other call joins again.
    """

    def assignment(self, timeout_s: float) -> Assignment:
        """What this member holds now; waits so long while a join is under way, and then answers with what was held."""
        ...

    def commit(self, positions: Mapping[TopicPartition, int]) -> bool:
        """Write offsets into the group; False when that is not possible now (a rebalance is under way)."""
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
        """The first offset at or after a time; None where no record is so late."""
        ...

    def subscribed(self) -> set[TopicPartition]:
        """Every partition of the topics subscribed to, whoever holds it."""
        ...

    def identities(self, topics: Iterable[str]) -> dict[str, str]:
        """`<cluster id>/<topic id>` of topics; those that the brokers do not tell are left out."""
        ...

    def leave(self) -> None:
        """Leave the group, so that others take over at once."""
        ...
