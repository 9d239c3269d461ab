"""The time at which a record counts, and its bytes on the wire, on librdkafka's mock cluster."""

import asyncio
import time
from collections import Counter
from typing import Any

import pytest
from confluent_kafka import Producer
from hypothesis import given
from hypothesis import strategies as st

from producer import AZAwareAIOProducer, AZAwarePartitioner, AZAwareProducer, PolicyError, Reason, Traffic, TrafficMeter
from producer.clients import unpolled_reports
from producer.clients.client_statistics import shares
from producer.partitioning import produce_interpreted
from producer.testing import MockCluster
from tests.unit.producer.clients.test_kafka_python import connect
from tests.unit.producer.deliveries import TOPIC, Deliveries, config
from tests.waiting import wait_until


@pytest.mark.usefixtures("hot")
@pytest.mark.parametrize("way", ["produce", "batch"])
@pytest.mark.parametrize("own", [True, False], ids=["own callback", "no callback"])
def test_only_delivered_records_count_where_asked(mock: MockCluster, way: str, *, own: bool) -> None:
    """Purged and failed records stayed counted and billed; a counter that is corrected downwards is a reset."""
    mock.create(TOPIC, [1, 2, 3])
    seen = Deliveries()

    def send(producer: AZAwareProducer, key: str | None, **more: Any) -> None:
        callback: Any = {"on_delivery": seen} if own else {}
        if way == "batch":
            assert producer.produce_batch(TOPIC, [{"value": b"v" * 10, "key": key}], **callback, **more) == 1
        else:
            producer.produce(TOPIC, b"v" * 10, key, **callback, **more)

    def make(**more: Any) -> AZAwareProducer:
        producer = AZAwareProducer(config(mock, on_delivery=seen, **more), keys="local-hrw", count="delivered")
        for key in (None, "k"):
            send(producer, key)
            send(producer, key, partition=2)
        return producer

    purged = make(**{"linger.ms": 60_000})  # not one for both: a purge may reach records that are queued after it
    purged.purge()
    wait_until(lambda: purged.poll(0.05) >= 0 and len(seen.errors) == 4, 10)
    assert purged.traffic().topics == {}
    purged.close()
    producer = make()
    assert producer.flush(10) == 0
    traffic = producer.traffic()
    assert traffic.local == (2, 21)
    assert traffic.reasons == {Reason.LOCAL: (2, 21), Reason.EXPLICIT: (2, 21)}
    assert seen.partitions.total() == 8
    assert len(seen.errors) == 4
    producer.close()


def test_headers_weigh_on_delivery_too(mock: MockCluster) -> None:
    """As where records count when they are queued."""
    mock.create(TOPIC, [1])
    producer = AZAwareProducer(config(mock), count="delivered")
    producer.produce(TOPIC, "Zürich", "ä", headers={"h": b"v", "n": None})
    assert producer.flush(10) == 0
    assert producer.traffic().local == (1, 7 + 2 + 3)
    producer.close()


def test_records_of_the_asyncio_client_count_on_delivery_too(mock: MockCluster) -> None:
    """The same promise; records purged from its buffer are never counted."""
    mock.create(TOPIC, [1, 2, 3])

    async def run() -> None:
        producer = AZAwareAIOProducer(config(mock), count="delivered", batch_size=2)
        await (await producer.produce(TOPIC, b"v", partition=1) and await producer.produce(TOPIC, b"v"))
        await producer.flush()
        await producer.produce(TOPIC, b"v")
        await producer.purge()
        await producer.flush()
        assert producer.traffic().local == (1, 1)
        assert producer.traffic().reasons[Reason.EXPLICIT] == (1, 1)
        await producer.close()

    asyncio.run(run())


def test_a_time_to_count_that_does_not_exist_is_refused() -> None:
    """Value and way out."""
    with pytest.raises(PolicyError, match="count='sent': choose 'queued' or 'delivered'"):
        AZAwareProducer({"bootstrap.servers": "127.0.0.1:1", "client.rack": "az-a"}, count="sent")


