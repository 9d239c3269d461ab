"""Bytes on the wire by zone and topic, from librdkafka's reports."""

import asyncio
import json

import pytest

from producer import AZAwareAIOProducer, AZAwareProducer
from producer.clients import unpolled_reports
from producer.clients.client_statistics import Statistics
from producer.clients.leader_watcher import LeaderWatcher
from producer.decisions.producer_settings import ZonePolicy
from producer.metadata_requests import Topology
from producer.partitioning.topics_in_use import TopicsInUse
from producer.testing import MockCluster
from tests.unit.producer.deliveries import TOPIC, config
from tests.waiting import wait_until


@pytest.mark.parametrize("sends", [False, True], ids=["no record", "own partitions only"])
def test_reports_are_taken_from_a_producer_that_loads_no_topic(
    mock: MockCluster, monkeypatch: pytest.MonkeyPatch, *, sends: bool
) -> None:
    """The thread that takes them started with the first topic only, and they filled the memory until then."""
    monkeypatch.setattr(unpolled_reports, "_GRACE_S", 0.0)
    mock.create(TOPIC, [1])
    fast = config(mock, **{"statistics.interval.ms": 20})
    producer = AZAwareProducer(fast, refresh_s=0.1, racks=mock.racks)
    if sends:
        producer.produce(TOPIC, b"v", partition=0)
    wait_until(lambda: producer.traffic().wire_bytes)
    producer.close()

    async def run() -> None:
        async with AZAwareAIOProducer(fast, refresh_s=0.1, racks=mock.racks) as aio:
            if sends:
                await aio.produce(TOPIC, b"v", partition=0)
            while not aio.traffic().wire_bytes:  # noqa: ASYNC110 - the other thread knows no event
                await asyncio.sleep(0.01)

    asyncio.run(asyncio.wait_for(run(), 120))


def test_bytes_on_the_wire_never_fall(mock: MockCluster) -> None:
    """The estimate before the first report was larger than the report, which Prometheus takes for a restart."""
    mock.create(TOPIC, [1])
    producer = AZAwareProducer(config(mock, **{"statistics.interval.ms": 50, "compression.type": "gzip"}))
    seen = [0]

    def wire() -> int:
        producer.poll(0)
        seen.append(sum(one.bytes for one in producer.traffic().wire_topics.values()))
        return seen[-1]

    for _ in range(20):
        producer.produce(TOPIC, b"v" * 10_000)
        wire()
    assert producer.flush(60) == 0
    wait_until(lambda: wire() and producer._kafka_azimuth.statistics._topics)
    wire()
    assert seen == sorted(seen)
    assert not producer.traffic().wire_estimated
    producer.close()


def test_bytes_on_the_wire_do_not_fall_when_librdkafka_forgets_a_broker_or_a_topic() -> None:
    """It drops a broker that the metadata lacks for a while, with its counters, which then begin at 0 again."""
    in_use = TopicsInUse(ZonePolicy(rack="az-a"))
    topology = Topology({}, {1: "az-a"})
    statistics = Statistics(in_use, LeaderWatcher(lambda: None, in_use, topology), topology)
    statistics.with_defaults({})
    seen = []
    for sent in (100, 250, None, 0, 40, 60):
        brokers = {} if sent is None else {"1": {"nodeid": 1, "state": "UP", "stateage": 1, "txbytes": sent}}
        partition = {
            "txmsgs": sent,
            "txbytes": sent,
            "leader": 1,
            "msgq_bytes": 0,
            "xmit_msgq_bytes": 0,
            "msgs_inflight": 0,
        }
        topics = {} if sent is None else {TOPIC: {"partitions": {"0": partition}, "batchsize": {"sum": 10}}}
        statistics.on_report(json.dumps({"ts": 0, "brokers": brokers, "topics": topics}))
        traffic = statistics.complete(in_use.traffic())
        seen.append((traffic.wire_bytes["az-a"], traffic.wire_topics[TOPIC, "az-a"].records))
    assert seen == [(total, total) for total in (100, 250, 250, 250, 290, 310)]


def test_bytes_on_the_wire_stay_in_the_zone_that_their_broker_had() -> None:
    """They moved from "unknown" when racks became known, and with each broker that came back in another rack."""
    in_use = TopicsInUse(ZonePolicy(rack="az-a"))
    topology = Topology({}, {})
    statistics = Statistics(in_use, LeaderWatcher(lambda: None, in_use, topology), topology)
    statistics.with_defaults({})
    seen, costs = [], []
    for sent, rack in enumerate([None, "az-b", "az-a"], start=1):
        topology._racks = {1: rack}
        brokers = {"1": {"nodeid": 1, "state": "UP", "stateage": 1, "txbytes": sent * 100}}
        statistics.on_report(json.dumps({"ts": 0, "brokers": brokers, "topics": {}}))
        seen.append(statistics.complete(in_use.traffic()).wire_bytes)
        costs.append(statistics.complete(in_use.traffic()).wire_cost() or 0.0)
    assert seen == [{"unknown": 100}, {"unknown": 100, "az-b": 100}, {"unknown": 100, "az-b": 100, "az-a": 100}]
    assert costs == sorted(costs)


