"""A producer in az-a, and the delivery reports of its records."""

from collections import Counter
from typing import Any

from confluent_kafka import KafkaError, Message

from producer.testing import MockCluster

TOPIC = "flights"


def config(mock: MockCluster, **more: Any) -> dict[str, Any]:  # noqa: ANN401 - settings of any type
    """Configuration of a producer in az-a that waits for nothing."""
    return {"bootstrap.servers": mock.bootstrap_servers, "client.rack": "az-a", "linger.ms": 1, "log_level": 0, **more}


class Deliveries:
    """Collects delivery reports by partition."""

    def __init__(self) -> None:
        self.partitions: Counter[int | None] = Counter()
        self.errors: list[KafkaError] = []

    def __call__(self, error: KafkaError | None, message: Message) -> None:
        """Take one."""
        if error is not None:
            self.errors.append(error)
        self.partitions[message.partition()] += 1
