"""Offsets in confluent-kafka's objects, and the progress of the program."""

from collections.abc import Collection, Iterable, Mapping

from confluent_kafka import KafkaError, Message
from confluent_kafka import TopicPartition as KafkaPartition

from assignors.clients.log_offsets import Offset, OffsetWithMetadata
from assignors.consumer.consumer_errors import ArgumentError, ConsumerError, NotOwnedConsumerError
from assignors.consumer.fetching import Fetching
from assignors.planner.topics_and_members import TopicPartition


class Progress:
    """The progress of the program: the offsets that a commit without arguments commits.

    Args:
        fetching: knows the last delivered record of each partition.
        auto_store: whether a delivered record counts as processed; else `store` marks it.
    """

    def __init__(self, fetching: Fetching, *, auto_store: bool) -> None:
        self._fetching = fetching
        self._auto_store = auto_store
        self._stored: dict[TopicPartition, Offset] = {}

    def done(self) -> dict[TopicPartition, Offset]:
        """Return the next offset of each partition, without partitions that have no progress."""
        return {**self._fetching.positions()} if self._auto_store else dict(self._stored)

    def to_commit(
        self, message: Message | None, offsets: Iterable[KafkaPartition] | None
    ) -> dict[TopicPartition, Offset]:
        """Return the offset after a record, or these offsets, or the progress if neither is given.

        Raises:
            ArgumentError: both are given, one is of another type, or the message is an error.
        """
        _check_message(message)
        if message is not None and offsets is not None:
            raise ArgumentError("commit(message=..., offsets=...): give the one or the other")
        if message is not None and message.error() is not None:
            raise ArgumentError(f"a message that is an error has no offset to commit: {message.error()}")
        if message is not None:
            return {(str(message.topic()), int(message.partition() or 0)): int(message.offset() or 0) + 1}
        if offsets is not None:
            return {key: offset_of(one) for key, one in [(key_of(one), one) for one in offsets] if one.offset >= 0}
        return self.done()

    def store(self, message: Message | None, offsets: Iterable[KafkaPartition] | None) -> None:
        """Record the progress of the program.

        Raises:
            NotOwnedConsumerError: a partition is not read; nothing was stored.
            ConsumerError: delivered records are stored automatically.
            ArgumentError: neither or both arguments are given, or one is of another type.
        """
        if message is None and offsets is None:
            raise ArgumentError("store_offsets(): give a message or offsets")
        _check_message(message)
        if self._auto_store:
            raise ConsumerError(
                "store_offsets() needs enable.auto.offset.store=False: each record is stored when it is delivered",
                KafkaError._INVALID_ARG,  # noqa: SLF001 -- librdkafka's own code
            )
        wanted = self.to_commit(message, offsets)
        for topic, partition in wanted.keys() - self._fetching.partitions:
            raise NotOwnedConsumerError(f"{topic!r} partition {partition} is not assigned: nothing was stored")
        self._stored |= wanted

    def forget(self, partitions: Collection[TopicPartition]) -> None:
        """Forget partitions that now belong to another member, which commits for them."""
        for key in partitions:
            self._stored.pop(key, None)


def key_of(partition: KafkaPartition) -> TopicPartition:
    """Return topic and number of a partition.

    Raises:
        ArgumentError: it is something else.
    """
    if not isinstance(partition, KafkaPartition):
        raise ArgumentError(f"{partition!r}: need a confluent_kafka.TopicPartition")
    return partition.topic, partition.partition


def offset_of(partition: KafkaPartition) -> Offset:
    """Return the offset, with its metadata if there is any."""
    metadata = getattr(partition, "metadata", None)
    return OffsetWithMetadata(partition.offset, str(metadata)) if metadata else partition.offset


def kafka_partitions(offsets: Mapping[TopicPartition, Offset]) -> list[KafkaPartition]:
    """Return offsets as confluent-kafka's objects."""
    return [
        KafkaPartition(*key, at.offset, metadata=at.metadata)
        if isinstance(at, OffsetWithMetadata)
        else KafkaPartition(*key, at)
        for key, at in offsets.items()
    ]


def _check_message(message: object) -> None:
    if message is not None and not isinstance(message, Message):
        raise ArgumentError(f"message={message!r}: need a confluent_kafka.Message")