def test_records_of_a_topic_wait_for_the_racks_of_their_leaders(mock: MockCluster) -> None:
    """A new broker's rack is read a second later: until then its bytes cost nothing, and stayed so for ever."""
    mock.create(TOPIC, [1, 2])
    producer = AZAwareProducer(config(mock, **{"statistics.interval.ms": 600_000}))
    idle = {"msgq_bytes": 0, "xmit_msgq_bytes": 0, "msgs_inflight": 0}
    topology = producer._kafka_azimuth.topology
    seen = []
    for records, racks in (
        (5, {1: "az-a"}),
        (6, {1: "az-a"}),
        (7, {1: "az-a", 2: "az-b"}),
        (8, {1: "az-a", 2: "az-b"}),
    ):
        topology._racks = dict(racks)
        partitions = {
            str(number): {**idle, "txmsgs": records, "txbytes": records * 50, "leader": leader}
            for number, leader in enumerate((1, 2))
        }
        brokers = {"2": {"nodeid": 2, "state": "UP", "stateage": 1, "txbytes": records * 100}}
        topics = {TOPIC: {"partitions": partitions, "batchsize": {"sum": 100}}}
        producer._kafka_azimuth.statistics.on_report(json.dumps({"ts": 0, "brokers": brokers, "topics": topics}))
        traffic = producer.traffic()
        seen.append((traffic.wire_bytes, traffic.wire_topics))
    producer.close()
    assert seen[0] == seen[1] == ({}, {})
    assert seen[2] == ({"az-b": 700}, {(TOPIC, "az-a"): (7, 150), (TOPIC, "az-b"): (7, 150)})
    assert seen[3] == ({"az-b": 800}, {(TOPIC, "az-a"): (8, 200), (TOPIC, "az-b"): (8, 200)})


@pytest.mark.parametrize(
    ("later", "counted"),
    [
        pytest.param([(10, 3), (6, 2)], {"az-a": 10, "az-b": 6}, id="a leader moves"),
        pytest.param([(2, 1), (1, 2)], {"az-a": 12, "az-b": 6}, id="the topic is recreated"),
    ],
)
def test_records_that_wait_for_a_rack_belong_to_the_leader_that_took_them(
    mock: MockCluster, later: list[tuple[int, int]], counted: dict[str, int]
) -> None:
    """They were added to the leader at the end of the wait, and those of a topic that was recreated were lost."""
    mock.create(TOPIC, [1, 2])
    producer = AZAwareProducer(config(mock, **{"statistics.interval.ms": 600_000}))
    idle = {"msgq_bytes": 0, "xmit_msgq_bytes": 0, "msgs_inflight": 0}
    known = {1: "az-a"}
    for racks, sent in ((known, [(10, 1), (5, 2)]), ({**known, 2: "az-b", 3: "az-c"}, later)):
        producer._kafka_azimuth.topology._racks = dict(racks)
        partitions = {
            str(number): {**idle, "txmsgs": records, "txbytes": records * 50, "leader": leader}
            for number, (records, leader) in enumerate(sent)
        }
        topics = {TOPIC: {"partitions": partitions, "batchsize": {"sum": 100}}}
        producer._kafka_azimuth.statistics.on_report(json.dumps({"ts": 0, "brokers": {}, "topics": topics}))
    traffic = producer.traffic().wire_topics
    producer.close()
    assert {zone: count.records for (_, zone), count in traffic.items()} == counted
    assert sum(count.bytes for count in traffic.values()) == 200


def test_bytes_do_not_wait_for_racks_that_the_application_gives(mock: MockCluster) -> None:
    """A broker that the given racks lack gets none later; the whole topic had no figures for a minute."""
    producer = AZAwareProducer(config(mock, **{"statistics.interval.ms": 600_000}), racks={1: "az-a"})
    one = {"txmsgs": 5, "txbytes": 250, "leader": 2, "msgq_bytes": 0, "xmit_msgq_bytes": 0, "msgs_inflight": 0}
    brokers = {"2": {"nodeid": 2, "state": "UP", "stateage": 1, "txbytes": 300}}
    topics = {TOPIC: {"partitions": {"0": one}, "batchsize": {"sum": 100}}}
    producer._kafka_azimuth.statistics.on_report(json.dumps({"ts": 0, "brokers": brokers, "topics": topics}))
    traffic = producer.traffic()
    producer.close()
    assert (traffic.wire_bytes, traffic.wire_topics) == ({"unknown": 300}, {(TOPIC, "unknown"): (5, 100)})


@pytest.mark.parametrize(
    "reports",
    [
        [(5, 100), (5, 0), (5, 0)],
        [(0, 100), (5, 0), (5, 0)],
        [(5, 0), (5, 100), (5, 0)],
        [(3, 40), (5, 60), (5, 0)],
        [(3, 0), (5, 40), (5, 60), (5, 0)],
    ],
    ids=["together", "batch first", "records first", "both twice", "a batch late"],
)
def test_each_batch_has_its_bytes_on_the_wire_two_reports_later_at_most(
    mock: MockCluster, reports: list[tuple[int, int]]
) -> None:
    """A report is written while batches are; the bytes of the last batch waited for the topic's next record."""
    producer = AZAwareProducer(config(mock, **{"statistics.interval.ms": 600_000}), racks=mock.racks)
    for records, batches in reports:
        one = {
            "txmsgs": records,
            "txbytes": records * 50,
            "leader": 2,
            "msgq_bytes": 0,
            "xmit_msgq_bytes": 0,
            "msgs_inflight": 0,
        }
        topics = {TOPIC: {"partitions": {"0": one}, "batchsize": {"sum": batches}}}
        producer._kafka_azimuth.statistics.on_report(json.dumps({"ts": 0, "brokers": {}, "topics": topics}))
    assert producer.traffic().wire_topics == {(TOPIC, "az-b"): (5, 100)}
    producer.close()
