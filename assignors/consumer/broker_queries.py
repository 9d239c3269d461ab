"""The queries of a consumer: its position, its membership, and metadata of the brokers."""

import struct
import time
from collections.abc import Iterable
from functools import partial
from typing import Any, Final

from confluent_kafka import TopicPartition as KafkaPartition

from assignors.clients.log_offsets import OffsetWithMetadata
from assignors.consumer.background_calls import call_apart
from assignors.consumer.consumed_offsets import checked, key_of, with_offsets
from assignors.consumer.consumer_errors import ArgumentError, consumer_error
from assignors.consumer.consumer_parts import ConsumerParts
from assignors.consumer.manual_assignment import ManualAssignment
from assignors.errors import MembershipError
from assignors.member.broker_assigned_member import BrokerAssignedMember
from assignors.member.broker_assigned_offsets import committed_by_partition, with_metadata
from assignors.member.group_member import GroupMember
from assignors.member.ownership import Ownership
from assignors.planner.topics_and_members import TopicPartition

_COMMITTED_S: Final = 20.0
_LEAST_S: Final = 1.0  # for the second request, if the first one has used all the time
_GROUP_METADATA: Final = b"CGMDv2:"


class BrokerQueries:
    """The queries of confluent_kafka.Consumer, with its arguments; librdkafka's own answers raise its errors."""

    _kafka_azimuth: ConsumerParts

    def assignment(self) -> list[KafkaPartition]:
        """Return the partitions that are read, with the offsets that `assign` gave; OFFSET_STORED without one."""
        parts = self._kafka_azimuth
        parts.check_usable()
        assigned = parts.membership.partitions.assigned(by_hand=parts.membership.by_hand)
        return [KafkaPartition(*key, assigned[key]) for key in sorted(assigned)]

    def position(self, partitions: Iterable[KafkaPartition]) -> list[KafkaPartition]:
        """Return the offset after the last delivered record; OFFSET_INVALID before one, also after a later seek."""
        parts = self._kafka_azimuth
        parts.check_usable()
        asked = checked(partitions)
        with parts.gate.turn():
            parts.check_usable()
            found = parts.fetching.reached_offsets()
        return with_offsets(asked, found)

    def committed(self, partitions: Iterable[KafkaPartition], timeout: float = -1) -> list[KafkaPartition]:
        """Return the group's committed offsets, with their metadata; OFFSET_INVALID if there is none.

        Raises:
            ConsumerError: the coordinator did not answer in time (-1: 20 s), or the timeout is not a number.
        """
        parts = self._kafka_azimuth
        parts.check_usable()
        wanted = checked(partitions)
        member = parts.membership.member
        if member is None or isinstance(member, ManualAssignment):
            client: Any = parts.fetching.client
            outside: list[KafkaPartition] = client.committed(wanted, timeout=timeout)
            return outside
        keys = [key_of(one) for one in wanted]
        if not (timeout < 0 or timeout >= 0):
            raise ArgumentError(f"committed(): timeout={timeout!r}, need a number of seconds")
        timeout_s = _COMMITTED_S if timeout < 0 else float(timeout)  # of a Decimal, too
        try:
            if (
                isinstance(member, BrokerAssignedMember)
                and (answers := _by_partition(member, keys, timeout_s)) is not None
            ):
                return answers
            found = _offsets_of_group(parts, member, keys, timeout_s)
        except MembershipError as error:
            raise consumer_error(error) from error
        return with_offsets([KafkaPartition(*key) for key in keys], found)

    def ownership(self) -> Ownership:
        """Return the current partitions and generation of the member."""
        return self._kafka_azimuth.membership.owned()

    def memberid(self) -> str | None:
        """Return the member id from the broker; None outside a group."""
        parts = self._kafka_azimuth
        parts.check_usable()
        return parts.membership.owned().member_id or None

    def consumer_group_metadata(self) -> bytes:
        """Return the argument of `Producer.send_offsets_to_transaction`, with the current generation and member id.

        The broker refuses a transaction with the metadata of a member that is no longer in the group.
        """
        parts = self._kafka_azimuth
        parts.check_usable()
        if isinstance(member := parts.membership.member, BrokerAssignedMember):
            try:
                return member.group_metadata()
            except MembershipError as error:
                raise consumer_error(error) from error
        now = parts.membership.owned()
        instance = parts.config.member.get("group_instance_id")
        texts = [str(parts.config.member["group_id"]), now.member_id]
        ends = b"\x01" if instance is None else b"\x00" + str(instance).encode() + b"\x00"
        named = b"".join(one.encode() + b"\x00" for one in texts)
        return _GROUP_METADATA + struct.pack("<i", now.generation) + named + ends

    def set_sasl_credentials(self, username: str, password: str) -> None:
        """Use these credentials from the next connection on, both for records and for the membership."""
        parts = self._kafka_azimuth
        parts.check_usable()
        parts.fetching.set_sasl_credentials(username, password)
        parts.membership.set_sasl_credentials(username, password)
        parts.received.set_sasl_credentials(username, password)

    def cluster_id(self, timeout: float = -1) -> str:
        """Return the cluster's id.

        Raises:
            KafkaException: no answer in time.
        """
        parts = self._kafka_azimuth
        parts.check_usable()
        return parts.fetching.client.cluster_id(timeout=timeout)

    def list_topics(self, topic: str | None = None, timeout: float = -1) -> Any:  # noqa: ANN401 -- librdkafka's
        """Return brokers, topics and partitions (`confluent_kafka.admin.ClusterMetadata`).

        Raises:
            KafkaException: no answer in time.
        """
        parts = self._kafka_azimuth
        parts.check_usable()
        named = {} if topic is None else {"topic": topic}
        return parts.fetching.client.list_topics(**named, timeout=timeout)

    def get_watermark_offsets(
        self,
        partition: KafkaPartition,
        timeout: float = -1,
        cached: bool = False,  # noqa: FBT001, FBT002 -- as confluent-kafka has it
    ) -> tuple[int, int] | None:
        """Return the first offset of a log and its exclusive end; `cached` returns the last known values at once.

        Raises:
            KafkaException: no answer in time, or there is no such partition.
        """
        parts = self._kafka_azimuth
        parts.check_usable()
        found: tuple[int, int] | None = parts.fetching.client.get_watermark_offsets(
            partition, timeout=timeout, cached=cached
        )
        return found

    def offsets_for_times(self, partitions: Iterable[KafkaPartition], timeout: float = -1) -> list[KafkaPartition]:
        """Return the first offset at or after the time in `offset` (milliseconds); OFFSET_END if all are earlier.

        Raises:
            KafkaException: no answer in time.
        """
        parts = self._kafka_azimuth
        parts.check_usable()
        found: list[KafkaPartition] = parts.fetching.client.offsets_for_times(checked(partitions), timeout=timeout)
        return found


