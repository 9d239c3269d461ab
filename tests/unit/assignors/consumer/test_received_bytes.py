"""What a consumer received, from librdkafka's statistics."""

import asyncio
from collections.abc import Iterator
from typing import Any

import pytest
from confluent_kafka import Producer

from assignors import AIOGroupConsumer, GroupConsumer, HRWAssignor, MembershipError
from assignors.clients import ReceivedTraffic
from assignors.clients.broker_racks import BrokerRacks
from assignors.consumer.received_bytes import ReceivedBytes
from producer.testing import MockCluster
from tests.records import read
from tests.waiting import wait_until

RECORDS = 20
SIZE = 1_000


@pytest.fixture
def mock() -> Iterator[MockCluster]:
    """Two topics with records: one with a leader in each zone, one led in az-b."""
    with MockCluster() as made:
        made.wait_for_members(50)
        made.create("t", [1, 2, 3])
        made.create("u", [2])
        producer = Producer({"bootstrap.servers": made.bootstrap_servers, "log_level": 0})
        for _ in range(RECORDS):
            for topic, partition in (("t", 0), ("t", 1), ("t", 2), ("u", 0)):
                producer.produce(topic, b"v" * SIZE, partition=partition)
        assert producer.flush(20) == 0
        yield made


def config(mock: MockCluster, **more: Any) -> dict[str, Any]:
    """A consumer's configuration, in az-a."""
    return {
        "bootstrap.servers": mock.bootstrap_servers,
        "group.id": "g",
        "client.rack": "az-a",
        "auto.offset.reset": "earliest",
        "log_level": 0,
        **more,
    }


def consumer(mock: MockCluster, **more: Any) -> GroupConsumer:
    """A consumer with these settings."""
    return GroupConsumer(config(mock, **more), assignors=[HRWAssignor(agent="a")], member={"api_version": (2, 0)})


def test_a_consumer_states_its_bytes_by_topic_and_zone(mock: MockCluster) -> None:
    """The counterpart of the producer's traffic: what was read from other zones is paid, too."""
    reports: list[str] = []
    with consumer(mock, **{"statistics.interval.ms": 100, "stats_cb": reports.append}) as one:
        one.subscribe(["t", "u"])
        read(one, 4 * RECORDS)

        def counted() -> bool:
            assert one.poll(0.05) is None
            return sum(count.records for count in one.traffic().topics.values()) == 4 * RECORDS

        wait_until(counted, 20)
        found = one.traffic()
    assert found.topics == {
        ("t", "az-a"): (RECORDS, RECORDS * SIZE),
        ("t", "az-b"): (RECORDS, RECORDS * SIZE),
        ("t", "az-c"): (RECORDS, RECORDS * SIZE),
        ("u", "az-b"): (RECORDS, RECORDS * SIZE),
    }
    assert found.cross_zone_share == 0.75
    assert found.wire_bytes.keys() == {"az-a", "az-b", "az-c"}
    assert found.wire_bytes["az-b"] > 2 * RECORDS * SIZE
    assert found.wire_cost() is not None
    assert reports, "the program's own callback is still called"


def test_without_statistics_the_setting_is_named(mock: MockCluster) -> None:
    """A report costs time and waits in memory until the program polls, so it is not switched on unasked."""
    with consumer(mock) as one, pytest.raises(MembershipError, match=r"statistics\.interval\.ms"):
        one.traffic()


def test_the_asyncio_consumer_states_it_too(mock: MockCluster) -> None:
    """Its calls run in a pool, and its callbacks are coroutines."""
    reports: list[str] = []

    async def hear(text: str) -> None:
        reports.append(text)

    async def run() -> ReceivedTraffic:
        settings = config(mock, **{"statistics.interval.ms": 100, "stats_cb": hear})
        one = AIOGroupConsumer(settings, assignors=[HRWAssignor(agent="a")], member={"api_version": (2, 0)})
        await one.subscribe(["t"])
        found = ReceivedTraffic()
        async with asyncio.timeout(20):
            while found.local.records + found.cross.records < 3 * RECORDS or not reports:
                await one.consume(100, timeout=0.05)
                found = await one.traffic()
        await one.close()
        return found

    found = asyncio.run(run())
    assert {topic for topic, _ in found.topics} == {"t"}
    assert found.cross.records == 2 * RECORDS


def partition(broker: int, messages: int, size: int) -> dict[str, int]:
    """Statistics of a partition."""
    return {"broker": broker, "leader": broker, "rxmsgs": messages, "rxbytes": size}


def report(sent: int, **partitions: dict[str, int]) -> dict[str, Any]:
    """A report of one broker, which is also the coordinator, and one topic."""
    return {
        "brokers": {
            "b:1/1": {"nodeid": 1, "rxbytes": sent},
            "coordinator": {"nodeid": 1, "rxbytes": 10},
            "b:1/bootstrap": {"nodeid": -1, "rxbytes": 99},
        },
        "topics": {"t": {"partitions": {name[1:]: one for name, one in partitions.items()}}},
    }


def test_counts_never_fall_and_stay_with_the_broker_that_sent_them() -> None:
    """A leader moves, then a new client begins at zero, as after a fatal error."""
    counted = ReceivedBytes({"statistics.interval.ms": 5})
    counted.hear(report(100, p0=partition(1, 5, 50)))
    counted.hear(report(150, p0=partition(2, 8, 80)))
    assert counted._counts == {("t", 1): (5, 50), ("t", 2): (3, 30)}
    counted.hear(report(20, p0=partition(2, 2, 20)))
    assert counted._counts == {("t", 1): (5, 50), ("t", 2): (5, 50)}
    assert counted._wire == {1: 150 + 10 + 20}
    counted.hear(report(20, p0=partition(-1, 2, 20)))
    assert counted._counts == {("t", 1): (5, 50), ("t", 2): (5, 50)}


def test_a_zone_may_be_a_number() -> None:
    """The client takes it as text, and so do the brokers; compared as a number, each byte would cross zones."""
    counted = ReceivedBytes({"statistics.interval.ms": 5, "client.rack": 2})
    counted._racks = BrokerRacks({}, lambda: {1: "2"})
    counted.hear(report(100, p0=partition(1, 5, 50)))
    assert counted.traffic().local == (5, 50)


@pytest.mark.parametrize(
    ("interval", "counts"), [("0.0", False), ("0x0", False), (0.5, False), ("0x5", True), (5.0, True)]
)
def test_statistics_that_the_client_does_not_report_are_missed(interval: object, counts: bool) -> None:  # noqa: FBT001
    """`traffic()` returned zeros for ever, where it should name the property."""
    assert ReceivedBytes({"statistics.interval.ms": interval}).counts is counts
