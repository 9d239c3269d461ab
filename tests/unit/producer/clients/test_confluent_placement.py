"""Which partitions `AZAwareProducer` chooses, on librdkafka's mock cluster."""

from collections import Counter
from collections.abc import Callable

import pytest
from confluent_kafka import KafkaError, Message, Producer, murmur2

from producer import AZAwareProducer, Reason, SkewGuard
from producer.testing import MockCluster
from tests.unit.producer.deliveries import TOPIC, Deliveries, config
from tests.waiting import wait_until

pytestmark = pytest.mark.usefixtures("hot")


@pytest.mark.parametrize(
    "keys",
    ["global", "local-mod", "local-hrw", "ignore", {"other": "global", "fl.*": "ignore", ".*": "global"}],
    ids=str,
)
def test_everything_that_may_stay_local_does(mock: MockCluster, keys: str | dict[str, str]) -> None:
    """No key, and a key in a local mode: 100 % local; the wire says the same as the count."""
    mock.create(TOPIC, [1, 2, 3] * 4)
    seen = Deliveries()
    producer = AZAwareProducer(config(mock, **{"statistics.interval.ms": 50}), keys=keys)
    for number in range(2_000):
        producer.produce(TOPIC, b"v" * 100, on_delivery=seen)
        if keys != "global":
            producer.produce(TOPIC, b"v" * 100, f"key-{number}", on_delivery=seen)
    assert producer.flush(10) == 0
    traffic = producer.traffic()
    assert set(seen.partitions) <= {0, 3, 6, 9}
    assert traffic.cross == traffic.unknown == (0, 0)
    assert traffic.local.records == seen.partitions.total()
    wait_until(lambda: producer.poll(0.01) >= 0 and producer.traffic().wire_bytes.get("az-a", 0) > traffic.local.bytes)
    wire = producer.traffic().wire_bytes
    assert sum(sent for zone, sent in wire.items() if zone != "az-a") < 5_000  # connections and metadata only
    cell = TOPIC, "az-a"
    wait_until(
        lambda: producer.poll(0.01) >= 0 and producer.traffic().wire_topics.get(cell, (0,))[0] == traffic.local[0]
    )
    assert producer.traffic().wire_topics.keys() == {cell}
    producer.close()


def test_global_keys_land_where_librdkafka_and_java_put_them(mock: MockCluster) -> None:
    """A bare producer with the murmur2 partitioner and ours share their partitions key by key."""
    mock.create(TOPIC, [1, 2, 3, 1, 2, 3, 1])
    places: dict[str, dict[bytes, int]] = {"ours": {}, "bare": {}}

    def note(name: str) -> Callable[[KafkaError | None, Message], None]:
        def delivered(_error: KafkaError | None, message: Message) -> None:
            places[name][message.key() or b""] = message.partition() or 0

        return delivered

    ours = AZAwareProducer(config(mock))
    bare = Producer(config(mock, partitioner="murmur2_random"))
    for number in range(500):
        ours.produce(TOPIC, b"v", f"key-{number}", on_delivery=note("ours"))
        bare.produce(TOPIC, b"v", f"key-{number}", on_delivery=note("bare"))
    assert ours.flush(10) == bare.flush(10) == 0
    assert places["ours"] == places["bare"]
    assert len(places["ours"]) == 500
    traffic = ours.traffic()
    assert traffic.cross.records == traffic.reasons[Reason.GLOBAL_KEY].records > 0
    ours.close()


@pytest.mark.parametrize("way", ["produce", "batch"])
def test_records_of_no_bytes_change_partitions_too(mock: MockCluster, way: str) -> None:
    """They end no run by their bytes, so that one partition had them all; their overhead counts instead."""
    mock.create(TOPIC, [1] * 4)
    seen = Deliveries()
    producer = AZAwareProducer(config(mock), batch_bytes=100)
    for _ in range(50):
        if way == "batch":
            producer.produce_batch(TOPIC, [{"value": b""}] * 10, on_delivery=seen)
        else:
            for _ in range(10):
                producer.produce(TOPIC, b"", on_delivery=seen)
    assert producer.flush(10) == 0
    assert set(seen.partitions) == {0, 1, 2, 3}
    assert producer.traffic().local == (500, 0)
    producer.close()


def test_an_explicit_partition_is_kept_and_counted(mock: MockCluster) -> None:
    """The caller knows better; the bill still shows it."""
    mock.create(TOPIC, [1, 2, 3])
    seen = Deliveries()
    producer = AZAwareProducer(config(mock))
    producer.produce(TOPIC, b"v" * 10)
    producer.produce(TOPIC, b"v" * 10, partition=1, on_delivery=seen)
    assert producer.flush(10) == 0
    assert seen.partitions == {1: 1}
    assert producer.traffic().reasons[Reason.EXPLICIT] == (1, 10)
    assert producer.traffic().cross == (1, 10)
    producer.close()


def test_a_transaction_keeps_its_records_local(mock: MockCluster) -> None:
    """Transactions are the base class's own."""
    mock.create(TOPIC, [1, 2, 3])
    seen = Deliveries()
    producer = AZAwareProducer(config(mock, **{"transactional.id": "one"}), keys="local-hrw")
    producer.init_transactions(10)
    producer.begin_transaction()
    for number in range(10):
        producer.produce(TOPIC, b"v", f"{number}", on_delivery=seen)
    producer.commit_transaction(10)
    assert seen.partitions == {0: 10}
    assert seen.errors == []
    producer.close()


def test_skew_guard_sends_away_no_more_than_the_bound_needs(mock: MockCluster) -> None:
    """Two of three zones produce: 1.5 times the mean at home, 1.2 with the guard, for a fifth of the bytes."""
    mock.create(TOPIC, [1, 2, 3])
    guard = SkewGuard(bound=1.2, zones={"az-a": 1, "az-b": 1})
    loads: Counter[int | None] = Counter()
    shares = []
    for zone in ("az-a", "az-b"):
        seen = Deliveries()
        producer = AZAwareProducer(config(mock, **{"client.rack": zone}), skew=guard, batch_bytes=100)
        for _ in range(3_000):
            producer.produce(TOPIC, b"v" * 10, on_delivery=seen)
        assert producer.flush(10) == 0
        loads += seen.partitions
        shares.append(producer.traffic().cross_zone_share)
        assert producer.traffic().reasons[Reason.SKEW].records > 0
        producer.close()
    assert max(loads.values()) / (loads.total() / 3) <= 1.2 + 0.01
    assert max(shares) <= 0.2 + 0.01


def test_keys_follow_java_even_before_leaders_are_known(mock: MockCluster) -> None:
    """A record that librdkafka places, for want of metadata here, must not break the order of its key."""
    mock.create(TOPIC, [1, 2, 3] * 5)
    places: dict[str, int | None] = {}

    def delivered(_error: KafkaError | None, message: Message) -> None:
        places[(message.key() or b"").decode()] = message.partition()

    producer = AZAwareProducer(config(mock))
    for number in range(100):
        Producer.produce(producer, TOPIC, b"v", f"key-{number}", on_delivery=delivered)
    assert producer.flush(10) == 0
    assert places == {key: murmur2(key.encode(), 15) for key in places}
    assert len(places) == 100
    producer.close()
