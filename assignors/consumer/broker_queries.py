"""What a consumer can be asked: its position, its membership, and what the brokers know."""

import struct
from collections.abc import Iterable
from typing import Any, Final

from confluent_kafka import OFFSET_INVALID
from confluent_kafka import TopicPartition as KafkaPartition

from assignors.consumer.call_gate import CallGate
from assignors.consumer.configuration import Configuration
from assignors.consumer.consumed_offsets import kafka_partitions, key_of
from assignors.consumer.consumer_errors import consumer_error
from assignors.consumer.fetching import Fetching
from assignors.consumer.rebalance_handling import Membership
from assignors.errors import MembershipError
from assignors.member.ownership import Ownership

_COMMITTED_S: Final = 20.0
_GROUP_METADATA: Final = b"CGMDv2:"


class BrokerQueries:
    """The queries of confluent_kafka.Consumer, with its arguments; librdkafka's errors where it answers alone."""

    _config: Configuration
    _fetching: Fetching
    _gate: CallGate
    _membership: Membership

    def _check_usable(self) -> None:
        raise NotImplementedError

    def assignment(self) -> list[KafkaPartition]:
        """Return the partitions whose records are delivered."""
        self._check_usable()
        return [KafkaPartition(*key) for key in sorted(self._fetching.partitions)]

    def position(self, partitions: Iterable[KafkaPartition]) -> list[KafkaPartition]:
        """Return the offset after the last record delivered, or sought since; OFFSET_INVALID where there is neither."""
        self._check_usable()
        keys = [key_of(one) for one in partitions]
        with self._gate:
            found = self._fetching.positions()
        return kafka_partitions({key: found.get(key, OFFSET_INVALID) for key in keys})

    def committed(self, partitions: Iterable[KafkaPartition], timeout: float = -1) -> list[KafkaPartition]:
        """Return what the group has committed, with its metadata; OFFSET_INVALID where nothing.

        Raises:
            ConsumerError: the coordinator did not answer in time (-1: 20 s).
        """
        self._check_usable()
        wanted = list(partitions)
        member = self._membership.member
        if member is None:
            client: Any = self._fetching.client
            outside: list[KafkaPartition] = client.committed(wanted, timeout=timeout)
            return outside
        keys = [key_of(one) for one in wanted]
        try:
            found = member.committed_with_metadata(keys, _COMMITTED_S if timeout < 0 else timeout)
        except MembershipError as error:
            raise consumer_error(error) from error
        return kafka_partitions({key: found.get(key, OFFSET_INVALID) for key in keys})

    def ownership(self) -> Ownership:
        """Return partitions and generation as the group has them now."""
        return self._membership.owned()

    def memberid(self) -> str:
        """Return the id that the broker gave; empty outside of a group."""
        self._check_usable()
        return self.ownership().member_id

    def consumer_group_metadata(self) -> bytes:
        """Return what `Producer.send_offsets_to_transaction` needs, with generation and member id of this moment.

        The broker refuses a transaction with the metadata of a member that the group went on without: a zombie's.
        """
        self._check_usable()
        now = self.ownership()
        instance = self._config.member.get("group_instance_id")
        texts = [str(self._config.member["group_id"]), now.member_id]
        ends = b"\x01" if instance is None else b"\x00" + str(instance).encode() + b"\x00"
        named = b"".join(one.encode() + b"\x00" for one in texts)
        return _GROUP_METADATA + struct.pack("<i", now.generation) + named + ends

    def set_sasl_credentials(self, username: str, password: str) -> None:
        """Log in with these from the next connection on, both for records and for the membership."""
        self._check_usable()
        self._fetching.set_sasl_credentials(username, password)
        self._membership.set_sasl_credentials(username, password)

    def cluster_id(self, timeout: float = -1) -> str:
        """Return the cluster's id.

        Raises:
            KafkaException: no answer in time.
        """
        self._check_usable()
        return self._fetching.client.cluster_id(timeout=timeout)

    def list_topics(self, topic: str | None = None, timeout: float = -1) -> Any:  # noqa: ANN401 -- librdkafka's
        """Return brokers, topics and partitions (`confluent_kafka.admin.ClusterMetadata`).

        Raises:
            KafkaException: no answer in time.
        """
        self._check_usable()
        named = {} if topic is None else {"topic": topic}
        return self._fetching.client.list_topics(**named, timeout=timeout)

    def get_watermark_offsets(
        self,
        partition: KafkaPartition,
        timeout: float = -1,
        cached: bool = False,  # noqa: FBT001, FBT002 -- as confluent-kafka has it
    ) -> tuple[int, int] | None:
        """Return the first offset of a log and its exclusive end; with `cached` as last fetched, without a request.

        Raises:
            KafkaException: no answer in time, or there is no such partition.
        """
        self._check_usable()
        found: tuple[int, int] | None = self._fetching.client.get_watermark_offsets(
            partition, timeout=timeout, cached=cached
        )
        return found

    def offsets_for_times(self, partitions: Iterable[KafkaPartition], timeout: float = -1) -> list[KafkaPartition]:
        """Return the first offset at or after the time in `offset` (milliseconds); OFFSET_END where no record is later.

        Raises:
            KafkaException: no answer in time.
        """
        self._check_usable()
        found: list[KafkaPartition] = self._fetching.client.offsets_for_times(list(partitions), timeout=timeout)
        return found
