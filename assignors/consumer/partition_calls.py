"""Calls with partitions as arguments: commit, seek, pause and the like."""

from collections.abc import Iterable, Mapping
from typing import Any

from confluent_kafka import Message
from confluent_kafka import TopicPartition as KafkaPartition

from assignors.clients.log_offsets import Offset
from assignors.consumer.call_gate import CallGate
from assignors.consumer.consumed_offsets import Progress, kafka_partitions, key_of
from assignors.consumer.consumer_errors import ConsumerError
from assignors.consumer.fetching import Fetching
from assignors.consumer.offset_commits import CommitQueue
from assignors.consumer.rebalance_handling import Membership
from assignors.planner.topics_and_members import TopicPartition


class PartitionCalls:
    """The calls of confluent_kafka.Consumer that name partitions, with its arguments."""

    _commits: CommitQueue
    _fetching: Fetching
    _gate: CallGate
    _membership: Membership
    _progress: Progress

    def _check_usable(self) -> None:
        raise NotImplementedError

    def commit(
        self,
        message: Message | None = None,
        offsets: Iterable[KafkaPartition] | None = None,
        asynchronous: bool = True,  # noqa: FBT001, FBT002 -- as confluent-kafka has it
    ) -> list[KafkaPartition] | None:
        """Commit the offset after a record, or these offsets, or the progress of all partitions.

        Returns:
            The committed offsets; None if asynchronous: `on_commit` of the configuration is then called.

        Raises:
            NotOwnedError: a partition is not this member's; nothing was committed (synchronous only).
            FencedError: the group continued without this member (synchronous only).
            ConsumerError: the coordinator did not answer in time, or the message is an error.
        """
        self._check_usable()
        with self._gate:
            wanted = self._progress.to_commit(message, offsets)
            member = self._membership.member
            if member is None:  # in no group: any client may commit while the group is empty
                return self._commit_outside(wanted, asynchronous=asynchronous)
            if asynchronous and wanted:
                self._commits.commit_later(member, wanted)
        if asynchronous:
            return None
        if wanted:
            self._commits.commit(member, wanted)
        return kafka_partitions(wanted)

    def store_offsets(self, message: Message | None = None, offsets: Iterable[KafkaPartition] | None = None) -> None:
        """Mark records as processed: the next automatic commit, or `commit()` without arguments, commits them.

        Raises:
            NotOwnedError: a partition is not assigned; nothing was stored.
            ConsumerError: enable.auto.offset.store is not False, or neither or both arguments are given.
        """
        self._check_usable()
        with self._gate:
            self._progress.store(message, offsets)

    def assign(self, partitions: Iterable[KafkaPartition]) -> None:
        """In `on_assign`: begin at these offsets. Elsewhere this is an error, because only the group assigns.

        Raises:
            ConsumerError: called outside on_assign.
        """
        self._check_usable()
        for one in partitions:
            if not self._membership.begin_at(key_of(one), one.offset):
                raise ConsumerError(
                    f"{one.topic!r} partition {one.partition}: the group assigns; in on_assign give the offsets to "
                    "begin at, and elsewhere use seek()"
                )

    incremental_assign = assign

    def unassign(self) -> None:
        """In `on_revoke` and `on_lost`: no effect, because reading ends when the callback returns.

        Raises:
            ConsumerError: called elsewhere, with partitions assigned.
        """
        self._check_usable()
        if not self._membership.giving_up and self._fetching.partitions:
            raise ConsumerError("the group assigns: unassign() belongs in on_revoke, and elsewhere use pause()")

    def incremental_unassign(self, partitions: Iterable[KafkaPartition]) -> None:
        """As `unassign`; a partition that is not assigned is an error."""
        self.unassign()
        for one in partitions:
            if key_of(one) not in self._fetching.partitions:
                raise ConsumerError(f"{one.topic!r} partition {one.partition} is not assigned")

    def seek(self, partition: KafkaPartition) -> None:
        """Continue this partition at its offset; in `on_assign`: begin there.

        Raises:
            ConsumerError: the partition is not assigned.
        """
        self._check_usable()
        with self._gate:
            if not self._membership.begin_at(key_of(partition), partition.offset):
                self._fetching.seek(key_of(partition), partition.offset)

    def pause(self, partitions: Iterable[KafkaPartition]) -> None:
        """Deliver no records of these until `resume`, or until they are revoked; also allowed in `on_assign`."""
        self._check_usable()
        with self._gate:
            self._membership.pause([key_of(one) for one in partitions])

    def resume(self, partitions: Iterable[KafkaPartition]) -> None:
        """Deliver records of these partitions again."""
        self._check_usable()
        with self._gate:
            self._membership.resume([key_of(one) for one in partitions])

    def _commit_outside(
        self, offsets: Mapping[TopicPartition, Offset], *, asynchronous: bool
    ) -> list[KafkaPartition] | None:
        if not offsets:
            return None if asynchronous else []
        client: Any = self._fetching.client
        found: list[KafkaPartition] | None = client.commit(offsets=kafka_partitions(offsets), asynchronous=asynchronous)
        return found
