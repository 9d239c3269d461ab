"""Which partitions have a leader that takes no records."""

import json
from typing import Any

import pytest

from producer import AZAwareProducer, PolicyError
from producer.clients.stalled_partitions import StalledPartitions
from producer.testing import MockCluster
from tests.unit.producer.deliveries import TOPIC, Deliveries, config
from tests.waiting import wait_until

IDLE = {"msgq_cnt": 0, "xmit_msgq_cnt": 0, "msgs_inflight": 0, "txmsgs": 7}
# Per case: timeout in seconds, the reports at 0, 1, 2, ... seconds, and the reports that find the partition stalled.
CASES: dict[str, tuple[float, list[dict[str, int]], list[int]]] = {
    "never, where it is off": (0, [{"msgq_cnt": 5}] * 9, []),
    "without records": (2, [{}] * 9, []),
    "a queue that stays": (2, [{"msgq_cnt": 5}] * 5, [2, 3, 4]),
    "a queue that grows": (2, [{"xmit_msgq_cnt": number + 1} for number in range(5)], [2, 3, 4]),
    "a queue that drains as it grows": (2, [{"xmit_msgq_cnt": 5, "txmsgs": number} for number in range(5)], []),
    "sent, and not answered": (2, [{"msgs_inflight": 3, "txmsgs": 10}] * 4, [2, 3]),
    "more in flight, none answered": (2, [{"msgs_inflight": n, "txmsgs": 7 + n} for n in (1, 2, 3, 4)], [2, 3]),
    "answered at last": (2, [{"msgs_inflight": 3, "txmsgs": 10}] * 3 + [{"txmsgs": 10}], [2]),
    "empty in between": (2, [{"msgq_cnt": 5}, {"msgq_cnt": 5}, {}, {"msgq_cnt": 5}, {"msgq_cnt": 5}], []),
}


@pytest.mark.parametrize(("timeout_s", "reports", "expected"), CASES.values(), ids=CASES)
def test_a_partition_stalls_when_its_records_make_no_progress(
    timeout_s: float, reports: list[dict[str, int]], expected: list[int]
) -> None:
    """A queue alone is no sign of it: a busy partition always has one."""
    stalled = StalledPartitions(timeout_s)
    found = [stalled.update("t", {"-1": IDLE, "3": {**IDLE, **one}}, at) for at, one in enumerate(reports)]
    assert [at for at, one in enumerate(found) if one == {3}] == expected
    assert set().union(*found) <= {3}


def report(at_s: float, **waiting: int) -> str:
    """A report of librdkafka about three partitions of the zone, where the first one has these queues."""
    one = {**IDLE, "msgq_bytes": 0, "xmit_msgq_bytes": 0, "txbytes": 0, "leader": 1}
    partitions = {"0": {**one, **waiting}, "1": one, "2": one}
    topics = {TOPIC: {"partitions": partitions, "batchsize": {"sum": 0}}}
    brokers = {"b": {"nodeid": 1, "state": "UP", "stateage": 1, "txbytes": 1}}
    return json.dumps({"ts": int(at_s * 1e6), "brokers": brokers, "topics": topics})


@pytest.mark.parametrize(
    ("options", "avoids"),
    [
        ({"availability_timeout_ms": 1_000}, True),
        ({}, False),
        ({"availability_timeout_ms": 1_000, "adaptive": False}, False),
    ],
    ids=str,
)
def test_records_without_a_key_leave_a_stalled_partition_aside(
    mock: MockCluster, options: dict[str, Any], *, avoids: bool
) -> None:
    """Each record for it waits for its leader, while other leaders of the zone are idle."""
    mock.create(TOPIC, [1, 1, 1])
    settings = config(mock, **{"statistics.interval.ms": 600_000, "linger.ms": 500})
    producer = AZAwareProducer(settings, batch_bytes=1, **options)
    producer.produce(TOPIC, b"v")
    assert producer.flush(60) == 0
    chosen: set[int] = set()
    for at_s in (0.0, 2.0):
        producer._kafka_azimuth.statistics.on_report(report(at_s, msgs_inflight=3))
    partitioner = producer._kafka_azimuth.topics_in_use.partitioners[TOPIC]
    for _ in range(200):
        partitioner.advance()
        chosen.add(partitioner.destinations.partition)
    assert chosen == ({1, 2} if avoids else {0, 1, 2})
    producer.close()


@pytest.mark.parametrize("timeout_ms", [100, 0])
def test_a_broker_that_does_not_answer_is_avoided_until_it_does(timeout_ms: int) -> None:
    """By the client's own reports: one short record in flight makes no queue, so only the timeout shows it."""
    with MockCluster(("az-a", "az-a")) as slow:
        slow.create(TOPIC, [1, 2])
        settings = config(slow, **{"statistics.interval.ms": 20})
        producer = AZAwareProducer(settings, availability_timeout_ms=timeout_ms)
        producer.produce(TOPIC, b"v")
        producer.produce(TOPIC, b"v", partition=1)  # the connection is made while the broker is fast
        assert producer.flush(10) == 0
        slow.delay(2, 500)
        seen = Deliveries()
        producer.produce(TOPIC, b"v", partition=1, on_delivery=seen)
        partitioner = producer._kafka_azimuth.topics_in_use.partitioners[TOPIC]
        drawn: list[set[int]] = []

        def draw() -> set[int]:
            producer.poll(0.01)
            found = set()
            for _ in range(100):
                partitioner.advance()
                found.add(partitioner.destinations.partition)
            drawn.append(found)
            return found

        wait_until(lambda: draw() == {0} if timeout_ms else draw() and seen.partitions, 30)
        wait_until(lambda: draw() == {0, 1}, 30)
        assert ({0} in drawn) == bool(timeout_ms)
        assert seen.partitions == {1: 1}  # it is used again because the record was answered
        producer.close()


@pytest.mark.parametrize("adaptive", [True, False])
def test_queues_weigh_only_if_the_producer_adapts(mock: MockCluster, *, adaptive: bool) -> None:
    """As Java's `partitioner.adaptive.partitioning.enable`."""
    mock.create(TOPIC, [1, 1, 1])
    settings = config(mock, **{"statistics.interval.ms": 600_000})
    producer = AZAwareProducer(settings, batch_bytes=1, adaptive=adaptive)
    producer.produce(TOPIC, b"v")
    assert producer.flush(60) == 0
    producer._kafka_azimuth.statistics.on_report(report(0.0, msgq_cnt=1, msgq_bytes=1 << 40))
    partitioner = producer._kafka_azimuth.topics_in_use.partitioners[TOPIC]
    chosen = set()
    for _ in range(200):
        partitioner.advance()
        chosen.add(partitioner.destinations.partition)
    assert chosen == ({1, 2} if adaptive else {0, 1, 2})
    producer.close()


@pytest.mark.parametrize(
    ("options", "more", "problem"),
    [
        ({"availability_timeout_ms": -1}, {}, "availability_timeout_ms=-1, need 0 or more"),
        ({"availability_timeout_ms": 5}, {"statistics.interval.ms": 0}, "set statistics.interval.ms above 0"),
    ],
    ids=["negative", "without statistics"],
)
def test_a_timeout_that_cannot_work_is_refused(
    mock: MockCluster, options: dict[str, Any], more: dict[str, Any], problem: str
) -> None:
    """Without reports no partition would ever count as stalled."""
    with pytest.raises(PolicyError, match=problem):
        AZAwareProducer(config(mock, **more), **options)
