"""Reads and writes the workers topic on a cluster."""

from collections.abc import Iterable, Mapping
from typing import Any, Self

from confluent_kafka import OFFSET_BEGINNING, Consumer, KafkaError, KafkaException, Producer
from confluent_kafka import TopicPartition as KafkaPartition
from confluent_kafka.admin import AdminClient, NewTopic  # type: ignore[attr-defined]  # its stub has no __all__

from assignors.errors import PublishError
from assignors.scaling.kafka_client import made
from assignors.scaling.workers_topic import (
    DEFAULT_TOPIC,
    ScaledTopic,
    WorkersRecord,
    decode,
    decode_key,
    encode,
    encode_key,
)

_TIMEOUT_S = 15.0
_REPLICAS = 3


class WorkersFeed:
    """The current numbers, read without a consumer group.

    Contract:
    * `refresh` reads new records and returns whether a number changed; the first call reads the topic to its end.
    * A topic that does not exist yet has no numbers: the next `refresh` looks it up again.
    * Used by one thread. It never writes and never commits.
    """

    def __init__(self, kafka: Mapping[str, Any], topic: str = DEFAULT_TOPIC) -> None:
        """Prepare; connects at the first `refresh`.

        Args:
            kafka: librdkafka's properties, at least `bootstrap.servers`.
            topic: the workers topic.

        Raises:
            ScalingFileError: a property is invalid.
        """
        self._topic = topic
        self._brokers = kafka.get("bootstrap.servers")
        self._consumer = made(
            Consumer,
            {
                **kafka,
                "group.id": "azimuth.workers.reader",  # required by librdkafka; the client never joins or commits
                "enable.auto.commit": False,
                "enable.partition.eof": True,
                "log_level": 2,
            },
        )
        self._read_to: dict[int, int] = {}
        self._targets: dict[int, int] = {}
        self._assigned = 0
        self.cluster = ""
        """Id of the cluster that has the topic, known after a `refresh`."""
        self.records: dict[ScaledTopic, WorkersRecord] = {}

    def refresh(self, timeout_s: float = 5.0, *, to_end: bool = False) -> bool:
        """Read new records.

        Args:
            timeout_s: longest wait for the end of the topic; records read until then count.
            to_end: read up to the present end of the topic, which costs a request; else only already fetched records.

        Raises:
            PublishError: no broker answers; or, with `to_end`, the end was not reached in time.
        """
        before = dict(self.records)
        self._follow_partitions(timeout_s)
        self._targets |= self._ends(range(self._assigned), timeout_s) if to_end else {}
        while self._assigned:
            message = self._consumer.poll(timeout_s if self._behind else 0.0)
            if message is None:
                break
            error = message.error()
            if error is None:
                self._apply(message.key(), message.value())
                self._read_to[message.partition() or 0] = (message.offset() or 0) + 1
            elif error.code() == KafkaError._PARTITION_EOF:  # noqa: SLF001 -- its name begins with an underscore
                self._read_to[message.partition() or 0] = message.offset() or 0
        if to_end and self._behind:
            raise PublishError(f"workers topic {self._topic!r}: not read to its end in {timeout_s:g} s")
        return self.records != before

    def workers(self, cluster: str, group: str) -> dict[str, int]:
        """Return the workers of each topic of a group on a cluster, without topics that have no number."""
        return {n.topic: r.workers for n, r in self.records.items() if (n.cluster, n.group) == (cluster, group)}

    def close(self) -> None:
        """Close the client."""
        self._consumer.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    @property
    def _behind(self) -> bool:
        return any(self._read_to.get(one, -1) < end for one, end in self._targets.items())

    def _ends(self, partitions: Iterable[int], timeout_s: float) -> dict[int, int]:
        try:
            return {
                one: self._consumer.get_watermark_offsets(KafkaPartition(self._topic, one), timeout=timeout_s)[1]
                for one in partitions
            }
        except KafkaException as error:
            raise PublishError(
                f"workers topic {self._topic!r}: its end cannot be asked for at {self._brokers} ({error.args[0].str()})"
            ) from error

    def _follow_partitions(self, timeout_s: float) -> None:
        try:
            metadata = self._consumer.list_topics(self._topic, timeout=timeout_s)
        except KafkaException as error:
            raise PublishError(
                f"workers topic {self._topic!r}: no broker answers at {self._brokers} ({error.args[0].str()})"
            ) from error
        found = metadata.topics[self._topic]
        self.cluster = metadata.cluster_id or ""
        count = 0 if found.error else len(found.partitions)
        if count <= self._assigned:
            return
        new = range(self._assigned, count)
        self._targets |= self._ends(new, timeout_s)
        self._consumer.incremental_assign([KafkaPartition(self._topic, n, OFFSET_BEGINNING) for n in new])
        self._assigned = count

    def _apply(self, key: Any, value: Any) -> None:  # noqa: ANN401 -- bytes, or what a deserializer made
        name = decode_key(key)
        if name is None:
            return
        record = decode(value)
        if record is not None:
            self.records[name] = record
        elif value is None:
            self.records.pop(name, None)


class WorkersPublisher:
    """Writes numbers to the workers topic, and creates the topic if it does not exist.

    Contract: `publish` returns when all in-sync replicas have the record, or raises.
    """

    def __init__(self, kafka: Mapping[str, Any], topic: str = DEFAULT_TOPIC) -> None:
        """Create the topic if needed.

        Args:
            kafka: librdkafka's properties, at least `bootstrap.servers`.
            topic: the workers topic.

        Raises:
            PublishError: no broker answers, the topic cannot be created, or it is not compacted.
            ScalingFileError: a property is invalid.
        """
        self._topic = topic
        self._admin = made(AdminClient, {**kafka, "log_level": 2})
        self._make_topic()
        self._producer = made(
            Producer,
            {**kafka, "enable.idempotence": True, "message.timeout.ms": int(_TIMEOUT_S * 1000), "log_level": 2},
        )

    def publish(self, name: ScaledTopic, record: WorkersRecord | None) -> None:
        """Write one number, or withdraw it with None.

        Raises:
            PublishError: the record did not arrive.
        """
        failures: list[str] = []
        value = None if record is None else encode(record)

        def delivered(error: KafkaError | None, _: object) -> None:
            if error is not None:
                failures.append(str(error))

        self._producer.produce(self._topic, key=encode_key(name), value=value, on_delivery=delivered)
        if self._producer.flush(_TIMEOUT_S + 5) or failures:
            reason = failures[0] if failures else f"no answer in {_TIMEOUT_S:g} s"
            raise PublishError(f"{name.topic}: its workers did not reach topic {self._topic!r}: {reason}")

    def _make_topic(self) -> None:
        try:
            known = self._admin.list_topics(timeout=_TIMEOUT_S)
            if self._topic not in known.topics:
                new = NewTopic(
                    self._topic,
                    num_partitions=1,
                    replication_factor=min(_REPLICAS, len(known.brokers)),
                    config={"cleanup.policy": "compact", "min.cleanable.dirty.ratio": "0.1"},
                )
                self._admin.create_topics([new])[self._topic].result(_TIMEOUT_S)
        except (KafkaException, TimeoutError) as error:
            if isinstance(error, KafkaException) and error.args[0].code() == KafkaError.TOPIC_ALREADY_EXISTS:
                return
            raise PublishError(
                f"workers topic {self._topic!r} cannot be made: {str(error) or f'no answer in {_TIMEOUT_S:g} s'}"
            ) from error
