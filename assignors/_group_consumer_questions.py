"""What a consumer can ask the brokers without being in a group."""

from collections.abc import Iterable
from typing import Any

from confluent_kafka import TopicPartition as KafkaPartition

from assignors._group_consumer_fetching import Fetching


class Questions:
    """The questions of confluent_kafka.Consumer that librdkafka answers alone, with its arguments and errors."""

    _fetching: Fetching

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
