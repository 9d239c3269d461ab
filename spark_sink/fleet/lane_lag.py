"""The lag of the topics of one lane, in records and in seconds."""

import time
from collections import Counter
from collections.abc import Callable, Mapping

from confluent_kafka import KafkaException

from spark_sink.ranges.batch_offset import TopicPartition
from spark_sink.ranges.lag_seconds import UnreadAges

Bounds = tuple[int, int]
"""The first offset of a log and the offset after the last one; negative if the client does not know it."""

_LAG_S = 1.0


def known_bounds(
    held: Mapping[TopicPartition, int | None], logs: Mapping[TopicPartition, Bounds]
) -> tuple[dict[TopicPartition, int], dict[TopicPartition, int]]:
    """Return positions and ends of the partitions that have both.

    Args:
        held: the next offset to read; None for the first of the log.
        logs: the bounds of the logs.
    """
    positions: dict[TopicPartition, int] = {}
    ends: dict[TopicPartition, int] = {}
    for key, at in held.items():
        low, high = logs.get(key, (-1, -1))
        if high >= 0 and (at is not None or low >= 0 or high == 0):
            positions[key], ends[key] = max(low, 0) if at is None else at, high
    return positions, ends


class LaneLag:
    """Measures the lag of a lane, at most once a second; used by the thread of the lane.

    Attributes:
        records: records not yet in the table by topic, without topics of unknown lag. Any thread may read it.
        seconds: the age of the oldest unread record by topic, as `records`.

    Args:
        bounds: returns the bounds of a log as the client last received them.
    """

    def __init__(self, bounds: Callable[[TopicPartition], Bounds]) -> None:
        self.records: Mapping[str, int] = {}
        self.seconds: Mapping[str, float] = {}
        self._bounds = bounds
        self._ages = UnreadAges()
        self._measured_at = -_LAG_S

    def due(self) -> bool:
        """Return whether the last measurement is older than a second."""
        return time.monotonic() - self._measured_at >= _LAG_S

    def written(self, key: TopicPartition, offset: int, at_s: float) -> None:
        """Note when a record was written, seconds since 1970."""
        self._ages.written(key, offset, at_s)

    def measure(self, held: Mapping[TopicPartition, int | None]) -> Mapping[TopicPartition, int]:
        """Measure the lag, and return the positions that are known.

        Args:
            held: the position in the table of each partition that is read; None for the first of the log.
        """
        logs: dict[TopicPartition, Bounds] = {}
        for key in held:
            try:
                logs[key] = self._bounds(key)
            except KafkaException:
                continue  # not held any more
        positions, ends = known_bounds(held, logs)
        found: Counter[str] = Counter()
        for key, end in ends.items():
            found[key.topic] += max(0, end - positions[key])
        self._ages.keep(held)
        ages = self._ages.look(positions, ends)
        # A sum without one of the partitions would look as if its records had been read.
        unknown = {key.topic for key in held.keys() - ends.keys()}
        self.records = {topic: records for topic, records in found.items() if topic not in unknown}
        self.seconds = {topic: seconds for topic, seconds in ages.items() if topic not in unknown}
        self._measured_at = time.monotonic()
        return positions
