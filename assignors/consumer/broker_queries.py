"""What a consumer can be asked: where it stands, and what it asks the brokers."""

from collections.abc import Iterable
from typing import Any

from confluent_kafka import OFFSET_INVALID
from confluent_kafka import TopicPartition as KafkaPartition

from assignors.consumer.consumed_offsets import kafka_partitions, key_of
from assignors.consumer.fetching import Fetching
from assignors.consumer.rebalance_handling import COMMIT_S, Membership
from assignors.member.ownership import Ownership


class Questions:
    """The questions of confluent_kafka.Consumer, with its arguments; librdkafka's errors where it answers alone."""

    _fetching: Fetching
    _membership: Membership

    def assignment(self) -> list[KafkaPartition]:
        """The partitions that records are delivered of."""
        return [KafkaPartition(*key) for key in sorted(self._fetching.partitions)]

    def position(self, partitions: Iterable[KafkaPartition]) -> list[KafkaPartition]:
        """The offset after the last record delivered; OFFSET_INVALID where none was."""
        keys = [key_of(one) for one in partitions]
        found = self._fetching.positions()
        return kafka_partitions({key: found.get(key, OFFSET_INVALID) for key in keys})

    def committed(self, partitions: Iterable[KafkaPartition], timeout: float = -1) -> list[KafkaPartition]:
        """What the group has committed; OFFSET_INVALID where nothing.

        Raises:
            MembershipError: the coordinator did not answer in time (-1: 20 s), or there is no subscription.
        """
        keys = [key_of(one) for one in partitions]
        found = self._membership.joined().committed(keys, COMMIT_S if timeout < 0 else timeout)
        return kafka_partitions({key: found.get(key, OFFSET_INVALID) for key in keys})

    def ownership(self) -> Ownership:
        """Partitions and generation as the group has them now."""
        member = self._membership.member
        return Ownership() if member is None else member.ownership()

    def memberid(self) -> str:
        """The id that the broker gave; empty outside of a group."""
        return self.ownership().member_id

    def list_topics(self, topic: str | None = None, timeout: float = -1) -> Any:  # noqa: ANN401 - librdkafka's
        """Brokers, topics and partitions (`confluent_kafka.admin.ClusterMetadata`).

        Raises:
            KafkaException: no answer in time.
        """
        named = {} if topic is None else {"topic": topic}
        return self._fetching.client.list_topics(**named, timeout=timeout)

    def get_watermark_offsets(
        self,
        partition: KafkaPartition,
        timeout: float = -1,
        cached: bool = False,  # noqa: FBT001, FBT002 - as confluent-kafka has it
    ) -> tuple[int, int] | None:
        """The first offset of a log and its exclusive end; `cached` as last fetched, without a question.

        Raises:
            KafkaException: no answer in time, or there is no such partition.
        """
        found: tuple[int, int] | None = self._fetching.client.get_watermark_offsets(
            partition, timeout=timeout, cached=cached
        )
        return found

    def offsets_for_times(self, partitions: Iterable[KafkaPartition], timeout: float = -1) -> list[KafkaPartition]:
        """The first offset at or after the time in `offset` (milliseconds); OFFSET_END where no record is so late.

        Raises:
            KafkaException: no answer in time.
        """
        found: list[KafkaPartition] = self._fetching.client.offsets_for_times(list(partitions), timeout=timeout)
        return found
