"""Calls with partitions as arguments, such as commit, seek and pause."""

import time
from collections.abc import Iterable, Mapping
from typing import Any

from confluent_kafka import OFFSET_INVALID, OFFSET_STORED, KafkaError, Message
from confluent_kafka import TopicPartition as KafkaPartition

from assignors.clients.log_offsets import Offset
from assignors.consumer.consumed_offsets import checked, kafka_partitions, key_of
from assignors.consumer.consumer_errors import ConsumerError
from assignors.consumer.consumer_parts import ConsumerParts
from assignors.consumer.on_assign_choice import begins_of
from assignors.planner.topics_and_members import TopicPartition


class PartitionCalls:
    """The calls of confluent_kafka.Consumer that name partitions, with its arguments."""

    _kafka_azimuth: ConsumerParts

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
        parts = self._kafka_azimuth
        parts.check_usable()
        with parts.gate.turn():
            parts.check_usable()
            given = None if offsets is None else checked(offsets)
            wanted = parts.progress.to_commit(message, given)
            if progress := message is None and given is None:
                wanted = parts.commits.ahead(wanted)
            without_offset = _without_offset(parts, given, wanted) if message is None else {}
            member = parts.membership.member
            if member is None or parts.membership.by_hand:  # any client may commit while the group is empty
                return _commit_outside(parts, wanted, without_offset, asynchronous=asynchronous, progress=progress)
            if asynchronous:
                parts.commits.commit_later(member, wanted, without_offset, progress=progress)
        if asynchronous:
            return None
        if wanted:
            parts.commits.commit(member, wanted, progress=progress)
            return kafka_partitions({**wanted, **without_offset})
        parts.membership.raise_final()  # its partitions are lost, so nothing of them would be committed
        return []

    def store_offsets(self, message: Message | None = None, offsets: Iterable[KafkaPartition] | None = None) -> None:
        """Mark records as processed: the next automatic commit, or `commit()` without arguments, commits them.

        An offset below 0, such as OFFSET_INVALID, removes an earlier mark of its partition.

        Raises:
            NotOwnedError: a partition is not assigned; nothing was stored.
            ConsumerError: enable.auto.offset.store is not False, or neither or both arguments are given.
        """
        parts = self._kafka_azimuth
        parts.check_usable()
        with parts.gate.turn():
            parts.check_usable()
            parts.progress.store(message, offsets)
            # A program that works on a long batch makes no other call in that time.
            parts.steps.commit_if_due(time.monotonic())

    def assign(self, partitions: Iterable[KafkaPartition]) -> None:
        """Read these partitions only, from their offsets on. With a subscription they must be this member's.

        In `on_assign` it replaces what the callback has chosen; elsewhere it replaces all. The member keeps partitions
        that it does not read.

        Raises:
            ConsumerError: one of them is not assigned to this member, comes twice, or cannot begin at its offset; or
                called in `on_revoke` or `on_lost`.
        """
        _assign(self._kafka_azimuth, partitions, instead=True)

    def incremental_assign(self, partitions: Iterable[KafkaPartition]) -> None:
        """As `assign`, in addition to the current ones.

        Raises:
            ConsumerError: as `assign`; or one of them is read already.
        """
        _assign(self._kafka_azimuth, partitions, instead=False)

    def unassign(self) -> None:
        """Read no partition; a member keeps them. In `on_revoke` and `on_lost`: no effect, reading ends afterwards."""
        parts = self._kafka_azimuth
        parts.check_usable()
        with parts.gate.turn():
            parts.check_usable()
            if parts.membership.giving_up:
                return
            if (choice := parts.membership.partitions.choice) is not None:
                choice.unassign()
            else:
                _stop_reading(parts, parts.fetching.partitions)

    def incremental_unassign(self, partitions: Iterable[KafkaPartition]) -> None:
        """Like `unassign`, for these partitions only.

        Raises:
            ConsumerError: one of them is not read.
        """
        parts = self._kafka_azimuth
        parts.check_usable()
        wanted = checked(partitions)
        with parts.gate.turn():
            parts.check_usable()
            keys = frozenset(map(key_of, wanted))
            choice = parts.membership.partitions.choice
            chosen = frozenset() if choice is None else keys & choice.chosen().keys()
            if choice is not None:
                choice.drop(chosen)
            assigned = parts.fetching.partitions
            for topic, partition in keys - chosen - assigned:
                # An eager consumer of librdkafka refuses the whole call, but takes it without a subscription.
                wrong = not assigned or parts.membership.by_hand or choice is not None or not parts.is_eager
                code = KafkaError._INVALID_ARG if wrong else KafkaError._STATE  # noqa: SLF001 -- librdkafka's own codes
                raise ConsumerError(f"{topic!r} partition {partition} is not assigned", code)
            if not parts.membership.giving_up:
                _stop_reading(parts, keys & assigned)

    def seek(self, partition: KafkaPartition) -> None:
        """Continue this partition at its offset; in `on_assign`: begin there.

        Raises:
            ConsumerError: the partition is not assigned, or no record can have this offset.
        """
        parts = self._kafka_azimuth
        parts.check_usable()
        key = key_of(partition)
        with parts.gate.turn():
            parts.check_usable()
            if parts.membership.partitions.begin_at(key, partition.offset):
                return
            if partition.offset == OFFSET_STORED and key in parts.fetching.partitions:
                raise ConsumerError(
                    "seek() to OFFSET_STORED: take the offset from committed()",
                    KafkaError._INVALID_ARG,  # noqa: SLF001 -- librdkafka's own code
                )
            parts.fetching.seek(key, partition.offset, parts.config.reset)

    def pause(self, partitions: Iterable[KafkaPartition]) -> None:
        """Deliver no records of these until `resume`; also allowed in `on_assign`.

        As in a bare consumer, partitions that are revoked or unassigned are still paused if they come back.
        """
        parts = self._kafka_azimuth
        parts.check_usable()
        with parts.gate.turn():
            parts.check_usable()
            parts.membership.partitions.pause([key_of(one) for one in checked(partitions)])

    def resume(self, partitions: Iterable[KafkaPartition]) -> None:
        """Deliver records of these partitions again."""
        parts = self._kafka_azimuth
        parts.check_usable()
        with parts.gate.turn():
            parts.check_usable()
            parts.membership.partitions.resume([key_of(one) for one in checked(partitions)])


