"""Reads and writes the workers topic on a cluster."""

from collections.abc import Mapping
from typing import Any, Final

from assignors.clients.compacted_topic import CompactedFeed, CompactedPublisher, TableTopic
from assignors.errors import PublishError, ScalingFileError
from assignors.scaling.workers_records import (
    DEFAULT_TOPIC,
    ScaledTopic,
    WorkersRecord,
    decode,
    decode_key,
    encode,
    encode_key,
)

_HELD: Final = TableTopic(
    noun="workers topic",
    client="autoscale",
    key=decode_key,
    record=decode,
    failure=PublishError,
    refusal=ScalingFileError,
)


class WorkersFeed(CompactedFeed[ScaledTopic, WorkersRecord]):
    """The current numbers, read without a consumer group.

    Contract: as `CompactedFeed`.
    """

    def __init__(self, kafka: Mapping[str, Any], topic: str = DEFAULT_TOPIC) -> None:
        """Prepare; connects at the first `refresh`.

        Args:
            kafka: librdkafka's properties, at least `bootstrap.servers`.
            topic: the workers topic.

        Raises:
            ScalingFileError: a property is invalid.
        """
        super().__init__(kafka, topic, _HELD)

    def workers(self, cluster: str, group: str) -> dict[str, int]:
        """Return the workers of each topic of a group on a cluster, without topics that have no number."""
        return {n.topic: r.workers for n, r in self.records.items() if (n.cluster, n.group) == (cluster, group)}


class WorkersPublisher(CompactedPublisher[ScaledTopic, WorkersRecord]):
    """Writes numbers to the workers topic, and creates the topic if it does not exist.

    Contract: `publish` returns when all in-sync replicas have the record, or raises.
    """

    def __init__(self, kafka: Mapping[str, Any], topic: str = DEFAULT_TOPIC) -> None:
        """Create the topic if needed.

        Args:
            kafka: librdkafka's properties, at least `bootstrap.servers`.
            topic: the workers topic.

        Raises:
            PublishError: no broker answers, or the topic cannot be created.
            ScalingFileError: a property is invalid.
        """
        super().__init__(kafka, topic, _HELD)

    def publish(self, name: ScaledTopic, record: WorkersRecord | None) -> None:
        """Write one number, or withdraw it with None.

        Raises:
            PublishError: the record did not arrive.
        """
        self.write(encode_key(name), None if record is None else encode(record), f"{name.topic}: its workers")
