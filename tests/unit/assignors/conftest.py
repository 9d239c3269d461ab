"""Consumers on a cluster inside this process."""

import time
from collections.abc import Iterator
from typing import Any

import pytest
from confluent_kafka import Message, Producer

from assignors import GroupConsumer, HRWAssignor
from producer.testing import MockCluster

RECORDS = 50


@pytest.fixture
def mock() -> Iterator[MockCluster]:
    """Three brokers, and a topic of three partitions with records that are numbered."""
    with MockCluster() as made:
        made.create("t", [1, 2, 3])
        producer = Producer({"bootstrap.servers": made.bootstrap_servers, "log_level": 0})
        for number in range(RECORDS * 3):
            producer.produce("t", str(number // 3).encode(), partition=number % 3)
        assert producer.flush(20) == 0
        yield made


def consumer(mock: MockCluster, **more: Any) -> GroupConsumer:  # noqa: ANN401 - settings
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


def read(one: GroupConsumer, count: int, timeout_s: float = 20.0) -> list[Message]:
    """So many records."""
    found: list[Message] = []
    until = time.monotonic() + timeout_s
    while len(found) < count:
        assert time.monotonic() < until, f"{len(found)} of {count} records"
        found += one.consume(count - len(found), 0.2)
    assert not [m.error() for m in found if m.error() is not None]
    return found


def offsets(messages: list[Message]) -> dict[int, list[int]]:
    """Offsets of each partition in the order of delivery."""
    found: dict[int, list[int]] = {}
    for one in messages:
        found.setdefault(one.partition() or 0, []).append(one.offset() or 0)
    return found
