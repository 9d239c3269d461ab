"""The offsets that a commit without arguments commits: after the last delivered record, wherever a seek has led."""

from collections.abc import Collection, Mapping
from typing import Final

from confluent_kafka import TopicPartition as KafkaPartition

from assignors.clients.log_offsets import Offset, OffsetWithMetadata
from assignors.planner.topics_and_members import TopicPartition


class StoredOffsets:
    """Tells positions after delivered records from those at which a partition began or was sought.

    Contract: as librdkafka's stored offsets. A seek changes none of them, and a begin stores none, until the next
    record of the partition is delivered. That record may be far from the offset that was sought: the log may have a
    gap there (compaction, retention), and the end of the log is not known exactly.

    Attributes:
        awaited: the partitions of which no record has been fetched since their begin or seek.
    """

    def __init__(self) -> None:
        self.awaited: Final[dict[TopicPartition, KafkaPartition]] = {}
        self._starts: dict[TopicPartition, tuple[int, Offset | None]] = {}  # without a record since, and stored before
        self._first: dict[TopicPartition, int] = {}

    def start(self, key: TopicPartition, offset: int, stored: Offset | None = None) -> None:
        """Record that a partition begins or continues at this offset, after this one was stored."""
        self._first.pop(key, None)
        self._starts[key] = offset, stored
        self.awaited[key] = KafkaPartition(*key)

    def fetched(self, first: Mapping[TopicPartition, int]) -> None:
        """Record the offsets of the first fetched records; they are not delivered yet."""
        for key in first.keys() & self.awaited.keys():
            self._first[key] = first[key]
            self.awaited.pop(key, None)

    def forget(self, partitions: Collection[TopicPartition]) -> None:
        """Forget partitions that are no longer read."""
        for key in partitions:
            for of_partition in (self._starts, self._first, self.awaited):
                of_partition.pop(key, None)

    def among(self, positions: Mapping[TopicPartition, Offset]) -> dict[TopicPartition, Offset]:
        """Return the positions after delivered records, and in place of the others what was stored before."""
        found = dict(positions)
        for key in list(self._starts):
            at = self.of(key, found.pop(key, None))
            if at is not None:
                found[key] = at
        return found

    def of(self, key: TopicPartition, position: Offset | None) -> Offset | None:
        """Return the position of one partition, or in its place what was stored before; None if there is neither."""
        if key not in self._starts:
            return position
        start, stored = self._starts[key]
        number = position.offset if isinstance(position, OffsetWithMetadata) else position
        if number is None or number == self._first.get(key, start):
            return stored
        self.forget([key])
        return position
