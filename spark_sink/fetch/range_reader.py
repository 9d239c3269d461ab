"""Reading ranges of offsets in a Spark task: librdkafka in, Arrow record batches out.

The consumer outlives the task, because Spark keeps its Python workers: connecting and asking for metadata costs more
than a small batch. It is only handed on when a task ended well, with nothing assigned.
"""

import contextlib
import time
from collections.abc import Iterator, Mapping, Sequence

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
from confluent_kafka import Consumer, KafkaError, KafkaException
from confluent_kafka import TopicPartition as KafkaPartition

from spark_sink.errors import DataLossError, FetchError
from spark_sink.fetch.librdkafka import MESSAGE, NativeConsumer, error_text, topic_name
from spark_sink.fetch.memory_gather import Addresses, structs
from spark_sink.fetch.raw_columns import arrow_schema
from spark_sink.fetch.record_batches import record_batch
from spark_sink.kafka.client_properties import librdkafka_config
from spark_sink.options.fetch_settings import FetchSettings
from spark_sink.ranges.batch_offset import Range, TopicPartition
from spark_sink.ranges.task_progress import TaskProgress

_TUNED: dict[str, str | int | float | bool] = {
    # A new partition joins the fetch after the one that is out: waiting for records holds the others up.
    "fetch.wait.max.ms": 10,
    # librdkafka stops for this long (default 1000) whenever its queue is full.
    "fetch.queue.backoff.ms": 5,
    "queued.min.messages": 200_000,
    "queued.max.messages.kbytes": 131_072,
}
_SMALLEST_FETCH, _LARGEST_FETCH = 64 * 1024, 2_000_000
_RECORD_BYTES = 1_000  # a guess, for the size of a fetch only
_CHUNK = 50_000
_WAIT_S = 0.05
_DOUBT_S = 5.0
_STALE_LEADER_S, _BACKOFF_S = 30.0, 0.2


def consumer_config(kafka: Mapping[str, str], longest: int) -> dict[str, str | int | float | bool]:
    """The properties of a task's consumer.

    Args:
        kafka: client properties as given, Kafka's names.
        longest: offsets of the longest range; a fetch asks for little more than that, because what comes beyond the
            range is thrown away.

    Returns:
        librdkafka's properties; those given win over those tuned here.
    """
    fetch = _SMALLEST_FETCH
    while fetch < min(longest * _RECORD_BYTES, _LARGEST_FETCH):
        fetch *= 4
    return {
        **_TUNED,
        "fetch.message.max.bytes": min(fetch, _LARGEST_FETCH),
        **librdkafka_config(kafka),
        "enable.auto.commit": False,
        "enable.auto.offset.store": False,
        "enable.partition.eof": True,
        "auto.offset.reset": "error",
    }


_QUESTION_S = 10.0
_idle: dict[str, NativeConsumer] = {}  # of this process; Spark gives a Python worker one task at a time


def fetch(pieces: Sequence[Range], settings: FetchSettings) -> Iterator[pa.RecordBatch]:
    """Read ranges.

    Args:
        pieces: at most one range of each partition.
        settings: how.

    Yields:
        Record batches; within a partition offsets rise. Every record of the ranges is in exactly one of them.

    Raises:
        DataLossError: records of a range are gone and that is not allowed.
        FetchError: the broker refused, or nothing came for `poll_timeout_s`.
    """
    longest = max((one.records for one in pieces), default=0)
    if not longest:
        return
    config = consumer_config(settings.kafka, longest)
    key = repr(sorted(config.items()))
    consumer = _idle.pop(key, None) or NativeConsumer(config)
    whole = False
    try:
        yield from _Task(consumer, pieces, settings).batches()
        consumer.unassign()
        whole = True
    finally:
        if whole:
            _idle[key] = consumer
        else:
            consumer.close()


