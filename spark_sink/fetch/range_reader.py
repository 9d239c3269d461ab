"""Reads ranges of offsets in a Spark task, with librdkafka, as Arrow record batches.

The connections outlive the task, because Spark keeps its Python workers, and because connecting and requesting metadata
costs more than a small batch. The next task gets them only if this task succeeded; a consumer has no assignment then.
"""

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cached_property
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import structlog
from confluent_kafka import KafkaError

from spark_sink.errors import DataLossError, FetchError
from spark_sink.fetch.consumer_properties import consumer_config
from spark_sink.fetch.from_leaders import known_leaders
from spark_sink.fetch.from_leaders.wire_format import WireError
from spark_sink.fetch.librdkafka import NativeConsumer, check_properties, error_text, topic_name
from spark_sink.fetch.librdkafka_symbols import Addresses
from spark_sink.fetch.log_requests import deleted, log_bounds
from spark_sink.fetch.message_copy import COMPILED
from spark_sink.fetch.message_copy import records as copied_records
from spark_sink.fetch.raw_columns import arrow_schema
from spark_sink.fetch.received_files import Counts, count_received, note_received
from spark_sink.fetch.record_batches import parts_by_bytes, record_batch, topic_column
from spark_sink.kafka.client_property_names import librdkafka_config
from spark_sink.options.fetch_settings import FetchSettings
from spark_sink.ranges.batch_offset import Range, TopicPartition
from spark_sink.ranges.range_completion import TaskProgress

if TYPE_CHECKING:
    from spark_sink.fetch.from_leaders.leader_fetching import LeaderFetching

_log = structlog.get_logger("azimuth.source")
_CHUNK = 50_000
_WAIT_S = 0.05
_SILENCE_S = 5.0


_idle: dict[str, NativeConsumer] = {}  # of this process; Spark gives a Python worker one task at a time


def fetch(
    pieces: Sequence[Range],
    settings: FetchSettings,
    identities: Mapping[str, str] | None = None,
    *,
    keep: bool = True,
) -> Iterator[pa.RecordBatch]:
    """Read ranges.

    Args:
        pieces: at most one range of each partition.
        settings: how to read them.
        identities: `<cluster id>/<topic id>` by topic at the time when the ranges were planned; compared after the
            last record. Topics without an identity are not compared.
        keep: keep connections and the consumer for the next task of this process.

    Yields:
        Record batches; offsets ascend within a partition. Every record of the ranges is in exactly one batch.

    Raises:
        DataLossError: records of a range are gone and `failOnDataLoss` is set, or a topic was recreated while it was
            read.
        FetchError: the broker refused, or no record arrived for `poll_timeout_s`.
    """
    longest = max((one.records for one in pieces), default=0)
    if not longest:
        return
    config = consumer_config(settings.kafka, longest)
    key = repr(sorted(config.items()))
    check_properties(config)  # a client is made only where it is needed
    task = _Task(lambda: _idle.pop(key, None) or NativeConsumer(config), pieces, settings, identities)
    whole = False
    try:
        yield from task.batches()
        whole = True
    finally:
        if settings.traffic is not None:
            note_received(settings.traffic, task.received)
        consumer = task.end(keep=whole and keep)
        if consumer is not None:
            _idle[key] = consumer


class _Run(NamedTuple):
    """Consecutive records of one partition: `[first, last]` are indexes into a batch from librdkafka."""

    key: TopicPartition
    first: int
    last: int


def _runs(records: npt.NDArray[np.void]) -> list[_Run]:
    """Find the runs: they are long, so a Python step for each run is cheap, unlike one for each record."""
    if not len(records):
        return []
    topic, partition = records["topic"], records["partition"]
    changes = (topic[1:] != topic[:-1]) | (partition[1:] != partition[:-1])
    firsts = [0, *(np.flatnonzero(changes) + 1).tolist()]
    lasts = [*(first - 1 for first in firsts[1:]), len(records) - 1]
    return [
        _Run(TopicPartition(topic_name(int(topic[first])), int(partition[first])), first, last)
        for first, last in zip(firsts, lasts, strict=True)
    ]


