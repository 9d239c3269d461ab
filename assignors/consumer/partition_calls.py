"""Calls with partitions as arguments: commit, seek, pause and the like."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from confluent_kafka import OFFSET_INVALID, OFFSET_STORED, KafkaError, Message
from confluent_kafka import TopicPartition as KafkaPartition

from assignors.clients.log_offsets import Offset
from assignors.consumer.call_gate import CallGate
from assignors.consumer.consumed_offsets import Progress, checked, kafka_partitions, key_of
from assignors.consumer.consumer_errors import ConsumerError
from assignors.consumer.fetching import Fetching
from assignors.consumer.offset_commits import CommitQueue
from assignors.consumer.rebalance_handling import Membership
from assignors.consumer.start_offsets import check_start
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
        with self._gate.turn():
            wanted = self._progress.to_commit(message, offsets)
            member = self._membership.member
            if member is None or self._membership.by_hand:  # any client may commit while the group is empty
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
        with self._gate.turn():
            self._progress.store(message, offsets)

    def assign(self, partitions: Iterable[KafkaPartition]) -> None:
        """In `on_assign`: begin at these offsets. Without a subscription: read these partitions, in no group.

        Raises:
            ConsumerError: called outside on_assign with a subscription, because then only the group assigns.
        """
        self._assign(partitions, instead=True)

    def incremental_assign(self, partitions: Iterable[KafkaPartition]) -> None:
        """As `assign`; without a subscription: read these partitions in addition.

        Raises:
            ConsumerError: as `assign`; or one of them is assigned already.
        """
        self._assign(partitions, instead=False)

    def unassign(self) -> None:
        """Without a subscription: read no partition. In `on_revoke` and `on_lost`: no effect, reading ends afterwards.

        Raises:
            ConsumerError: called elsewhere, with partitions assigned.
        """
        self._check_usable()
        if self._membership.by_hand:
            with self._gate.turn():
                self._membership.release_by_hand(self._fetching.partitions)
        elif not self._membership.giving_up and self._fetching.partitions:
            raise ConsumerError("the group assigns: unassign() belongs in on_revoke, and elsewhere use pause()")

    def incremental_unassign(self, partitions: Iterable[KafkaPartition]) -> None:
        """As `unassign`; a partition that is not assigned is an error."""
        self._check_usable()
        wanted = checked(partitions)
        by_hand = self._membership.by_hand
        if not by_hand:
            self.unassign()
        assigned = self._fetching.partitions
        for one in wanted:
            if key_of(one) not in assigned:
                code = KafkaError._STATE if assigned and not by_hand else KafkaError._INVALID_ARG  # noqa: SLF001 -- librdkafka's own codes
                raise ConsumerError(f"{one.topic!r} partition {one.partition} is not assigned", code)
        if by_hand:
            with self._gate.turn():
                self._membership.release_by_hand(frozenset(map(key_of, wanted)))

    def seek(self, partition: KafkaPartition) -> None:
        """Continue this partition at its offset; in `on_assign`: begin there.

        Raises:
            ConsumerError: the partition is not assigned, or no record can have this offset.
        """
        self._check_usable()
        key = key_of(partition)
        with self._gate.turn():
            if self._membership.begin_at(key, partition.offset):
                return
            if partition.offset == OFFSET_STORED and key in self._fetching.partitions:
                raise ConsumerError(
                    "seek() to OFFSET_STORED: take the offset from committed()",
                    KafkaError._INVALID_ARG,  # noqa: SLF001 -- librdkafka's own code
                )
            self._fetching.seek(key, partition.offset)

    def pause(self, partitions: Iterable[KafkaPartition]) -> None:
        """Deliver no records of these until `resume`, or until they are revoked; also allowed in `on_assign`."""
        self._check_usable()
        with self._gate.turn():
            self._membership.pause([key_of(one) for one in checked(partitions)])

    def resume(self, partitions: Iterable[KafkaPartition]) -> None:
        """Deliver records of these partitions again."""
        self._check_usable()
        with self._gate.turn():
            self._membership.resume([key_of(one) for one in checked(partitions)])

    def _assign(self, partitions: Iterable[KafkaPartition], *, instead: bool) -> None:
        self._check_usable()
        wanted = checked(partitions)
        with self._gate.turn():
            if self._membership.member is None or self._membership.by_hand:
                present = frozenset() if instead else self._fetching.partitions
                self._membership.assign_by_hand(_begins(wanted, present), instead=instead)
                return
            for one in wanted:
                if not self._membership.begin_at(key_of(one), one.offset):
                    raise ConsumerError(
                        f"{one.topic!r} partition {one.partition}: the group assigns; in on_assign give the offsets "
                        "to begin at, and elsewhere use seek()"
                    )

    def _commit_outside(
        self, offsets: Mapping[TopicPartition, Offset], *, asynchronous: bool
    ) -> list[KafkaPartition] | None:
        if not offsets:
            return None if asynchronous else []
        client: Any = self._fetching.client
        found: list[KafkaPartition] | None = client.commit(offsets=kafka_partitions(offsets), asynchronous=asynchronous)
        return found


def _begins(wanted: Sequence[KafkaPartition], present: frozenset[TopicPartition]) -> dict[TopicPartition, int]:
    """Return where each partition begins: without an offset where the group has committed.

    Raises:
        ConsumerError: a partition comes twice, is present already, or cannot begin at its offset.
    """
    begins: dict[TopicPartition, int] = {}
    for one in wanted:
        key = key_of(one)
        check_start(key, one.offset)
        if key in begins or key in present:
            code = KafkaError._CONFLICT if key in present else KafkaError._INVALID_ARG  # noqa: SLF001 -- librdkafka's own codes
            raise ConsumerError(f"{one.topic!r} partition {one.partition} is assigned twice", code)
        begins[key] = Fetching.COMMITTED if one.offset == OFFSET_INVALID else one.offset
    return begins
