"""A producer in az-a, and the delivery reports of its records."""

import threading
from collections import Counter
from typing import Any

import pytest
from confluent_kafka import KafkaError, Message

from producer.clients import leader_requests
from producer.metadata_requests import read_leaders
from producer.testing import MockCluster

TOPIC = "flights"


def config(mock: MockCluster, **more: Any) -> dict[str, Any]:
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


def leaders_held_back(monkeypatch: pytest.MonkeyPatch) -> threading.Event:
    """Let each reading of leaders wait until the event is set."""
    may_read = threading.Event()

    def read(*arguments: Any, **more: Any) -> Any:
        assert may_read.wait(60)
        return read_leaders(*arguments, **more)

    monkeypatch.setattr(leader_requests, "read_leaders", read)
    return may_read
