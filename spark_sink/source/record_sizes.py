"""Measures the mean size of a topic's records, which a limit in bytes needs: offsets do not show it."""

import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace

import pyarrow as pa
import structlog

from spark_sink.errors import SparkSinkError
from spark_sink.options.fetch_settings import FetchSettings
from spark_sink.ranges.batch_offset import Range, TopicPartition

Read = Callable[[Sequence[Range]], Iterable[pa.RecordBatch]]

_log = structlog.get_logger("azimuth.source")
_ASSUMED_BYTES = 1_000.0
_AGAIN_S = 60.0
_PARTITIONS, _RECORDS = 4, 50  # of a topic
_PATIENCE_S = 5.0


class RecordSizes:
    """Mean sizes by topic, measured from the records that the next batch begins with, and again every minute.

    Args:
        read: reads ranges of offsets.
        clock: seconds of a monotonic clock.
    """

    def __init__(self, read: Read, clock: Callable[[], float] = time.monotonic) -> None:
        self._read = read
        self._clock = clock
        self._bytes: dict[str, float] = {}
        self._measured_at: dict[str, float] = {}

    def look(self, positions: Mapping[TopicPartition, int], backlog: Mapping[TopicPartition, int]) -> dict[str, float]:
        """Return the mean bytes of keys and values by topic, for every topic with a backlog.

        Args:
            positions: the next offsets.
            backlog: offsets to read, by partition.
        """
        now = self._clock()
        topics = {key.topic for key, records in backlog.items() if records}
        due = {topic for topic in topics if now - self._measured_at.get(topic, -_AGAIN_S) >= _AGAIN_S}
        if due:
            self._measured_at |= dict.fromkeys(due, now)
            self._measure(_samples({key: at for key, at in positions.items() if key.topic in due}, backlog))
        return {topic: self._bytes.get(topic, _ASSUMED_BYTES) for topic in topics}

    def _measure(self, samples: Sequence[Range]) -> None:
        found: dict[str, list[int]] = {}
        try:
            for batch in self._read(samples):
                for topic, size in _sizes(batch):
                    found.setdefault(topic, []).append(size)
        except SparkSinkError as error:  # the tasks report what lasts
            _log.warning("sizes of records are unknown for now", reason=str(error))
        # A record has some bytes of overhead even if it is empty, and a size of 0 would be no limit.
        self._bytes |= {topic: max(1.0, sum(sizes) / len(sizes)) for topic, sizes in found.items()}


def reader(settings: FetchSettings) -> Read:
    """Return a function that reads ranges as a task does, but does not wait long."""

    def read(pieces: Sequence[Range]) -> Iterator[pa.RecordBatch]:
        # Imported here, because queries without a limit in bytes do not fetch in this process.
        from spark_sink.fetch.range_reader import fetch

        yield from fetch(pieces, replace(settings, fail_on_data_loss=False, poll_timeout_s=_PATIENCE_S))

    return read


def _samples(positions: Mapping[TopicPartition, int], backlog: Mapping[TopicPartition, int]) -> list[Range]:
    """Choose the first records of the partitions with the largest backlogs."""
    by_topic: dict[str, list[TopicPartition]] = {}
    for key in sorted(positions, key=lambda key: (-backlog.get(key, 0), key)):
        by_topic.setdefault(key.topic, []).append(key)
    chosen = [key for keys in by_topic.values() for key in keys[:_PARTITIONS] if backlog.get(key, 0)]
    return [Range(*key, positions[key], positions[key] + min(_RECORDS, backlog[key])) for key in chosen]


def _sizes(batch: pa.RecordBatch) -> Iterator[tuple[str, int]]:
    topics, keys, values = (batch.column(name).to_pylist() for name in ("topic", "key", "value"))
    for topic, key, value in zip(topics, keys, values, strict=True):
        yield topic, len(key or b"") + len(value or b"")
