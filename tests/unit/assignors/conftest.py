"""Consumers on a cluster inside this process."""

from collections.abc import Iterator
from typing import Any

import pytest
from confluent_kafka import KafkaError, KafkaException, Message, Producer

from assignors import GroupConsumer, HRWAssignor
from producer.testing import MockCluster

RECORDS = 50


@pytest.fixture
def mock() -> Iterator[MockCluster]:
    """Three brokers, and a topic of three partitions with records that are numbered."""
    with MockCluster() as made:
        made.wait_for_members(100)
        made.create("t", [1, 2, 3])
        producer = Producer({"bootstrap.servers": made.bootstrap_servers, "log_level": 0})
        for number in range(RECORDS * 3):
            producer.produce("t", str(number // 3).encode(), partition=number % 3)
        assert producer.flush(20) == 0
        yield made


def consumer(mock: MockCluster, **more: Any) -> GroupConsumer:
    """A consumer of that topic's group, which commits nothing by itself."""
    config = {
        "bootstrap.servers": mock.bootstrap_servers,
        "group.id": "g",
        "auto.offset.reset": "earliest",
        "enable.auto.commit": False,
        "heartbeat.interval.ms": 100,
        "session.timeout.ms": 6000,
        "log_level": 0,
        **more,
    }
    return GroupConsumer(config, assignors=[HRWAssignor(agent="a")], member={"api_version": (2, 0)})


def end_client(one: GroupConsumer) -> None:
    """Let librdkafka fail for good at its next call."""
    broken = one._kafka_azimuth.fetching._consumer

    class Ended:
        """A consumer that has failed for good."""

        def consume(self, *_: object) -> list[Message]:
            raise KafkaException(KafkaError(KafkaError._FATAL))

        def __getattr__(self, name: str) -> Any:
            return getattr(broken, name)

    one._kafka_azimuth.fetching._consumer = Ended()  # type: ignore[assignment]  # stands in for the client
