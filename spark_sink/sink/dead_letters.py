"""Publishes the records of quarantines to a Kafka topic, each once.

The quarantine of a table decides: a record is published after its commit. One Kafka transaction has some records and
the next offset of each of their partitions, which goes to a compacted topic. So a publisher that was killed continues
where it stopped, and consumers with `isolation.level=read_committed` see each record once.

A quarantine takes the records of a partition in the order of their offsets. So one offset a partition is enough.
"""

import contextlib
import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import reduce
from operator import or_
from typing import Any, Final, NamedTuple, Self

import pyarrow as pa
import pyarrow.compute as pc
from confluent_kafka import KafkaError, KafkaException, Producer
from deltalake import DeltaTable
from deltalake.exceptions import DeltaError

from assignors.clients import CompactedFeed, TableTopic, make_compacted_topic
from assignors.errors import AssignorError
from spark_sink.errors import DeadLetterError, TableError, plain
from spark_sink.formats.quarantined_rows import SCHEMA, python_rows, quarantine_of
from spark_sink.lake.table_storage import Storage, table_uri
from spark_sink.ranges.batch_offset import TopicPartition
from spark_sink.sink.quarantine_listing import lowest

PROGRESS: Final = "__azimuth_dead_letters"
"""The compacted topic of the next offsets to publish, on the cluster of the dead letters."""
_CONNECT: Final = "__connect.errors."
_PART: Final = 10_000
_PART_BYTES: Final = 64 << 20
_ROWS: Final = 8192
_FILTERED: Final = 256
_TIMEOUT_S: Final = 60.0
_LARGEST: Final = 1_000_000_000  # librdkafka's own bound, in bytes
_TOO_LARGE: Final = ": raise the topic's `max.message.bytes` and run the command again"
_STAGE: Final = "VALUE_CONVERTER"

Headers = list[tuple[str, str | bytes | None]]


class Published(NamedTuple):
    """What a next offset belongs to."""

    topic: str
    """The topic of the dead letters."""
    table: str
    """Id of the quarantine, which stays when the table moves."""
    key: TopicPartition
    """The source."""


def encode_key(name: Published) -> bytes:
    """Write the key of a next offset; no part has a slash."""
    return "/".join((name.topic, name.table, name.key.topic, str(name.key.partition))).encode()


def decode_key(key: bytes | None) -> Published | None:
    """Read a key; None for a foreign one."""
    try:
        topic, table, source, partition = (key or b"").decode().split("/")
        return Published(topic, table, TopicPartition(source, int(partition)))
    except ValueError:  # also a UnicodeDecodeError
        return None


def decode(value: bytes | None) -> int | None:
    """Read a next offset; None for a foreign value."""
    try:
        found = json.loads(value or b"null")
    except (ValueError, RecursionError):
        return None
    at = found.get("next") if isinstance(found, Mapping) and found.get("v") == 1 else None
    return at if isinstance(at, int) and not isinstance(at, bool) and at >= 0 else None


_HELD: Final = TableTopic(
    noun="dead-letters topic",
    client="quarantine",
    key=decode_key,
    record=decode,
    failure=AssignorError,
    refusal=AssignorError,
    transactions=True,
)


def headers(row: Mapping[str, Any], group: str) -> Headers:
    """Return the headers of a dead letter: those of the record, then the reason under the names of Kafka Connect.

    All values are texts, as Connect's are. Connect has no name for the time of the record.

    Args:
        row: a row of a quarantine, with times as microseconds since 1970.
        group: the consumer group that read the record.
    """
    found: Headers = [(one["key"], one["value"]) for one in row["headers"] or ()]
    stamp = row["timestamp"]
    texts = {
        f"{_CONNECT}topic": row["topic"],
        f"{_CONNECT}partition": row["partition"],
        f"{_CONNECT}offset": row["offset"],
        f"{_CONNECT}connector.name": group,
        f"{_CONNECT}stage": _STAGE,
        f"{_CONNECT}exception.class.name": row["error_class"],
        f"{_CONNECT}exception.message": row["error_text"],
        "__azimuth.errors.timestamp.ms": None if stamp is None else stamp // 1000,
        "__azimuth.errors.schema.id": row["schema_id"],
    }
    return found + [(name, str(value).encode()) for name, value in texts.items() if value is not None]