class _Task:
    """One pass through the ranges of a task."""

    def __init__(self, consumer: NativeConsumer, pieces: Sequence[Range], settings: FetchSettings) -> None:
        self._consumer = consumer
        self._progress = TaskProgress(pieces)
        self._settings = settings
        self._schema = arrow_schema(headers=settings.headers)

    def batches(self) -> Iterator[pa.RecordBatch]:
        self._consumer.assign(self._progress.left)
        heard = doubted = time.monotonic()
        while self._progress:
            with self._consumer.consume(min(_CHUNK, self._progress.offsets), _WAIT_S) as addresses:
                now = time.monotonic()
                if len(addresses):
                    heard = doubted = now
                    # Made while librdkafka holds the records, handed on when it no longer does.
                    made = list(self._take(addresses))
                else:
                    made = []
            yield from made
            if now - heard > self._settings.poll_timeout_s:
                raise FetchError(self._silence())
            if now - doubted > _DOUBT_S:
                self._look_for_deleted()
                doubted = time.monotonic()

    def _take(self, addresses: Addresses) -> Iterator[pa.RecordBatch]:
        records = structs(addresses, MESSAGE)
        failed = records["error"] != 0
        events = records[failed]
        if len(events):
            records, addresses = records[~failed], addresses[~failed]
        topics, inside = self._inside(records)
        if not inside.all():
            records, addresses, topics = records[inside], addresses[inside], topics.filter(pa.array(inside.tolist()))
        yield from self._made(records, addresses, topics)
        # After the records: the end of a log is told behind its last one.
        for one in events:
            key = TopicPartition(topic_name(int(one["topic"])), int(one["partition"]))
            self._hear(int(one["error"]), key, int(one["offset"]))

    def _made(self, records: npt.NDArray[np.void], addresses: Addresses, topics: pa.Array) -> Iterator[pa.RecordBatch]:
        """Make batches of `batch_bytes` each; a record that is larger has one of its own."""
        sizes = np.cumsum(records["value_bytes"] + records["key_bytes"])
        begin = 0
        while begin < len(records):
            before = int(sizes[begin - 1]) if begin else 0
            end = max(begin + 1, int(np.searchsorted(sizes, before + self._settings.batch_bytes, "right")))
            part = slice(begin, end)
            yield record_batch(records[part], addresses[part], topics[part], self._schema)
            begin = end

    def _inside(self, records: npt.NDArray[np.void]) -> tuple[pa.Array, npt.NDArray[np.bool_]]:
        """Find the topics' names and what lies in a range; ends ranges.

        Records come in long runs of one partition, so there is a Python step for each run and none for a record.
        """
        inside = np.ones(len(records), np.bool_)
        topic, partition, offset = records["topic"], records["partition"], records["offset"]
        changes = (topic[1:] != topic[:-1]) | (partition[1:] != partition[:-1])
        ends = [*(np.flatnonzero(changes) + 1).tolist(), len(records)] if len(records) else []
        names: list[str] = []
        passed: set[TopicPartition] = set()
        begin = 0
        for end in ends:
            key = TopicPartition(topic_name(int(topic[begin])), int(partition[begin]))
            names.append(key.topic)
            last = int(offset[end - 1])
            if last >= (limit := self._progress.end(key)):
                inside[begin:end] = offset[begin:end] < limit
                passed.add(key)
            self._progress.advance(key, last + 1)
            begin = end
        if passed and self._progress:
            # More of the log than the range came: stop asking for it.
            self._consumer.remove(Range(*key, 0, 0) for key in passed)
        runs = pa.RunEndEncodedArray.from_arrays(pa.array(ends, pa.int32()), pa.array(names, pa.string()))
        return pc.run_end_decode(runs), inside

    def _hear(self, code: int, key: TopicPartition, offset: int) -> None:
        if code == KafkaError._PARTITION_EOF:
            self._progress.advance(key, offset)
        elif code in {KafkaError._AUTO_OFFSET_RESET, KafkaError.OFFSET_OUT_OF_RANGE}:
            self._skip_lost(key)
        elif code in {KafkaError.UNKNOWN_TOPIC_OR_PART, KafkaError._UNKNOWN_PARTITION, KafkaError._UNKNOWN_TOPIC}:
            self._give_up_deleted(key)
        elif code not in _PASSING:
            raise FetchError(f"{key.topic}/{key.partition}: {error_text(code)}")

    def _look_for_deleted(self) -> None:
        """Ask for the topics of which nothing comes: librdkafka does not tell when one that is read is deleted."""
        with self._questions() as asked:
            for topic in {one.topic for one in self._progress.left}:
                try:
                    found = asked.list_topics(topic, timeout=5.0).topics[topic]
                except KafkaException:
                    continue
                gone = found.error is not None and found.error.code() == KafkaError.UNKNOWN_TOPIC_OR_PART
                for one in self._progress.left:
                    if one.topic == topic and (gone or (found.error is None and one.partition not in found.partitions)):
                        self._give_up_deleted(one.key)

    def _give_up_deleted(self, key: TopicPartition) -> None:
        if self._settings.fail_on_data_loss:
            raise DataLossError(f"{key.topic}/{key.partition}: deleted while offsets of it were to be read")
        self._progress.advance(key, self._progress.end(key))

    def _skip_lost(self, key: TopicPartition) -> None:
        """Go on after records that retention took, or say that they are gone."""
        lost = next((one for one in self._progress.left if one.key == key), None)
        if lost is None:
            return
        first, last = self._log(key, lost.begin)
        if first <= lost.begin <= last:
            self._resume(lost, lost.begin)
            return
        if self._settings.fail_on_data_loss:
            raise DataLossError(
                f"{key.topic}/{key.partition}: offset {lost.begin} is to be read, but the log holds [{first}, {last}): "
                "set failOnDataLoss=false to go on without what is gone"
            )
        if not self._progress.advance(key, first if lost.begin < first else lost.end):
            self._resume(lost, first)

    def _resume(self, one: Range, begin: int) -> None:
        # Not seek: librdkafka has stopped a partition that it found out of range.
        self._consumer.remove([one])
        self._consumer.add([one._replace(begin=begin)])

    def _log(self, key: TopicPartition, reach: int) -> tuple[int, int]:
        """Ask from where to where a log goes; its leader may be on its way to another broker.

        A broker that was cut off and has not heard of its successor answers as a leader, with an end that lies behind
        what was read from the successor. An end before `reach` is believed only when it stays so.
        """
        deadline = time.monotonic() + self._settings.poll_timeout_s
        believed = time.monotonic() + min(_STALE_LEADER_S, self._settings.poll_timeout_s)
        while True:
            # A client of its own each time: one that has once heard of no leader may go on saying so.
            with self._questions() as asked:
                try:
                    first, last = asked.get_watermark_offsets(KafkaPartition(*key), timeout=_QUESTION_S)
                except KafkaException as error:
                    if time.monotonic() > deadline:
                        place = f"{key.topic}/{key.partition}"
                        raise FetchError(f"{place}: its offsets cannot be asked for: {error}") from error
                else:
                    if last >= reach or time.monotonic() > believed:
                        return first, last
            time.sleep(_BACKOFF_S)

    @contextlib.contextmanager
    def _questions(self) -> Iterator[Consumer]:
        """A client for what is seldom asked."""
        config = librdkafka_config(self._settings.kafka) | {"group.id": "none", "enable.auto.commit": False}
        consumer = Consumer(config)
        try:
            yield consumer
        finally:
            consumer.close()

    def _silence(self) -> str:
        left = self._progress.left[0]
        return (
            f"{left.topic}/{left.partition}: offset {left.begin} of [{left.begin}, {left.end}) did not come within "
            f"{self._settings.poll_timeout_s:g} s ({len(self._progress.left)} ranges are open): is its leader alive?"
        )


# Told while librdkafka goes on by itself.
_PASSING = frozenset(
    {
        KafkaError._ALL_BROKERS_DOWN,
        KafkaError._TRANSPORT,
        KafkaError._RESOLVE,
        KafkaError._TIMED_OUT,
        KafkaError._MAX_POLL_EXCEEDED,
    }
)
