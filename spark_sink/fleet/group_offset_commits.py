"""Commits a lane's positions to its group, for lag tools and the autoscaler; readers use the tables' positions."""

import logging
import time
from collections.abc import Callable, Mapping

from confluent_kafka import Consumer, KafkaException
from confluent_kafka import TopicPartition as KafkaPartition

from spark_sink.ranges.batch_offset import TopicPartition

log = logging.getLogger(__name__)

_AGAIN_S = 3600.0


class OffsetHints:
    """Commits offsets; used by the consumer's thread.

    Args:
        consumer: the lane's client.
        seated: whether the client assigns its partitions itself, and the group has no members. Brokers delete an
            offset of such a group some days after its last commit, so offsets of idle partitions are committed again.
        clock: seconds of a monotonic clock.
    """

    def __init__(self, consumer: Consumer, *, seated: bool, clock: Callable[[], float] = time.monotonic) -> None:
        self._consumer = consumer
        self._seated = seated
        self._clock = clock
        self._renewed = clock()

    def commit(self, offsets: Mapping[TopicPartition, int]) -> None:
        """Commit offsets; a refusal is ignored, such as that of a group that still has members."""
        if not offsets:
            return
        try:
            self._consumer.commit(offsets=[KafkaPartition(*key, at) for key, at in offsets.items()], asynchronous=True)
        except KafkaException as error:
            log.debug("fleet: offsets not committed: %s", error)

    def renew(self, positions: Mapping[TopicPartition, int]) -> None:
        """Commit these positions once an hour."""
        if self._seated and self._clock() - self._renewed >= _AGAIN_S:
            self._renewed = self._clock()
            self.commit(positions)