def _offsets_of_group(
    parts: ConsumerParts, member: GroupMember | BrokerAssignedMember, keys: list[TopicPartition], timeout_s: float
) -> dict[TopicPartition, OffsetWithMetadata]:
    """Ask through the membership; where it closes or has failed, without it."""
    until = time.monotonic() + timeout_s
    if not member.ends:
        try:
            return call_apart(partial(member.committed_with_metadata, keys, timeout_s))
        except (MembershipError, RuntimeError):  # RuntimeError: kafka-python's client was closed meanwhile
            if not member.ends:
                raise
    try:
        left_s = max(_LEAST_S, until - time.monotonic())
        return with_metadata(committed_by_partition(parts.fetching.client, keys, left_s))
    except RuntimeError:  # another thread has closed the client
        parts.check_usable()
        raise


def _by_partition(
    member: BrokerAssignedMember, keys: list[TopicPartition], timeout_s: float
) -> list[KafkaPartition] | None:
    """Ask through the membership, where each partition may have its own error; None if the membership has ended."""
    if member.ends:
        return None
    try:
        return call_apart(partial(member.committed_by_partition, keys, timeout_s))
    except (MembershipError, RuntimeError):  # RuntimeError: librdkafka's client was closed meanwhile
        if not member.ends:
            raise
        return None
