"""Offsets, as confluent-kafka's objects say them, and how far the program has come."""

from collections.abc import Collection, Iterable

from confluent_kafka import Message
from confluent_kafka import TopicPartition as KafkaPartition

from assignors.consumer.fetching import Fetching
from assignors.consumer.ordered_commits import Offsets
from assignors.errors import MembershipError, NotOwnedError
from assignors.planner.topics_and_members import TopicPartition


class Progress:
    """What is done of the partitions that are read: what a commit that names nothing commits.

    Args:
        fetching: knows what was delivered.
        auto_store: whether what was delivered is done; else what `store` was told.
    """

    def __init__(self, fetching: Fetching, *, auto_store: bool) -> None:
        self._fetching = fetching
        self._auto_store = auto_store
        self._stored: dict[TopicPartition, int] = {}

    def done(self) -> dict[TopicPartition, int]:
        """The next offset of each partition; one of which nothing is done is left out."""
        return self._fetching.positions() if self._auto_store else dict(self._stored)

    def named(self, message: Message | None, offsets: Iterable[KafkaPartition] | None) -> dict[TopicPartition, int]:
        """The offset after a record, these offsets, or what is done where neither is given.

        Raises:
            MembershipError: both are given, or the message is an error.
        """
        if message is not None and offsets is not None:
            raise MembershipError("commit(message=..., offsets=...): give the one or the other")
        if message is not None and message.error() is not None:
            raise MembershipError(f"a message that is an error has no offset to commit: {message.error()}")
        if message is not None:
            return {(str(message.topic()), int(message.partition() or 0)): int(message.offset() or 0) + 1}
        if offsets is not None:
            return {key_of(one): one.offset for one in offsets if one.offset >= 0}
        return self.done()

    def store(self, message: Message | None, offsets: Iterable[KafkaPartition] | None) -> None:
        """Say what is done.

        Raises:
            NotOwnedError: a partition is not read; nothing was stored.
            MembershipError: what is delivered is stored by itself, or neither or both arguments are given.
        """
        if self._auto_store:
            raise MembershipError("store_offsets() needs enable.auto.offset.store=False: what is delivered is stored")
        if message is None and offsets is None:
            raise MembershipError("store_offsets(): give a message or offsets")
        wanted = self.named(message, offsets)
        for topic, partition in wanted.keys() - self._fetching.partitions:
            raise NotOwnedError(f"{topic!r} partition {partition} is not assigned: nothing was stored")
        self._stored |= wanted

    def forget(self, partitions: Collection[TopicPartition]) -> None:
        """These are another member's now, and what was stored of them is its to say."""
        for key in partitions:
            self._stored.pop(key, None)


def key_of(partition: KafkaPartition) -> TopicPartition:
    """Topic and number."""
    return partition.topic, partition.partition


def kafka_partitions(offsets: Offsets) -> list[KafkaPartition]:
    """Offsets as confluent-kafka has them."""
    return [KafkaPartition(*key, at) for key, at in offsets.items()]
