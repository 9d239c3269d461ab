"""Commits offsets of a KIP-848 group under a member's epoch, and reads the group's offsets, through librdkafka."""

import time
from collections.abc import Iterable, Mapping, Sequence
from typing import Final

from confluent_kafka import Consumer, KafkaError, KafkaException
from confluent_kafka import TopicPartition as KafkaPartition

from assignors.clients.log_offsets import Offset, OffsetWithMetadata
from assignors.errors import FencedError, MembershipError
from assignors.member.ownership import OwnershipCell
from assignors.planner.topics_and_members import TopicPartition

_STALE_TRIES: Final = 10
_STALE_S: Final = 0.1
_FENCED: Final = frozenset(
    {
        KafkaError.FENCED_INSTANCE_ID,
        KafkaError.FENCED_MEMBER_EPOCH,
        KafkaError.ILLEGAL_GENERATION,
        KafkaError.UNKNOWN_MEMBER_ID,
    }
)


class BrokerAssignedOffsets:
    """Commits and reads offsets with the client of a member.

    Contract: only the thread that polls the client calls the methods. Without a coordinator, librdkafka ends a commit
    with an error after 45 s.

    Args:
        consumer: the member's client.
        cell: the member's ownership: only owned partitions are committed.
        group: the group's name, for messages.
    """

    def __init__(self, consumer: Consumer, cell: OwnershipCell, group: str) -> None:
        self._consumer = consumer
        self._cell = cell
        self._group = group

    def commit(self, offsets: Mapping[TopicPartition, Offset]) -> None:
        """Commit, and wait for the answer.

        Raises:
            NotOwnedError: a partition is not owned; nothing was committed.
            FencedError: the group continued without this member.
            MembershipError: the coordinator did not answer in time, or refused.
        """
        self._cell.value.check_owns(offsets.keys())
        refused = self._send(offsets)
        for _ in range(_STALE_TRIES):
            if refused is None or refused.code() != KafkaError.STALE_MEMBER_EPOCH:
                break
            # The broker raised the epoch in an answer that is on its way; the partitions are still this member's.
            time.sleep(_STALE_S)
            refused = self._send(offsets)
        if refused is not None:
            raise self._refused(refused, len(offsets)) from KafkaException(refused)

    def _send(self, offsets: Mapping[TopicPartition, Offset]) -> KafkaError | None:
        """Commit once; return the error."""
        try:
            answered = self._consumer.commit(offsets=_with_offsets(offsets), asynchronous=False)
        except KafkaException as error:
            found: KafkaError = error.args[0]
            return found
        return next((one.error for one in answered or [] if one.error is not None), None)

    def committed(self, partitions: Iterable[TopicPartition], timeout_s: float) -> list[KafkaPartition]:
        """As `committed_by_partition`."""
        return committed_by_partition(self._consumer, partitions, timeout_s)

    def _refused(self, error: KafkaError, count: int) -> MembershipError:
        if error.code() in _FENCED:
            return FencedError(
                f"group {self._group!r} went on without this member: {count} offsets were not committed, their "
                "partitions have another owner"
            )
        return MembershipError(f"{count} offsets were not committed: {error.str()}")


def committed_by_partition(
    client: Consumer, partitions: Iterable[TopicPartition], timeout_s: float
) -> list[KafkaPartition]:
    """Return the offsets that the client's group has committed, OFFSET_INVALID if there is none; each with its error.

    Raises:
        MembershipError: the coordinator did not answer in time, or refused.
    """
    asked = [KafkaPartition(*key) for key in partitions]
    try:
        found: list[KafkaPartition] = client.committed(asked, timeout=timeout_s) if asked else []
    except KafkaException as error:
        raise MembershipError(f"the offsets of {len(asked)} partitions could not be read: {error}") from error
    return found


def with_metadata(answers: Sequence[KafkaPartition]) -> dict[TopicPartition, OffsetWithMetadata]:
    """Return the committed offsets of some answers; partitions without one are left out.

    Raises:
        MembershipError: a partition has an error.
    """
    if refused := next((one.error for one in answers if one.error is not None), None):
        text = f"the offsets of {len(answers)} partitions could not be read: {refused}"
        raise MembershipError(text) from KafkaException(refused)
    return {
        (one.topic, one.partition): OffsetWithMetadata(
            one.offset, one.metadata or "", -1 if one.leader_epoch is None else one.leader_epoch
        )
        for one in answers
        if one.offset >= 0
    }


def _with_offsets(offsets: Mapping[TopicPartition, Offset]) -> list[KafkaPartition]:
    return [
        KafkaPartition(*key, at.offset, at.metadata, at.leader_epoch)
        if isinstance(at, OffsetWithMetadata)
        else KafkaPartition(*key, at)
        for key, at in offsets.items()
    ]
