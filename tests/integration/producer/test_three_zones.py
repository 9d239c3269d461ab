"""Both clients on three real brokers in three zones."""

import asyncio
from collections import Counter
from typing import Any

import pytest
from confluent_kafka import Consumer, Producer, TopicPartition
from confluent_kafka.admin import AdminClient
from kafka import KafkaProducer

from producer import AZAwareAIOProducer, AZAwarePartitioner, AZAwareProducer, Reason, TrafficMeter, matrix
from producer.forecast import render
from producer.metadata_requests import read_racks
from spark_sink.cli._plan_producer import producer_forecasts
from spark_sink.demo.cluster import Cluster
from tests.integration.producer.conftest import MakeTopic, leaders
from tests.waiting import wait_until

pytestmark = pytest.mark.integration
ZONES = ("az-a", "az-b", "az-c")
OVERHEAD_BYTES = 20_000  # connections, metadata and identity, to brokers that get no record


def config(cluster: Cluster, zone: str, **more: Any) -> dict[str, Any]:
    """Configuration of a producer in a zone."""
    return {"bootstrap.servers": cluster.bootstrap_servers, "client.rack": zone, "linger.ms": 5, "log_level": 0, **more}


def local_partitions(cluster: Cluster, admin: AdminClient, topic: str, zone: str) -> set[int]:
    """Partitions led in a zone, read apart from the code under test."""
    racks = {broker.id: broker.rack for broker in cluster.brokers}
    return {number for number, leader in enumerate(leaders(admin, topic)) if racks[leader] == zone}


def count_records(cluster: Cluster, topic: str, partitions: int) -> Counter[int]:
    """Records per partition from the brokers' own offsets."""
    consumer = Consumer({"bootstrap.servers": cluster.bootstrap_servers, "group.id": "count", "log_level": 0})
    counts: Counter[int] = Counter()
    for number in range(partitions):
        low, high = consumer.get_watermark_offsets(TopicPartition(topic, number), timeout=10)
        counts[number] = high - low
    consumer.close()
    return counts


@pytest.mark.parametrize("keys", ["local-mod", "local-hrw"])
def test_confluent_records_stay_in_their_zone_by_the_brokers_offsets_and_the_wire(
    cluster: Cluster, admin: AdminClient, make_topic: MakeTopic, keys: str
) -> None:
    """100 % of records without a key and with one; the client's own wire counters agree."""
    topic = make_topic(9, 1)
    local = local_partitions(cluster, admin, topic, "az-b")
    producer = AZAwareProducer(config(cluster, "az-b", **{"statistics.interval.ms": 100}), keys=keys)
    for number in range(5_000):
        producer.produce(topic, b"v" * 100)
        producer.produce(topic, b"v" * 100, f"key-{number}")
    assert producer.flush(30) == 0
    counts = count_records(cluster, topic, 9)
    assert counts.total() == 10_000
    assert {number for number, count in counts.items() if count} <= local
    traffic = producer.traffic()
    assert traffic.local.records == 10_000
    assert traffic.cross_zone_share == 0
    wait_until(lambda: producer.poll(0.1) >= 0 and producer.traffic().wire_bytes.get("az-b", 0) > traffic.local.bytes)
    wire = producer.traffic().wire_bytes
    assert all(sent < OVERHEAD_BYTES for zone, sent in wire.items() if zone != "az-b")
    producer.close()


def test_kafka_python_records_stay_in_their_zone_by_the_brokers_offsets_and_the_wire(
    cluster: Cluster, admin: AdminClient, make_topic: MakeTopic
) -> None:
    """The same for the other client, whose brokers' racks come with its metadata."""
    topic = make_topic(9, 1)
    local = local_partitions(cluster, admin, topic, "az-c")
    partitioner = AZAwarePartitioner(rack="az-c", keys="local-hrw")
    producer = KafkaProducer(bootstrap_servers=cluster.bootstrap_servers.split(","), partitioner=partitioner)
    partitioner.watch(producer)
    for number in range(2_000):
        producer.send(topic, b"v" * 100)
        producer.send(topic, b"v" * 100, f"key-{number}".encode())
    producer.flush(30)
    counts = count_records(cluster, topic, 9)
    assert counts.total() == 4_000
    assert {number for number, count in counts.items() if count} <= local
    traffic = partitioner.traffic()
    assert traffic.local.records == 4_000
    assert traffic.wire_bytes["az-c"] > traffic.local.bytes
    assert all(sent < OVERHEAD_BYTES for zone, sent in traffic.wire_bytes.items() if zone != "az-c")
    producer.close()