def _without_offset(
    parts: ConsumerParts, given: list[KafkaPartition] | None, wanted: Mapping[TopicPartition, Offset]
) -> dict[TopicPartition, int]:
    if given is None:
        listed = dict.fromkeys(parts.fetching.partitions, OFFSET_INVALID)
    else:
        listed = {key_of(one): one.offset for one in given}
    return {key: at for key, at in listed.items() if key not in wanted}


def _assign(parts: ConsumerParts, partitions: Iterable[KafkaPartition], *, instead: bool) -> None:
    parts.check_usable()
    wanted = checked(partitions)
    with parts.gate.turn():
        parts.check_usable()
        membership = parts.membership
        if (choice := membership.partitions.choice) is not None:
            choice.assign(wanted, instead=instead)
        elif membership.giving_up:
            if wanted:
                raise ConsumerError("assign() while partitions are revoked: call it in on_assign, or after poll()")
        else:
            begins = begins_of(wanted, frozenset() if instead else parts.fetching.partitions)
            read = membership.assign_by_hand if membership.without_group else membership.read
            read(begins, instead=instead)


def _stop_reading(parts: ConsumerParts, partitions: frozenset[TopicPartition]) -> None:
    membership = parts.membership
    (membership.release_by_hand if membership.without_group else membership.stop_reading)(partitions)


def _commit_outside(
    parts: ConsumerParts,
    offsets: Mapping[TopicPartition, Offset],
    without_offset: Mapping[TopicPartition, Offset],
    *,
    asynchronous: bool,
    progress: bool,
) -> list[KafkaPartition] | None:
    client: Any = parts.fetching.client
    rest = kafka_partitions(without_offset)
    left = parts.commits.uncommitted(offsets) if progress else offsets
    done = {key: at for key, at in offsets.items() if key not in left}
    if asynchronous:
        unsent = kafka_partitions(dict.fromkeys(done, OFFSET_INVALID))
        client.commit(offsets=[*kafka_partitions(left), *unsent, *rest], asynchronous=True)
        parts.commits.note_sent(left)
        return None
    if not offsets:
        return []
    parts.commits.commit_again(left)  # the coordinator may store some of them although the call fails
    committed = client.commit(offsets=kafka_partitions(left), asynchronous=False) if left else []
    parts.commits.note(offsets)
    return sorted([*committed, *kafka_partitions(done), *rest], key=key_of)