def test_bytes_on_the_wire_by_topic_are_those_of_the_batches(mock: MockCluster) -> None:
    """Compressed, by topic and zone; they were bytes of records, fifty times too many here."""
    mock.create(TOPIC, [1, 2, 3])
    mock.create("other", [1, 2, 3])
    settings = config(mock, **{"statistics.interval.ms": 50, "compression.type": "gzip"})
    producer = AZAwareProducer(settings)
    producer.produce(TOPIC, b"")
    for number in range(200):
        producer.produce(TOPIC, b"v" * 10_000, partition=number % 2)
        producer.produce("other", b"v" * 1_000, partition=2)
    assert producer.flush(20) == 0
    sent = {(TOPIC, "az-a"): 101, (TOPIC, "az-b"): 100, ("other", "az-c"): 200}

    def by_topic() -> Counter[str]:
        sizes: Counter[str] = Counter()
        for (topic, _), count in producer.traffic().wire_topics.items():
            sizes[topic] += count.bytes
        return sizes

    def settled() -> bool:
        producer.poll(0.1)
        records = {cell: count.records for cell, count in producer.traffic().wire_topics.items()}
        return records == sent and min(by_topic().values()) > 0

    wait_until(settled)
    traffic = producer.traffic()
    assert not traffic.wire_estimated
    assert sum(count.bytes for count in traffic.topics.values()) == 200 * 11_000
    # Not by zone: a report is written while batches are, so a batch may count for the topic's other zone.
    assert by_topic().total() < sum(traffic.wire_bytes.values()) < 200_000
    producer.close()


def test_bytes_on_the_wire_are_marked_as_an_estimate_without_statistics(mock: MockCluster) -> None:
    """A figure that is not measured says so."""
    mock.create(TOPIC, [1])
    producer = AZAwareProducer(config(mock, **{"statistics.interval.ms": 0}))
    producer.produce(TOPIC, b"v" * 10)
    assert producer.flush(10) == 0
    traffic = producer.traffic()
    assert traffic.wire_topics == traffic.topics == {(TOPIC, "az-a"): (1, 10)}
    assert traffic.wire_estimated
    assert traffic.as_dict()["wire_estimated"] is True
    producer.close()


@given(st.integers(0, 10**15), st.lists(st.integers(0, 10**12), min_size=1, max_size=5))
def test_shares_add_up_to_the_total(total: int, weights: list[int]) -> None:
    """No byte is lost or made by rounding."""
    split = shares(total, weights)
    assert sum(split) == total
    assert min(split) >= 0
    if any(weights):
        exact = [total * weight / sum(weights) for weight in weights]
        assert split == [pytest.approx(one, abs=1 + total / 1e12) for one in exact]


