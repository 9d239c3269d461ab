"""Brokers that do not answer for longer than a session take the partitions, in both kinds of consumer."""

import time
from collections.abc import Iterator
from typing import Any

import pytest
from confluent_kafka import Consumer, Producer

from assignors import GroupConsumer
from producer.testing import MockCluster
from tests.unit.assignors.consumer.bare_bench import COOPERATIVE, SHORT, Bench

LIMIT_S = 30.0
MEMBERS: dict[str, dict[str, str]] = {"eager": {}, "cooperative": COOPERATIVE, "static": {"group.instance.id": "one"}}
VALUES = [b"%d" % number for number in range(6)]


@pytest.fixture
def mock() -> Iterator[MockCluster]:
    """A topic of two partitions with a few records, and brokers that may go away."""
    with MockCluster() as made:
        made.wait_for_members(200)
        made.create("t", [1, 2])
        producer = Producer({"bootstrap.servers": made.bootstrap_servers})
        for number, value in enumerate(VALUES):
            producer.produce("t", value, partition=number % 2)
        assert producer.flush(10) == 0
        yield made


@pytest.mark.slow
@pytest.mark.parametrize(
    "more", [{}, COOPERATIVE, {"group.instance.id": "one"}], ids=["eager", "cooperative", "static"]
)
@pytest.mark.parametrize("kind", [Consumer, GroupConsumer])
def test_partitions_are_lost_once_while_nobody_answers_and_come_back(
    mock: MockCluster, kind: type, more: dict[str, str]
) -> None:
    """`on_lost` comes without a coordinator; later records come from the committed offsets, and are read once more."""
    bench, seen, values = Bench(mock, kind), list[tuple[str, int, int]](), list[bytes]()

    def noted(name: str) -> Any:
        return lambda one, partitions: seen.append((name, len(partitions), len(one.assignment())))

    def poll(until: Any) -> None:
        end = time.monotonic() + LIMIT_S
        while not until():
            assert time.monotonic() < end, (seen, values)
            message = one.poll(0.05)
            if message is not None and not message.error():
                values.append(message.value())

    one = bench.make(**SHORT, **more)
    one.subscribe(["t"], on_assign=noted("assigned"), on_revoke=noted("revoked"), on_lost=noted("lost"))
    poll(lambda: len(values) == len(VALUES))
    for broker in mock.racks:
        mock.down(broker)
    poll(lambda: any(name == "lost" for name, _, _ in seen))
    assert one.assignment() == []
    for broker in mock.racks:
        mock.up(broker)
    poll(lambda: len(values) == 2 * len(VALUES))
    assert sorted(values) == sorted(VALUES * 2)
    assert [(name, count) for name, count, _ in seen] == [("assigned", 2), ("lost", 2), ("assigned", 2)]
    bench.close()
