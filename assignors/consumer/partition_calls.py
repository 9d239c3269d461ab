"""Calls with partitions as arguments, such as commit, seek and pause."""

import time
from collections.abc import Iterable, Mapping
from typing import Any

from confluent_kafka import OFFSET_INVALID, OFFSET_STORED, KafkaError, Message
from confluent_kafka import TopicPartition as KafkaPartition

from assignors.clients.log_offsets import Offset
from assignors.consumer.commit_queue import CommitQueue
from assignors.consumer.consumed_offsets import Progress, checked, kafka_partitions, key_of
from assignors.consumer.consumer_errors import ConsumerError
from assignors.consumer.fetching import Fetching
from assignors.consumer.on_assign_choice import begins_of
from assignors.consumer.one_thread_at_a_time import CallGate
from assignors.consumer.rebalance_handling import Membership
from assignors.consumer.record_steps import RecordSteps
from assignors.member.broker_assigned_member import BrokerAssignedMember
from assignors.planner.topics_and_members import TopicPartition


class PartitionCalls:
    """The calls of confluent_kafka.Consumer that name partitions, with its arguments."""

    _commits: CommitQueue
    _fetching: Fetching
    _gate: CallGate
    _membership: Membership
    _progress: Progress
    _steps: RecordSteps

    def _check_usable(self) -> None:
        raise NotImplementedError

    def commit(
        self,
        message: Message | None = None,
        offsets: Iterable[KafkaPartition] | None = None,
        asynchronous: bool = True,  # noqa: FBT001, FBT002 -- as confluent-kafka has it
    ) -> list[KafkaPartition] | None:
        """Commit the offset after a record, or these offsets, or the progress of all partitions.

        Without arguments it moves no offset of the group back: after a `seek` back name the record or the offsets.

        Returns:
            The committed offsets, and the other partitions as they are given; without arguments the others
            are those without progress, with OFFSET_INVALID. An empty list if nothing was to be committed. None if
            asynchronous: `on_commit` of the configuration is then called.

        Raises:
            NotOwnedError: a partition is not this member's; nothing was committed (synchronous only).
            FencedError: the group continued without this member (synchronous only).
            ConsumerError: the coordinator did not answer in time, or the message is an error.
        """
        self._check_usable()
        with self._gate.turn():
            given = None if offsets is None else checked(offsets)
            wanted = self._progress.to_commit(message, given)
            if message is None and given is None:
                wanted = self._commits.ahead(wanted)
            without_offset = self._without_offset(given, wanted) if message is None else {}
            member = self._membership.member
            if member is None or self._membership.by_hand:  # any client may commit while the group is empty
                return self._commit_outside(wanted, without_offset, asynchronous=asynchronous)
            if asynchronous:
                self._commits.commit_later(member, wanted, without_offset)
        if asynchronous:
            return None
        if wanted:
            self._commits.commit(member, wanted)
            return kafka_partitions({**wanted, **without_offset})
        self._membership.raise_final()  # its partitions are lost, so nothing of them would be committed
        return []

    def _without_offset(
        self, given: list[KafkaPartition] | None, wanted: Mapping[TopicPartition, Offset]
    ) -> dict[TopicPartition, int]:
        if given is None:
            listed = dict.fromkeys(self._fetching.partitions, OFFSET_INVALID)
        else:
            listed = {key_of(one): one.offset for one in given}
        return {key: at for key, at in listed.items() if key not in wanted}

    def store_offsets(self, message: Message | None = None, offsets: Iterable[KafkaPartition] | None = None) -> None:
        """Mark records as processed: the next automatic commit, or `commit()` without arguments, commits them.

        An offset below 0, such as OFFSET_INVALID, removes an earlier mark of its partition.

        Raises:
            NotOwnedError: a partition is not assigned; nothing was stored.
            ConsumerError: enable.auto.offset.store is not False, or neither or both arguments are given.
        """
        self._check_usable()
        with self._gate.turn():
            self._progress.store(message, offsets)
            # A program that works on a long batch makes no other call in that time.
            self._steps.commit_if_due(time.monotonic())

    def assign(self, partitions: Iterable[KafkaPartition]) -> None:
        """Read these partitions only, from their offsets on. With a subscription they must be this member's.

        In `on_assign` it replaces what the callback has chosen; elsewhere it replaces all. The member keeps partitions
        that it does not read.

        Raises:
            ConsumerError: one of them is not assigned to this member, comes twice, or cannot begin at its offset; or
                called in `on_revoke` or `on_lost`.
        """
        self._assign(partitions, instead=True)

    def incremental_assign(self, partitions: Iterable[KafkaPartition]) -> None:
        """As `assign`, in addition to the current ones.

        Raises:
            ConsumerError: as `assign`; or one of them is read already.
        """
        self._assign(partitions, instead=False)

    def unassign(self) -> None:
        """Read no partition; a member keeps them. In `on_revoke` and `on_lost`: no effect, reading ends afterwards."""
        self._check_usable()
        with self._gate.turn():
            if self._membership.giving_up:
                return
            if (choice := self._membership.partitions.choice) is not None:
                choice.unassign()
            else:
                self._stop_reading(self._fetching.partitions)

    def incremental_unassign(self, partitions: Iterable[KafkaPartition]) -> None:
        """Like `unassign`, for these partitions only.

        Raises:
            ConsumerError: one of them is not read.
        """
        self._check_usable()
        wanted = checked(partitions)
        with self._gate.turn():
            keys = frozenset(map(key_of, wanted))
            choice = self._membership.partitions.choice
            chosen = frozenset() if choice is None else keys & choice.chosen().keys()
            if choice is not None:
                choice.drop(chosen)
            assigned = self._fetching.partitions
            for topic, partition in keys - chosen - assigned:
                by_broker = isinstance(self._membership.member, BrokerAssignedMember)
                wrong = not assigned or self._membership.by_hand or choice is not None or by_broker
                code = KafkaError._INVALID_ARG if wrong else KafkaError._STATE  # noqa: SLF001 -- librdkafka's own codes
                raise ConsumerError(f"{topic!r} partition {partition} is not assigned", code)
            if not self._membership.giving_up:
                self._stop_reading(keys & assigned)

    def seek(self, partition: KafkaPartition) -> None:
        """Continue this partition at its offset; in `on_assign`: begin there.

        Raises:
            ConsumerError: the partition is not assigned, or no record can have this offset.
        """
        self._check_usable()
        key = key_of(partition)
        with self._gate.turn():
            if self._membership.partitions.begin_at(key, partition.offset):
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
            self._membership.partitions.pause([key_of(one) for one in checked(partitions)])

    def resume(self, partitions: Iterable[KafkaPartition]) -> None:
        """Deliver records of these partitions again."""
        self._check_usable()
        with self._gate.turn():
            self._membership.partitions.resume([key_of(one) for one in checked(partitions)])

    def _assign(self, partitions: Iterable[KafkaPartition], *, instead: bool) -> None:
        self._check_usable()
        wanted = checked(partitions)
        with self._gate.turn():
            membership = self._membership
            if (choice := membership.partitions.choice) is not None:
                choice.assign(wanted, instead=instead)
            elif membership.giving_up:
                if wanted:
                    raise ConsumerError("assign() while partitions are revoked: call it in on_assign, or after poll()")
            else:
                begins = begins_of(wanted, frozenset() if instead else self._fetching.partitions)
                read = membership.assign_by_hand if membership.without_group else membership.read
                read(begins, instead=instead)

    def _stop_reading(self, partitions: frozenset[TopicPartition]) -> None:
        membership = self._membership
        (membership.release_by_hand if membership.without_group else membership.stop_reading)(partitions)

    def _commit_outside(
        self,
        offsets: Mapping[TopicPartition, Offset],
        without_offset: Mapping[TopicPartition, Offset],
        *,
        asynchronous: bool,
    ) -> list[KafkaPartition] | None:
        client: Any = self._fetching.client
        rest = kafka_partitions(without_offset)
        if asynchronous:
            client.commit(offsets=[*kafka_partitions(offsets), *rest], asynchronous=True)
            self._commits.note(offsets, answered=False)
            return None
        if not offsets:
            return []
        committed = client.commit(offsets=kafka_partitions(offsets), asynchronous=False)
        self._commits.note(offsets)
        return sorted([*committed, *rest], key=key_of)