def test_reports_do_not_fill_the_memory_of_an_application_that_never_polls(
    mock: MockCluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Statistics are on by default for us, and each report waited for a poll: 0.4 MB each 5 s at 672 partitions."""
    monkeypatch.setattr(unpolled_reports, "_GRACE_S", 0.0)
    mock.create(TOPIC, [1])
    producer = AZAwareProducer(config(mock, **{"statistics.interval.ms": 20}), refresh_s=0.1)
    producer.produce(TOPIC, b"v")
    wait_until(lambda: producer.traffic().wire_bytes, 10)
    end = time.monotonic() + 1
    most = 0
    while time.monotonic() < end:
        most = max(most, len(producer))
        time.sleep(0.01)
    assert most < 40  # 50 reports a second wait for nothing
    producer.close()


@pytest.mark.parametrize("at", ["construction", "produce"])
def test_an_application_with_callbacks_polls_in_its_own_thread(
    mock: MockCluster, monkeypatch: pytest.MonkeyPatch, at: str
) -> None:
    """Its callbacks need not be ready for another thread."""
    monkeypatch.setattr(unpolled_reports, "_GRACE_S", 0.0)
    mock.create(TOPIC, [1])
    seen = Deliveries()
    callback: dict[str, Any] = {"on_delivery": seen}
    made = callback if at == "construction" else {}
    producer = AZAwareProducer({**config(mock, **made), "statistics.interval.ms": 20}, refresh_s=0.05)
    producer.produce(TOPIC, b"v", **(callback if at == "produce" else {}))
    asked: list[object] = []

    def none_due() -> set[str]:
        asked.append(None)
        return set()

    monkeypatch.setattr(producer._kafka_azimuth.watcher, "_topics_due", none_due)
    wait_until(lambda: len(asked) > 5)
    assert seen.partitions.total() == 0
    assert producer.flush(10) == 0
    assert seen.partitions.total() == 1
    producer.close()


def test_counts_in_reports_refuse_a_client_that_reports_only_failures(
    mock: MockCluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nothing would ever count in Python; counts inside librdkafka need no report."""
    monkeypatch.setattr(AZAwareProducer, "_kafka_azimuth_hot", produce_interpreted)
    with pytest.raises(PolicyError, match=r"remove delivery\.report\.only\.error"):
        AZAwareProducer(config(mock, **{"delivery.report.only.error": True}), count="delivered")


def test_a_watched_producer_sends_with_the_names_of_arguments(mock: MockCluster) -> None:
    """Tracing replaces `send` as well, and adds headers by their name."""
    mock.create(TOPIC, [1, 2, 3])
    partitioner = AZAwarePartitioner(rack="az-a")
    producer: Any = connect(mock, partitioner)
    given: list[dict[str, object]] = []
    real = producer.send

    def traced(topic: str, **more: object) -> object:
        given.append(more)
        return real(topic, **more)

    producer.send = traced
    partitioner.watch(producer)
    producer.send(TOPIC, b"v").get(10)
    assert given[0]["value"] == b"v"
    assert given[0]["headers"] is None
    producer.close()


def test_headers_weigh_with_kafka_python_where_the_producer_is_watched(mock: MockCluster) -> None:
    """They were counted nowhere; a record to the caller's own partition is still not seen."""
    mock.create(TOPIC, [1, 2, 3])
    partitioner = AZAwarePartitioner(rack="az-a", keys="local-hrw")
    producer = connect(mock, partitioner)
    partitioner.watch(producer)
    headers = [("ä", b"12345"), ("b", b"")]
    for key in (None, b"k"):
        producer.send(TOPIC, b"v" * 10, key, headers)
        producer.send(TOPIC, b"v" * 10, key, headers=headers, partition=1)
        producer.send(TOPIC, value=b"v" * 10, key=key)
    producer.flush(10)
    assert partitioner.traffic().local == (4, 4 * 10 + 2 + 2 * 8)
    assert partitioner.traffic().wire_estimated
    producer.close()


def test_a_new_topic_moves_no_records_of_the_meters_other_topics(mock: MockCluster) -> None:
    """The meter read all topics again, and the counter of the zone that had led the first topic fell."""
    mock.create("early", [2])
    mock.create("late", [1])
    meter = TrafficMeter(config(mock))
    producer = Producer(config(mock))
    producer.produce("early", b"v", on_delivery=meter.delivered)
    assert producer.flush(10) == 0
    before = meter.traffic()
    mock.lead("early", [1])
    producer.produce("late", b"v", on_delivery=meter.delivered)
    assert producer.flush(10) == 0
    after = meter.traffic()
    assert before.topics == {("early", "az-b"): (1, 1)}
    assert after.topics == {("early", "az-b"): (1, 1), ("late", "az-a"): (1, 1)}
    assert (before.replicated_bytes, after.replicated_bytes) == (2, 4)
    producer.close()


@pytest.mark.parametrize("way", ["produce", "delivered", "asyncio", "kafka-python", "meter"])
def test_copies_to_replicas_in_other_zones_are_stated_beside_the_produce_leg(mock: MockCluster, way: str) -> None:
    """A user pays for them as well; the mock keeps each partition on all three brokers, so two copies leave."""
    mock.create(TOPIC, [1, 2, 3])
    if way == "kafka-python":
        partitioner = AZAwarePartitioner(rack="az-a")
        sender = connect(mock, partitioner)
        for _ in range(10):
            sender.send(TOPIC, b"v" * 100)
        sender.flush(10)
        sender.close()
        traffic = partitioner.traffic()
    elif way == "asyncio":

        async def run() -> Traffic:
            async with AZAwareAIOProducer(config(mock)) as producer:
                for _ in range(10):
                    await producer.produce(TOPIC, b"v" * 100)
                await producer.flush(10)
                return producer.traffic()

        traffic = asyncio.run(run())
    else:
        producer = AZAwareProducer(config(mock), count="delivered" if way == "delivered" else "queued")
        assert producer.traffic().replicated_bytes is None
        meter = TrafficMeter(config(mock))
        for _ in range(10):
            producer.produce(TOPIC, b"v" * 100, on_delivery=meter.delivered)
        assert producer.flush(10) == 0
        traffic = (meter if way == "meter" else producer).traffic()
        producer.close()
    assert traffic.local.bytes == 1_000
    assert traffic.replicated_bytes == 2_000
    assert traffic.replication_cost(0.02) == pytest.approx(4e-8)
    assert traffic.as_dict()["replicated_bytes"] == 2_000
    with pytest.raises(PolicyError, match="price_per_gb=-1"):
        traffic.replication_cost(-1)