@dataclass(frozen=True, slots=True, kw_only=True)
class Quarantine:
    """One version of a quarantine.

    Attributes:
        id: of the Delta table.
        version: of the Delta table.
        name: its address.
        handle: reads it.
    """

    id: str
    version: int
    name: str
    handle: DeltaTable

    @classmethod
    def of(cls, table: str, storage: Storage | None = None) -> Self | None:
        """Open the quarantine of a table at its newest version; None if there is none.

        Raises:
            TableError: it cannot be read.
        """
        address, options = quarantine_of(table_uri(table)), dict(storage or {}) or None
        try:
            if not DeltaTable.is_deltatable(address, options):
                return None
            handle = DeltaTable(address, storage_options=options)
            return cls(id=str(handle.metadata().id), version=handle.version(), name=address, handle=handle)
        except (DeltaError, OSError) as error:
            raise TableError(f"{address}: the quarantine cannot be read: {plain(error)}") from error

    def above(self, done: Mapping[TopicPartition, int]) -> Iterator[pa.Table]:
        """Read the records that are not published yet, in parts and in no particular order.

        Args:
            done: the next offset to publish, by partition; partitions without one begin at their first record.

        Raises:
            TableError: it cannot be read.
        """
        try:
            batches = self.handle.to_pyarrow_dataset().to_batches(
                columns=SCHEMA.names, filter=_above(done), batch_size=_ROWS, batch_readahead=2, fragment_readahead=1
            )
            for batch in batches:
                rows = _unpublished(pa.Table.from_batches([batch]).cast(SCHEMA), done)
                if rows.num_rows:
                    yield rows
        except (DeltaError, OSError, pa.ArrowException) as error:
            raise TableError(f"{self.name}: the quarantine cannot be read: {plain(error)}") from error


def _above(done: Mapping[TopicPartition, int]) -> pc.Expression | None:
    """Return a filter that skips whole files; None for many partitions: thousands overflow the stack of Arrow."""
    if not 0 < len(done) <= _FILTERED:
        return None
    old = [
        (pc.field("topic") == key.topic) & (pc.field("partition") == key.partition) & (pc.field("offset") < at)
        for key, at in done.items()
    ]
    return ~reduce(or_, old)


def _unpublished(rows: pa.Table, done: Mapping[TopicPartition, int]) -> pa.Table:
    if len(done) <= _FILTERED:
        return rows  # filtered already
    places = zip(*(rows.column(name).to_pylist() for name in ("topic", "partition", "offset")), strict=True)
    return rows.filter(pa.array([at >= done.get(TopicPartition(topic, n), 0) for topic, n, at in places], pa.bool_()))


def next_offsets(rows: Iterable[Mapping[str, Any]]) -> dict[TopicPartition, int]:
    """Return the next offset of each partition after these rows."""
    found: dict[TopicPartition, int] = {}
    for row in rows:
        key = TopicPartition(row["topic"], row["partition"])
        found[key] = max(found.get(key, 0), row["offset"] + 1)
    return found


