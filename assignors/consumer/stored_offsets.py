"""The offsets that a commit without arguments commits: after the last delivered record, even if a seek has followed."""

from collections.abc import Callable, Collection, Mapping

from confluent_kafka import OFFSET_BEGINNING, OFFSET_INVALID

from assignors.clients.log_offsets import Offset, OffsetWithMetadata
from assignors.consumer.logical_offsets import TAIL
from assignors.planner.topics_and_members import TopicPartition

Watermarks = Callable[[TopicPartition], tuple[int, int]]
"""Returns the first offset of a log and its end as far as known without a request, negative if unknown."""


class StoredOffsets:
    """Distinguishes positions after delivered records from those at which a partition began or was sought.

    Contract: as librdkafka's stored offsets. A seek changes none of them, and the start of a partition stores none,
    until the next record of the partition is delivered.

    Args:
        watermarks: of a partition that is read.
        returned: the offset after the last record of a partition that librdkafka has returned since it began or was
            sought; negative without one.
    """

    def __init__(self, watermarks: Watermarks, returned: Callable[[TopicPartition], int]) -> None:
        self._watermarks = watermarks
        self._returned = returned
        self._starts: dict[TopicPartition, tuple[int, Offset | None]] = {}  # without a record since, and stored before

    def start(self, key: TopicPartition, offset: int, stored: Offset | None = None) -> None:
        """Record that a partition begins or continues at this offset, after this one was stored."""
        # Where OFFSET_INVALID begins, auto.offset.reset says, and librdkafka has no position there before a record.
        if offset < 0 and offset not in {OFFSET_BEGINNING, OFFSET_INVALID} and stored is not None:
            first, end = self._watermarks(key)  # known now, and not when a record has come
            before_end = max(0, TAIL - offset)  # 0 of OFFSET_END
            offset = max(end - before_end, first) if end >= 0 else offset
        self._starts[key] = offset, stored

    def forget(self, partitions: Collection[TopicPartition]) -> None:
        """Forget partitions that are no longer read."""
        for key in partitions:
            self._starts.pop(key, None)

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
        if self.waits(key, position):
            return self._starts[key][1]
        del self._starts[key]
        return position

    def waits(self, key: TopicPartition, position: Offset | None) -> bool:
        """Return whether no record of this partition was delivered since it began or was sought."""
        if key not in self._starts:
            return False
        if position is None:
            return True
        start, at = self._number(key, self._starts[key][0]), OffsetWithMetadata.of(position).offset
        # An offset beyond the end is reached later, by the records after the one that auto.offset.reset began with.
        return at == start != self._returned(key)

    def _number(self, key: TopicPartition, start: int) -> int:
        return self._watermarks(key)[0] if start == OFFSET_BEGINNING else start
