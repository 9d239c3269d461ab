"""Offsets in confluent-kafka's objects, and the progress of the program."""

from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Final

from confluent_kafka import OFFSET_INVALID, KafkaError, Message
from confluent_kafka import TopicPartition as KafkaPartition

from assignors.clients.log_offsets import Offset, OffsetWithMetadata
from assignors.consumer.consumer_errors import ArgumentError, ConsumerError, NotOwnedConsumerError, code_of_unread
from assignors.consumer.fetching import Fetching
from assignors.planner.topics_and_members import TopicPartition

_NO_PARTITION: Final = -1


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
        return self._fetching.stored_offsets() if self._auto_store else dict(self._stored)

    def stored(self, partitions: Collection[TopicPartition]) -> dict[TopicPartition, Offset]:
        """Return the offsets of these partitions that the program has stored itself."""
        return {key: at for key, at in self._stored.items() if key in partitions}

    def to_commit(
        self, message: Message | None, offsets: Iterable[KafkaPartition] | None
    ) -> dict[TopicPartition, Offset]:
        """Return the offset after a record, or these offsets, or the progress if neither is given.

        Raises:
            ArgumentError: both are given, one is of another type, or the message is an error or has no topic.
            ConsumerError: the message has no offset.
        """
        _check_given(message, offsets)
        if message is not None and message.error() is not None:
            raise ArgumentError(f"a message that is an error has no offset to commit: {message.error()}")
        if message is not None:
            return {_key_of_record(message): _offset_after(message)}
        if offsets is not None:
            return {key_of(one): offset_of(one) for one in checked(offsets) if one.offset >= 0}
        return self.done()

    def store(self, message: Message | None, offsets: Iterable[KafkaPartition] | None) -> None:
        """Record the progress of the program; an offset below 0, such as OFFSET_INVALID, removes it.

        Raises:
            NotOwnedConsumerError: a partition is not read; nothing was stored.
            ConsumerError: delivered records are stored automatically.
            ArgumentError: neither or both arguments are given, or one is of another type.
        """
        if message is None and offsets is None:
            raise ArgumentError("store_offsets(): give a message or offsets")
        listed = None if offsets is None else checked(offsets)
        _check_given(message, listed)
        if self._auto_store:
            raise ConsumerError(
                "store_offsets() needs enable.auto.offset.store=False: each record is stored when it is delivered",
                KafkaError._INVALID_ARG,  # noqa: SLF001 -- librdkafka's own code
            )
        wanted = self.to_commit(message, listed)
        last = {key_of(one): one.offset for one in listed or []}
        for key in (wanted.keys() | last.keys()) - self._fetching.partitions:
            said = f"{key[0]!r} partition {key[1]} is not assigned: nothing was stored"
            raise NotOwnedConsumerError(said, code_of_unread(key, self._fetching.partitions))
        self.forget([key for key, offset in last.items() if offset < 0])  # as in librdkafka
        self._stored |= {key: offset for key, offset in wanted.items() if last.get(key, 0) >= 0}

    def forget(self, partitions: Collection[TopicPartition]) -> None:
        """Forget the progress of partitions, as of those that now belong to another member, which commits for them."""
        for key in partitions:
            self._stored.pop(key, None)


def checked(partitions: Iterable[KafkaPartition]) -> list[KafkaPartition]:
    """Return partitions as a list.

    Raises:
        ArgumentError: one of them is not a TopicPartition.
    """
    if not isinstance(partitions, Iterable):
        raise ArgumentError(f"{partitions!r}: need a list of confluent_kafka.TopicPartition")
    found = list(partitions)
    for one in found:
        key_of(one)
    return found


def key_of(partition: KafkaPartition) -> TopicPartition:
    """Return topic and number of a partition.

    Raises:
        ArgumentError: it is not a TopicPartition.
    """
    if not isinstance(partition, KafkaPartition):
        raise ArgumentError(f"{partition!r}: need a confluent_kafka.TopicPartition")
    return partition.topic, partition.partition


def offset_of(partition: KafkaPartition) -> Offset:
    """Return the offset, with its metadata and its leader's epoch if there are any."""
    metadata, epoch = getattr(partition, "metadata", None), partition.leader_epoch
    if not metadata and epoch is None:
        return partition.offset
    return OffsetWithMetadata(partition.offset, str(metadata or ""), -1 if epoch is None else epoch)


def kafka_partitions(offsets: Mapping[TopicPartition, Offset]) -> list[KafkaPartition]:
    """Return offsets as confluent-kafka's objects, in the order in which librdkafka reports a commit."""
    return [_partition(key, OffsetWithMetadata.of(at)) for key, at in sorted(offsets.items())]


def _partition(key: TopicPartition, at: OffsetWithMetadata) -> KafkaPartition:
    if at.metadata:
        return KafkaPartition(*key, at.offset, metadata=at.metadata, leader_epoch=at.leader_epoch)
    return KafkaPartition(*key, at.offset, leader_epoch=at.leader_epoch)


def with_offsets(asked: Sequence[KafkaPartition], found: Mapping[TopicPartition, Offset]) -> list[KafkaPartition]:
    """Return a copy of each partition with the offset found for it, else with OFFSET_INVALID.

    Its metadata is that of the offset if there is any, else its own, as in librdkafka.
    """
    return [
        partition
        for one in asked
        for partition in kafka_partitions({key_of(one): _noted(found.get(key_of(one), OFFSET_INVALID), one)})
    ]


def _noted(offset: Offset, asked: KafkaPartition) -> Offset:
    metadata = getattr(asked, "metadata", None)
    found = OffsetWithMetadata.of(offset)
    return found._replace(metadata=str(metadata)) if metadata and not found.metadata else found


def _key_of_record(message: Message) -> TopicPartition:
    # A program can make a Message of its own, with parts left out: they must not become another partition's offset.
    if message.topic() is None:
        raise ArgumentError(f"{message!r} has no topic: commit records that were read")
    partition = message.partition()
    return str(message.topic()), _NO_PARTITION if partition is None else partition


def _offset_after(message: Message) -> Offset:
    offset = message.offset()
    if offset is None or offset < 0:
        raise ConsumerError(f"{message!r} has no offset: nothing was committed", KafkaError._NO_OFFSET)  # noqa: SLF001 -- librdkafka's own code
    epoch = message.leader_epoch()
    return offset + 1 if epoch is None or epoch < 0 else OffsetWithMetadata(offset + 1, "", epoch)


def _check_given(message: object, offsets: object) -> None:
    if message is not None and not isinstance(message, Message):
        raise ArgumentError(f"message={message!r}: need a confluent_kafka.Message")
    if message is not None and offsets is not None:
        raise ArgumentError("message=... and offsets=...: give the one or the other")