class _Task:
    """One pass through the ranges of a task."""

    def __init__(
        self,
        open_consumer: Callable[[], NativeConsumer],
        pieces: Sequence[Range],
        settings: FetchSettings,
        identities: Mapping[str, str] | None = None,
    ) -> None:
        self._open_consumer = open_consumer
        self._leaders: LeaderFetching | None = None
        self._properties = librdkafka_config(settings.kafka)
        self._kept_as = repr(sorted(self._properties.items()))
        self._learned = False
        self._progress = TaskProgress(pieces)
        self._settings = settings
        self._identities = {one.topic: (identities or {}).get(one.topic, "") for one in pieces}
        self.received: Counts = {}
        self._schema = arrow_schema(headers=settings.headers, timestamp_type=settings.timestamp_type)

    def batches(self) -> Iterator[pa.RecordBatch]:
        if self._settings.record_batches:
            yield from self._from_leaders()
        if self._progress:
            yield from self._from_librdkafka()
        self._check_identities()
        if (consumer := self._opened()) is not None:
            consumer.unassign()

    @cached_property
    def _consumer(self) -> NativeConsumer:
        """The consumer, opened at the first use: a task that reads from the leaders needs none."""
        return self._open_consumer()

    def _opened(self) -> NativeConsumer | None:
        return vars(self).get("_consumer")

    def end(self, *, keep: bool) -> NativeConsumer | None:
        """Leave what is known of the leaders to the next task, and return the consumer for it; or close both."""
        if self._leaders is not None and keep and self._learned:
            known_leaders.keep(self._kept_as, self._leaders.known)
        elif self._leaders is not None:
            self._leaders.known.close()
        consumer = self._opened()
        if consumer is None or keep:
            return consumer
        consumer.close()
        return None

    def _from_leaders(self) -> Iterator[pa.RecordBatch]:
        from spark_sink.fetch.from_leaders.plain_properties import plain  # noqa: PLC0415 -- few tasks need it

        properties = self._properties
        if not COMPILED or not plain(properties):
            return
        from spark_sink.fetch.from_leaders.leader_fetching import LeaderFetching  # noqa: PLC0415 -- compiled

        known = known_leaders.take(self._kept_as)
        size = self._settings.batch_bytes
        self._leaders = LeaderFetching(
            properties, self._progress, self._schema, size, self.received, known, self._planned_ids()
        )
        yield from self._leaders.batches()
        if self._leaders.refused_id:
            self._check_identities()  # before librdkafka waits for records of a topic that is gone

    def _from_librdkafka(self) -> Iterator[pa.RecordBatch]:
        self._consumer.assign(self._progress.left)
        received_at = checked_at = time.monotonic()
        while self._progress:
            with self._consumer.consume(min(_CHUNK, self._progress.offsets), _WAIT_S) as addresses:
                now = time.monotonic()
                if len(addresses):
                    received_at = checked_at = now
                # Batches are copied while librdkafka holds the records, and yielded after it has freed them.
                batches = list(self._take(addresses)) if len(addresses) else []
            yield from batches
            if now - received_at > self._settings.poll_timeout_s:
                raise FetchError(self._timeout_sentence())
            if now - checked_at > _SILENCE_S:
                self._find_deleted_topics()
                checked_at = time.monotonic()

    def _take(self, addresses: Addresses) -> Iterator[pa.RecordBatch]:
        records = copied_records(addresses)
        failed = records["error"] != 0
        events = records[failed]
        if len(events):
            records, addresses = records[~failed], addresses[~failed]
        if self._settings.traffic is not None:
            # Also the records beyond the ranges, which came from the brokers all the same.
            count_received(self.received, records, addresses, _runs(records))
        topics, wanted = self._select(records)
        if not wanted.all():
            records, addresses, topics = records[wanted], addresses[wanted], topics.filter(pa.array(wanted.tolist()))
        yield from self._copied(records, addresses, topics)
        # Events follow the records: librdkafka reports the end of a log after its last record.
        for one in events:
            key = TopicPartition(topic_name(int(one["topic"])), int(one["partition"]))
            self._handle_event(int(one["error"]), key, int(one["offset"]))

    def _copied(
        self, records: npt.NDArray[np.void], addresses: Addresses, topics: pa.Array
    ) -> Iterator[pa.RecordBatch]:
        """Build batches of `batch_bytes` each; a larger record gets its own batch."""
        for part in parts_by_bytes(records, self._settings.batch_bytes):
            yield record_batch(records[part], addresses[part], topics[part], self._schema)

    def _select(self, records: npt.NDArray[np.void]) -> tuple[pa.Array, npt.NDArray[np.bool_]]:
        """Select the records in the open ranges, and advance the ranges past them.

        Returns:
            The topic name of each record, and whether the task returns the record.
        """
        offset = records["offset"]
        wanted = np.ones(len(records), np.bool_)
        runs = _runs(records)
        passed: set[TopicPartition] = set()
        for key, first, last in runs:
            begin, end = self._progress.bounds(key)
            if offset[first] < begin or offset[last] >= end:
                part = slice(first, last + 1)
                wanted[part] = (offset[part] >= begin) & (offset[part] < end)
            if offset[last] >= end:
                passed.add(key)
            self._progress.advance(key, int(offset[last]) + 1)
        if passed and self._progress:
            # Records beyond the range arrived: stop fetching the partition.
            self._consumer.remove(Range(*key, 0, 0) for key in passed)
        ends, names = [run.last + 1 for run in runs], [run.key.topic for run in runs]
        return topic_column(names, ends), wanted

    def _handle_event(self, code: int, key: TopicPartition, offset: int) -> None:
        if code == KafkaError._PARTITION_EOF:
            self._progress.advance(key, offset)
        elif code in {KafkaError._AUTO_OFFSET_RESET, KafkaError.OFFSET_OUT_OF_RANGE}:
            self._recover_position(key)
        elif code in {KafkaError.UNKNOWN_TOPIC_OR_PART, KafkaError._UNKNOWN_PARTITION, KafkaError._UNKNOWN_TOPIC}:
            self._give_up_deleted(key)
        elif code not in _TRANSIENT:
            raise FetchError(f"{key.topic}/{key.partition}: {error_text(code)}")

    def _check_identities(self) -> None:
        """Compare the topic ids with those of the plan, after the last record: an id is never reused.

        A topic that is deleted and recreated between planning and reading has other records at the same offsets, and
        librdkafka reads by name. The batch then fails, and none of it is committed.
        """
        planned = self._planned_ids()
        if not planned:
            return
        for topic, identity in sorted(self._topic_ids(sorted(planned))):
            if identity != planned.get(topic, identity):
                raise DataLossError(
                    f"{topic}: the topic was deleted and recreated while it was read (id {planned[topic]} became "
                    f"{identity}), so its offsets mean other records now. Use a new group and table for it"
                )

    def _planned_ids(self) -> dict[str, str]:
        return {topic: one.partition("/")[2] for topic, one in self._identities.items() if one}

    def _topic_ids(self, topics: list[str]) -> set[tuple[str, str]]:
        if self._leaders is not None and self._leaders.whole:
            try:
                found = self._leaders.topic_ids()
            except (OSError, WireError) as error:
                _log.debug("librdkafka asks for the ids of topics", reason=str(error))
            else:
                self._learned = True
                return found
        return set(self._consumer.topic_ids(topics, self._settings.poll_timeout_s).items())

    def _find_deleted_topics(self) -> None:
        """Look up the topics whose records do not arrive: librdkafka does not report that a topic was deleted."""
        for key in deleted([one.key for one in self._progress.left], self._settings):
            self._give_up_deleted(key)

    def _give_up_deleted(self, key: TopicPartition) -> None:
        if self._settings.fail_on_data_loss:
            raise DataLossError(f"{key.topic}/{key.partition}: deleted while offsets of it were to be read")
        self._progress.advance(key, self._progress.bounds(key)[1])

    def _recover_position(self, key: TopicPartition) -> None:
        """Continue at a position that a leader calls out of range, or after the records that retention deleted.

        Raises:
            DataLossError: records of the range are gone, and `failOnDataLoss` is set.
        """
        begin, end = self._progress.bounds(key)
        if begin == end:
            return
        first, last = log_bounds(key, begin, self._settings)
        if not first <= begin <= last:
            if self._settings.fail_on_data_loss:
                raise DataLossError(
                    f"{key.topic}/{key.partition}: offset {begin} is to be read, but the log holds [{first}, {last}): "
                    "set failOnDataLoss=false to continue after the lost records"
                )
            # A log that ends before the range has no record of it, so the range is skipped.
            begin = first if begin < first else end
            if self._progress.advance(key, begin):
                return
        # A seek would not help: librdkafka has stopped a partition whose offset is out of range.
        self._consumer.remove([Range(*key, begin, end)])
        self._consumer.add([Range(*key, begin, end)])

    def _timeout_sentence(self) -> str:
        left = self._progress.left[0]
        return (
            f"{left.topic}/{left.partition}: offset {left.begin} of [{left.begin}, {left.end}) did not come within "
            f"{self._settings.poll_timeout_s:g} s ({len(self._progress.left)} ranges are open): is its leader alive?"
        )


# Errors that librdkafka reports and recovers from.
_TRANSIENT = frozenset(
    {
        KafkaError._ALL_BROKERS_DOWN,
        KafkaError._TRANSPORT,
        KafkaError._RESOLVE,
        KafkaError._TIMED_OUT,
        KafkaError._MAX_POLL_EXCEEDED,
    }
)
