"""A compacted topic as a table: reads the current value of each key, and writes values."""

import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Generic, NoReturn, Self, TypeVar

from confluent_kafka import OFFSET_BEGINNING, Consumer, KafkaError, KafkaException, Producer
from confluent_kafka import TopicPartition as KafkaPartition
from confluent_kafka.admin import AdminClient, NewTopic  # type: ignore[attr-defined]  # its stub has no __all__

from assignors.clients.client_creation import Client, made
from assignors.clients.silent_brokers import leaving_silent_brokers
from assignors.errors import AssignorError

Key = TypeVar("Key")
Record = TypeVar("Record")

_TIMEOUT_S = 15.0
_REPLICAS = 3
_PAUSE_S = 0.1
_NO_LEADER_YET = frozenset(
    {KafkaError.UNKNOWN_TOPIC_OR_PART, KafkaError.LEADER_NOT_AVAILABLE, KafkaError.NOT_LEADER_FOR_PARTITION}
)
_GONE_S = 10.0
"""A topic that no answer lists for this long is deleted: a broker that has just started lists too few."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TableTopic(Generic[Key, Record]):
    """What a compacted topic holds.

    Attributes:
        noun: what messages call the topic.
        client: end of the `client.id` of its clients, unless the user sets one.
        key: reads a key; None for a foreign one, which is ignored.
        record: reads a value; None for a foreign one, which is ignored.
        failure: raised if the topic cannot be read or written.
        refusal: raised if librdkafka refuses a property.
        transactions: whether it is written in transactions. Then its end is behind those that are still open, also of
            other writers: a record that was committed behind an open one is not visible before.
    """

    noun: str
    client: str
    key: Callable[[bytes | None], Key | None]
    record: Callable[[bytes | None], Record | None]
    failure: type[AssignorError]
    refusal: type[AssignorError]
    transactions: bool = False

    def made(self, kind: Callable[[dict[str, Any]], Client], kafka: Mapping[str, Any]) -> Client:
        """Create a client; it connects later.

        Raises:
            AssignorError: the class `refusal`: a property that librdkafka does not know, or a value that it refuses.
        """
        return made(kind, {**leaving_silent_brokers(kafka), "log_level": 2}, client=self.client, refusal=self.refusal)


class CompactedFeed(Generic[Key, Record]):
    """The current records, read without a consumer group.

    Contract:
    * `refresh` reads new records and returns whether one changed; the first call reads the topic to its end.
    * A topic that does not exist yet has no records: the next `refresh` looks it up again.
    * Records of a deleted topic are dropped even if it is recreated, because a later reader would not have them. A new
      log that is as long as the old one when it is first read is taken for the old one.
    * Used by one thread. It never writes and never commits.

    Args:
        kafka: librdkafka's properties, at least `bootstrap.servers`.
        topic: its name.
        held: what it holds.
    """

    def __init__(self, kafka: Mapping[str, Any], topic: str, held: TableTopic[Key, Record]) -> None:
        self._topic = topic
        self._held = held
        self._brokers = kafka.get("bootstrap.servers")
        config = {
            **kafka,
            # Required by librdkafka; the client never joins or commits.
            "group.id": f"azimuth.{held.noun.split()[0]}.reader",
            "enable.auto.commit": False,
            "enable.partition.eof": True,
            "auto.offset.reset": "earliest",  # where the topic was made again
            "isolation.level": "read_committed",
        }
        self._consumer = held.made(Consumer, config)
        # Asked by the reader itself, brokers answer with the first open transaction as the end.
        self._asking = self._consumer
        if held.transactions:
            self._asking = held.made(Consumer, {**config, "isolation.level": "read_uncommitted"})
        self._read_to: dict[int, int] = {}
        self._targets: dict[int, int] = {}
        self._assigned = 0
        self._again = False  # whether the topic is being read from its beginning once more
        self._unlisted: float | None = None  # since when, by a monotonic clock
        self.cluster = ""
        """Id of the cluster that has the topic, known after a `refresh`."""
        self.records: dict[Key, Record] = {}
        self.refused = False
        """Whether the brokers refuse the topic to this user, known after a `refresh`; it has no records then."""
        self.deleted = False
        """Whether there was such a topic, and there is none now, known after a `refresh`."""

    def refresh(self, timeout_s: float = 5.0, *, to_end: bool = False) -> bool:
        """Read new records.

        Args:
            timeout_s: longest wait for the end of the topic; records read until then count.
            to_end: read up to the current end of the topic, which costs a request; else only already fetched records.

        Raises:
            AssignorError: the class `failure`: no broker answers; or, with `to_end`, the end was not reached in time.
        """
        before = dict(self.records)
        self._follow_partitions(timeout_s)
        if to_end and self._unlisted is not None:
            self._fail("the brokers list no such topic; it was there before")
        if to_end:
            self._aim(timeout_s)
        while self._assigned:
            message = self._consumer.poll(timeout_s if self._behind else 0.0)
            if message is None:
                break
            self._take(message, timeout_s)
        if (to_end or self._again) and self._behind:
            self._fail(f"not read to its end in {timeout_s:g} s")
        self._again = False
        return self.records != before

    def _aim(self, timeout_s: float) -> None:
        """Read up to the current ends, from the beginning if one is before what was read."""
        ends = self._ends(range(self._assigned), timeout_s)
        if any(end < self._read_to.get(one, 0) for one, end in ends.items()):
            self._read_again(timeout_s)
        else:
            self._targets |= ends

    def _take(self, message: Any, timeout_s: float) -> None:  # noqa: ANN401 -- confluent-kafka's own
        error, partition, offset = message.error(), message.partition() or 0, message.offset() or 0
        if error is not None and error.code() != KafkaError._PARTITION_EOF:  # noqa: SLF001 -- its name begins so
            return
        if offset < self._read_to.get(partition, 0):
            self._read_again(timeout_s)
            return
        if error is None:
            self._apply(message.key(), message.value())
        self._read_to[partition] = offset + (error is None)

    def _read_again(self, timeout_s: float) -> None:
        """Start at the first record, because the log has gone back: the topic was deleted and created again."""
        count = self._assigned
        self._forget()
        self._again = True  # even if the ends are not known yet: until then the records are not those of the topic
        self._targets = self._ends(range(count), timeout_s)
        self._assign(range(count))
        self._assigned = count

    def _forget(self) -> None:
        self._consumer.incremental_unassign([KafkaPartition(self._topic, n) for n in range(self._assigned)])
        self._assigned = 0
        self._read_to, self._targets, self.records = {}, {}, {}

    def _assign(self, partitions: Iterable[int]) -> None:
        self._consumer.incremental_assign([KafkaPartition(self._topic, n, OFFSET_BEGINNING) for n in partitions])

    def close(self) -> None:
        """Close the client."""
        self._consumer.close()
        if self._asking is not self._consumer:
            self._asking.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    @property
    def _behind(self) -> bool:
        return any(self._read_to.get(one, -1) < end for one, end in self._targets.items())

    def _ends(self, partitions: Iterable[int], timeout_s: float) -> dict[int, int]:
        until = time.monotonic() + timeout_s
        return {one: self._end(one, timeout_s, until) for one in partitions}

    def _end(self, partition: int, timeout_s: float, until: float) -> int:
        """Return the end of a partition; asks again until the brokers agree about the leader of a new topic."""
        while True:
            try:
                return self._asking.get_watermark_offsets(KafkaPartition(self._topic, partition), timeout=timeout_s)[1]
            except KafkaException as error:
                if error.args[0].code() not in _NO_LEADER_YET or time.monotonic() + _PAUSE_S > until:
                    self._fail(f"its end cannot be asked for at {self._brokers} ({error.args[0].str()})", error)
            time.sleep(_PAUSE_S)

    def _follow_partitions(self, timeout_s: float) -> None:
        try:
            metadata = self._consumer.list_topics(self._topic, timeout=timeout_s)
        except KafkaException as error:
            self._fail(f"no broker answers at {self._brokers} ({error.args[0].str()})", error)
        found = metadata.topics[self._topic]
        self.cluster = metadata.cluster_id or ""
        self.refused = found.error is not None and found.error.code() == KafkaError.TOPIC_AUTHORIZATION_FAILED
        count = 0 if found.error else len(found.partitions)
        missing = found.error is not None and found.error.code() == KafkaError.UNKNOWN_TOPIC_OR_PART
        self.deleted &= missing
        self._note_missing(missing=missing and self._assigned > 0)
        if 0 < count < self._assigned:  # the topic was created again, with fewer partitions
            self._forget()
            self._again = True
        if count <= self._assigned:
            return
        new = range(self._assigned, count)
        self._targets |= self._ends(new, timeout_s)
        self._assign(new)
        self._assigned = count

    def _note_missing(self, *, missing: bool) -> None:
        """Forget the topic once no answer has listed it for some seconds."""
        now_s = time.monotonic()
        if not missing:
            self._unlisted = None
        elif self._unlisted is None:
            self._unlisted = now_s
        elif now_s - self._unlisted >= _GONE_S:
            self._unlisted = None
            self._forget()
            self.deleted = True

    def _apply(self, key: Any, value: Any) -> None:  # noqa: ANN401 -- bytes, or what a deserializer made
        name = self._held.key(key)
        if name is None:
            return
        record = self._held.record(value)
        if record is not None:
            self.records[name] = record
        elif value is None:
            self.records.pop(name, None)

    def _fail(self, why: str, cause: Exception | None = None) -> NoReturn:
        raise self._held.failure(f"{self._held.noun} {self._topic!r}: {why}") from cause


class CompactedPublisher(Generic[Key, Record]):
    """Writes records, and creates the topic if it does not exist.

    Contract: `write` returns when all in-sync replicas have the record, or raises.

    Args:
        kafka: librdkafka's properties, at least `bootstrap.servers`.
        topic: its name.
        held: what it holds.

    Raises:
        AssignorError: the class `failure`: no broker answers, or the topic cannot be created.
    """

    def __init__(self, kafka: Mapping[str, Any], topic: str, held: TableTopic[Key, Record]) -> None:
        self._kafka = kafka
        self._topic = topic
        self._held = held
        self.make()

    def make(self) -> None:
        """Create the topic if it does not exist, as after it was deleted.

        Raises:
            AssignorError: the class `failure`: no broker answers, or the topic cannot be created.
        """
        make_compacted_topic(self._kafka, self._topic, self._held)
        # A producer refuses a topic for a while that it knows to be deleted, so each creation gets its own.
        config = {**self._kafka, "enable.idempotence": True, "message.timeout.ms": int(_TIMEOUT_S * 1000)}
        self._producer = self._held.made(Producer, config)

    def write(self, key: bytes, value: bytes | None, what: str) -> None:
        """Write one record, or withdraw it with None.

        Args:
            key: its key.
            value: its value.
            what: the words for the record in the message of a failure.

        Raises:
            AssignorError: the class `failure`: the record did not arrive.
        """
        failures: list[str] = []

        def delivered(error: KafkaError | None, _: object) -> None:
            if error is not None:
                failures.append(str(error))

        try:
            self._producer.produce(self._topic, key=key, value=value, on_delivery=delivered)
        except (KafkaException, BufferError) as error:
            raise self._held.failure(f"{what} did not reach topic {self._topic!r}: {error}") from error
        if self._producer.flush(_TIMEOUT_S + 5) or failures:
            reason = failures[0] if failures else f"no answer in {_TIMEOUT_S:g} s"
            raise self._held.failure(f"{what} did not reach topic {self._topic!r}: {reason}")


def make_compacted_topic(kafka: Mapping[str, Any], topic: str, held: TableTopic[Key, Record]) -> None:
    """Create the topic if it does not exist.

    Raises:
        AssignorError: the class `failure`: no broker answers, or the topic cannot be created.
    """
    admin = held.made(AdminClient, kafka)
    try:
        known = admin.list_topics(timeout=_TIMEOUT_S)
        if topic not in known.topics:
            new = NewTopic(
                topic,
                num_partitions=1,
                replication_factor=min(_REPLICAS, len(known.brokers)),
                config={"cleanup.policy": "compact", "min.cleanable.dirty.ratio": "0.1"},
            )
            admin.create_topics([new])[topic].result(_TIMEOUT_S)
    except (KafkaException, TimeoutError) as error:
        if isinstance(error, KafkaException) and error.args[0].code() == KafkaError.TOPIC_ALREADY_EXISTS:
            return
        reason = str(error) or f"no answer in {_TIMEOUT_S:g} s"
        raise held.failure(f"{held.noun} {topic!r} cannot be made: {reason}") from error
