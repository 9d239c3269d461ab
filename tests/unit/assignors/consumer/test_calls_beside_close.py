"""A call that waits while another thread closes the consumer is refused as one after `close`."""

import threading
from collections.abc import Callable
from typing import Any

import pytest
from confluent_kafka import TopicPartition

from assignors import GroupConsumer
from producer.testing import MockCluster
from tests.unit.assignors.consumer.bare_bench import SHORT, Bench, Raised, at, attempt
from tests.waiting import wait_until

CALLS: dict[str, Callable[[Any], object]] = {
    "assign": lambda one: one.assign([at(0, 0)]),
    "commit": lambda one: one.commit(offsets=[at(0, 1)], asynchronous=False),
    "incremental_assign": lambda one: one.incremental_assign([TopicPartition("t", 0, 0)]),
    "incremental_unassign": lambda one: one.incremental_unassign([at(0)]),
    "pause": lambda one: one.pause([at(0)]),
    "poll": lambda one: one.poll(5),
    "position": lambda one: one.position([at(0)]),
    "resume": lambda one: one.resume([at(0)]),
    "seek": lambda one: one.seek(at(0, 0)),
    "subscribe": lambda one: one.subscribe(["t"]),
    "unassign": lambda one: one.unassign(),
    "unsubscribe": lambda one: one.unsubscribe(),
}


@pytest.mark.parametrize("protocol", ["classic", "consumer"])
@pytest.mark.parametrize("name", CALLS)
def test_a_call_that_waited_for_close_is_refused_and_starts_nothing(
    cluster: MockCluster, name: str, protocol: str
) -> None:
    """`subscribe` joined the group: nothing ended this member, and its partitions were not read."""
    bench = Bench(cluster, GroupConsumer, protocol)
    one, _ = bench.joined(**SHORT)
    gate = one._kafka_azimuth.gate
    before = set(threading.enumerate())
    found: list[Any] = []
    beside = threading.Thread(target=lambda: found.append(attempt(lambda: CALLS[name](one))))
    with gate.turn():
        beside.start()
        wait_until(lambda: gate.waited_for, 20)
        one.close()
    beside.join(20)
    (result,) = found
    assert isinstance(result, Raised)
    assert isinstance(result.error, RuntimeError)
    assert set(threading.enumerate()) <= before
    bench.close()