def test_a_plain_producer_beside_ours_pays_for_two_thirds(cluster: Cluster, make_topic: MakeTopic) -> None:
    """The same records from three zones, measured the same way: the meter and the producer agree with each other."""
    topic = make_topic(9, 1)
    plain, ours, measured = [], [], []
    for zone in ZONES:
        meter = TrafficMeter(config(cluster, zone))
        bare = Producer(config(cluster, zone, **{"sticky.partitioning.linger.ms": 0}))
        meter_of_ours = TrafficMeter(config(cluster, zone))
        aware = AZAwareProducer(config(cluster, zone))
        for _ in range(3_000):
            bare.produce(topic, b"v" * 100, on_delivery=meter.delivered)
            aware.produce(topic, b"v" * 100, on_delivery=meter_of_ours.delivered)
        assert bare.flush(30) == aware.flush(30) == 0
        plain.append(meter.traffic())
        ours.append(aware.traffic())
        measured.append(meter_of_ours.traffic())
        aware.close()
    assert matrix(ours) == matrix(measured) == {(zone, zone): (3_000, 300_000) for zone in ZONES}
    cells = matrix(plain)
    crossed = sum(count.bytes for (origin, target), count in cells.items() if origin != target)
    assert sum(count.bytes for count in cells.values()) == 900_000
    assert 0.5 < crossed / 900_000 < 0.8
    assert sum(traffic.cost() for traffic in plain) > 0
    assert sum(traffic.cost() for traffic in ours) == 0


def test_transactions_commit_and_abort_as_with_the_base_class(cluster: Cluster, make_topic: MakeTopic) -> None:
    """Only committed records are seen, all of them in the own zone."""
    topic = make_topic(3, 3)
    producer = AZAwareProducer(config(cluster, "az-a", **{"transactional.id": f"t-{topic}"}), keys="local-hrw")
    producer.init_transactions(30)
    for word, end in (("gone", producer.abort_transaction), ("kept", producer.commit_transaction)):
        producer.begin_transaction()
        producer.produce_batch(topic, [{"value": f"{word}-{n}", "key": f"{n}"} for n in range(50)])
        end(30)
    assert producer.traffic().cross.records == 0
    producer.close()
    consumer = Consumer(
        {
            "bootstrap.servers": cluster.bootstrap_servers,
            "group.id": topic,
            "auto.offset.reset": "earliest",
            "enable.partition.eof": False,
            "log_level": 0,
        }
    )
    consumer.assign([TopicPartition(topic, number, 0) for number in range(3)])
    values: list[bytes] = []
    while len(values) < 50:
        values += [
            message.value() or b"" for message in consumer.consume(50 - len(values), 5) if message.error() is None
        ]
    consumer.close()
    assert sorted(values) == sorted(f"kept-{n}".encode() for n in range(50))


def test_the_asyncio_client_delivers_in_its_zone(cluster: Cluster, admin: AdminClient, make_topic: MakeTopic) -> None:
    """Awaited deliveries come from local partitions only."""
    topic = make_topic(6, 1)
    local = local_partitions(cluster, admin, topic, "az-a")

    async def run() -> set[int | None]:
        async with AZAwareAIOProducer(config(cluster, "az-a"), keys="local-mod") as producer:
            futures = [await producer.produce(topic, b"v", f"{n}" if n % 2 else None) for n in range(500)]
            await producer.flush()
            assert producer.traffic().local.records == 500
            return {message.partition() for message in await asyncio.gather(*futures)}

    assert asyncio.run(run()) <= local


def test_the_plan_shows_local_partitions_and_each_zones_failure(
    cluster: Cluster, admin: AdminClient, make_topic: MakeTopic
) -> None:
    """What `azimuth plan --producer` prints comes from the live topic."""
    topic = make_topic(6, 3)
    servers = {"bootstrap.servers": cluster.bootstrap_servers}
    (seen,) = producer_forecasts(servers, "az-a", topic)
    assert set(seen.now.locality.candidates) == local_partitions(cluster, admin, topic, "az-a")
    assert set(seen.failures) == set(ZONES)
    assert seen.failures["az-a"].locality.reason is Reason.NO_LOCAL_LEADER
    assert f"topic {topic}, 6 partitions" in render(seen)
    assert seen.now.replication == seen.now.keyed_replication == 2
    assert seen.lagging == ()
    assert seen in producer_forecasts(servers, "az-a", f"{topic[:-1]}.")
    assert read_racks({"bootstrap.servers": cluster.bootstrap_servers}, 10) == {1: "az-a", 2: "az-b", 3: "az-c"}