class DeadLetters:
    """Publishes quarantines to one topic. Of several publishers of a topic the last one started continues.

    Args:
        kafka: librdkafka's properties, at least `bootstrap.servers`.
        topic: the topic of the dead letters.
        group: the consumer group that read the records.

    Raises:
        DeadLetterError: a property is invalid, no broker answers, or there is no such topic.
    """

    def __init__(self, kafka: Mapping[str, Any], topic: str, group: str) -> None:
        self._topic = topic
        self._group = group
        self._failures: list[str] = []
        # The topic decides how large a record may be: a dead letter is larger than its record.
        largest = {} if "message.max.bytes" in kafka else {"message.max.bytes": _LARGEST}
        config = {
            **kafka,
            **largest,
            "transactional.id": f"azimuth.dead-letters.{topic}.{group}",
            "enable.idempotence": True,
        }
        with _failing(topic):
            self._producer = _HELD.made(Producer, config)
            if self._producer.list_topics(topic, timeout=_TIMEOUT_S).topics[topic].error is not None:
                raise DeadLetterError(
                    f"there is no topic {topic!r} on {kafka['bootstrap.servers']}, or this user may not describe it: "
                    "create it first"
                )
            make_compacted_topic(kafka, PROGRESS, _HELD)
            # Ends the transaction of a publisher that was killed, so that the next offsets are complete.
            self._producer.init_transactions(_TIMEOUT_S)
            with CompactedFeed(kafka, PROGRESS, _HELD) as feed:
                feed.refresh(_TIMEOUT_S, to_end=True)
                self._done = {name: at for name, at in feed.records.items() if name.topic == topic}

    def publish(self, found: Quarantine) -> int:
        """Publish the records of a quarantine that are not published yet, and return their number.

        Raises:
            DeadLetterError: they cannot be published; the next attempt continues.
            TableError: the quarantine cannot be read.
        """
        records = 0
        while True:
            done = {name.key: at for name, at in self._done.items() if name.table == found.id}
            part = lowest(found.above(done), {}, _PART, _PART_BYTES)
            if part is None or not part.num_rows:
                return records
            rows = python_rows(part)
            ends = {Published(self._topic, found.id, key): at for key, at in next_offsets(rows).items()}
            with _failing(self._topic):
                self._send(rows, ends)
            self._done |= ends
            records += len(rows)

    def _send(self, rows: Sequence[Mapping[str, Any]], ends: Mapping[Published, int]) -> None:
        """Write records and their next offsets in one transaction."""
        self._failures.clear()
        self._producer.begin_transaction()
        try:
            for row in rows:
                place = f"{row['topic']}/{row['partition']} offset {row['offset']}"
                self._produce(place, self._topic, row["value"], row["key"], headers(row, self._group))
            for name, at in ends.items():
                value = json.dumps({"v": 1, "next": at}, separators=(",", ":")).encode()
                self._produce("a next offset", PROGRESS, value, encode_key(name), [])
            self._flush()
            self._producer.commit_transaction(_TIMEOUT_S)
        except (KafkaException, DeadLetterError):
            with contextlib.suppress(KafkaException):  # a fenced publisher has nothing to abort
                self._producer.abort_transaction(_TIMEOUT_S)
            raise

    def _flush(self) -> None:
        left = self._producer.flush(_TIMEOUT_S)
        if left or self._failures:
            why = self._failures[0] if self._failures else f"{left} records have no answer in {_TIMEOUT_S:g} s"
            raise DeadLetterError(f"topic {self._topic!r}: {why}")

    def _produce(self, place: str, topic: str, value: bytes | None, key: bytes | None, of: Headers) -> None:
        def delivered(error: KafkaError | None, _: object) -> None:
            if error is not None:
                way_out = _TOO_LARGE if error.code() == KafkaError.MSG_SIZE_TOO_LARGE else ""
                self._failures.append(f"{place}: {error.str()}{way_out}")

        while True:
            try:
                self._producer.produce(topic, value, key, headers=of, on_delivery=delivered)
            except BufferError:  # its queue is full
                self._producer.poll(1.0)
            except KafkaException as error:
                raise DeadLetterError(f"topic {topic!r}: {place}: {error.args[0].str()}") from error
            else:
                self._producer.poll(0)
                return


class Publisher:
    """Publishes the quarantines of tables to one topic, those of each consumer group by a client of its own.

    Args:
        kafka: librdkafka's properties, at least `bootstrap.servers`.
        topic: the topic of the dead letters.
    """

    def __init__(self, kafka: Mapping[str, Any], topic: str) -> None:
        self._kafka = kafka
        self._topic = topic
        self._letters: dict[str, DeadLetters] = {}
        self._versions: dict[str, int] = {}

    def publish(self, table: str, group: str, storage: Storage | None = None) -> int:
        """Publish the records in the quarantine of a table that are not published yet, and return their number.

        Args:
            table: address of the table.
            group: the consumer group that wrote it.
            storage: options of the object store.

        Raises:
            DeadLetterError: they cannot be published; the next call continues.
            TableError: the quarantine cannot be read.
        """
        found = Quarantine.of(table, storage)
        if found is None or self._versions.get(found.id) == found.version:
            return 0
        if group not in self._letters:
            self._letters[group] = DeadLetters(self._kafka, self._topic, group)
        try:
            records = self._letters[group].publish(found)
        except DeadLetterError:
            del self._letters[group]  # the client may be unusable
            raise
        self._versions[found.id] = found.version
        return records


@contextlib.contextmanager
def _failing(topic: str) -> Iterator[None]:
    try:
        yield
    except AssignorError as error:
        raise DeadLetterError(str(error)) from error
    except KafkaException as error:
        code = error.args[0]
        if code.code() in {KafkaError._FENCED, KafkaError.INVALID_PRODUCER_EPOCH}:  # noqa: SLF001 -- its name begins so
            raise DeadLetterError(f"topic {topic!r}: another publisher of this topic and group has started") from error
        raise DeadLetterError(f"topic {topic!r}: {code.str()}") from error
