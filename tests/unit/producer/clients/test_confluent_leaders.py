"""`AZAwareProducer` while leaders move, or are not known, on librdkafka's mock cluster."""

import asyncio
import json
import threading
import time
from typing import Any

import pytest
from confluent_kafka import KafkaError, KafkaException

from producer import AZAwareAIOProducer, AZAwareProducer, AZAwareSerializingProducer, RackWarning, Reason, Traffic
from producer.clients import leader_requests
from producer.metadata_requests import read_leaders
from producer.testing import MockCluster
from tests.unit.producer.deliveries import TOPIC, Deliveries, config
from tests.waiting import wait_until

TOPIC_AUTHORIZATION_FAILED = 29
pytestmark = pytest.mark.usefixtures("hot")


def test_the_local_set_follows_leaders_away_and_back(mock: MockCluster) -> None:
    """Every leader leaves the zone, one comes back: fallback with its reason, then home after the hold, by itself."""
    mock.create(TOPIC, [1, 2, 3])
    producer = AZAwareProducer(config(mock), hold_s=0.2)
    producer.produce(TOPIC, b"v")
    assert producer.flush(10) == 0
    mock.lead(TOPIC, [2, 2, 3])
    producer.refresh_leaders()
    partitioner = producer._kafka_azimuth.topics_in_use.partitioners[TOPIC]
    wait_until(lambda: partitioner.locality.reason is Reason.NO_LOCAL_LEADER)
    producer.produce(TOPIC, b"v")
    assert producer.flush(10) == 0
    mock.lead(TOPIC, [2, 1, 3])
    wait_until(lambda: partitioner.locality.reason is Reason.LOCAL)
    assert partitioner.locality.candidates == (1,)
    producer.produce(TOPIC, b"v")
    assert producer.flush(10) == 0
    counted = {reason: count.records for reason, count in producer.traffic().reasons.items() if count.records}
    assert counted == {Reason.LOCAL: 2, Reason.NO_LOCAL_LEADER: 1}
    producer.close()


def test_a_leader_that_moves_without_a_lost_broker_is_followed_by_the_statistics(mock: MockCluster) -> None:
    """The client learns it immediately; ours continued for up to 30 s, and counted cross-zone records as local."""
    mock.create(TOPIC, [1, 2, 3])
    producer = AZAwareProducer(config(mock, **{"statistics.interval.ms": 50}), refresh_s=1_000.0)
    producer.produce(TOPIC, b"v")
    assert producer.flush(10) == 0
    partitioner = producer._kafka_azimuth.topics_in_use.partitioners[TOPIC]
    mock.lead(TOPIC, [2, 1, 3])

    def follows() -> bool:
        producer.produce(TOPIC, b"v", partition=0)
        producer.produce(TOPIC, b"v", partition=1)
        producer.poll(0.05)
        return partitioner.locality.candidates == (1,)

    wait_until(follows, 10)
    assert partitioner.locality.reason is Reason.LOCAL
    producer.purge()
    producer.close()


def test_a_broker_that_returns_in_another_rack_is_followed(mock: MockCluster) -> None:
    """Racks were read again after 300 s: until then the records left their zone, and counted as local."""
    mock.create(TOPIC, [1, 2])
    seen = Deliveries()
    up: set[int] = set()

    def take(report: str) -> None:
        up.update(one["nodeid"] for one in json.loads(report)["brokers"].values() if one["state"] == "UP")

    settings = config(mock, **{"statistics.interval.ms": 50, "on_delivery": seen, "stats_cb": take})
    producer = AZAwareProducer(settings, refresh_s=1.0, hold_s=0.0)
    producer.produce(TOPIC, b"v")
    producer.produce(TOPIC, b"v", partition=1)
    assert producer.flush(10) == 0
    partitioner = producer._kafka_azimuth.topics_in_use.partitioners[TOPIC]
    wait_until(lambda: producer.poll(0.05) >= 0 and up >= {1, 2})
    assert seen.partitions == {0: 1, 1: 1}
    for broker, rack in ((1, b"az-b"), (2, b"az-a")):
        mock.down(broker)
        mock._do("rd_kafka_mock_broker_set_rack", broker, rack)
        mock.up(broker)

    def follows() -> bool:
        for partition in (0, 1):
            producer.produce(TOPIC, b"v", partition=partition)
        producer.poll(0.05)
        return partitioner.locality.candidates == (1,)

    wait_until(follows, 20)
    assert producer.flush(10) == 0
    before = producer.traffic()
    assert sum(count.records for count in before.zones.values()) == seen.partitions.total()
    for partition in (0, 1, 1):
        producer.produce(TOPIC, b"v", partition=partition)
    assert producer.flush(10) == 0
    after = producer.traffic()
    assert {zone: count.records - before.zones[zone].records for zone, count in after.zones.items()} == {
        "az-a": 2,
        "az-b": 1,
    }
    producer.close()


@pytest.mark.parametrize(
    ("rack", "racks", "says"),
    [
        ("eu-west-1a", ("euw1-az1", "euw1-az2", "euw1-az3"), "zone name"),
        ("az-z", ("az-a", "az-b", "az-c"), "'az-a', 'az-b', 'az-c'"),
        ("az-a", (None, None, None), "no broker has a rack"),
        (None, ("az-a", "az-b", "az-c"), "this producer's rack is not set"),
    ],
    ids=["name against id", "rack no broker has", "brokers without racks", "own rack missing"],
)
def test_zones_that_cannot_be_compared_warn_once_and_send_on(
    rack: str | None, racks: tuple[str | None, ...], says: str
) -> None:
    """One loud warning that names the racks; never a silent 100 % fallback, never a lost record."""
    with MockCluster(racks) as mock:
        mock.create(TOPIC, [1, 2, 3])
        mock.create("other", [1, 2, 3])
        settings = config(mock)
        if rack is None:
            del settings["client.rack"]
        else:
            settings["client.rack"] = rack
        producer = AZAwareProducer(settings)
        with pytest.warns(RackWarning, match=says) as caught:
            producer.produce(TOPIC, b"v")
        producer.produce("other", b"v")  # a second warning would be an error here
        assert len(caught) == 1
        assert producer.flush(10) == 0
        assert producer.traffic().local.records == 0
        assert producer.traffic().cross.records + producer.traffic().unknown.records == 2
        assert (
            not producer._kafka_azimuth.topics_in_use.away()
        )  # nowhere to come back to: no reason to ask every second
        producer.close()


def test_a_topic_that_is_not_allowed_is_the_base_classs_error_and_heals(mock: MockCluster) -> None:
    """Metadata without rights (ACL): the exception of a bare producer, nothing counted, found when allowed."""
    mock.create(TOPIC, [1, 2, 3])
    mock.refuse(TOPIC, TOPIC_AUTHORIZATION_FAILED)
    producer = AZAwareProducer(config(mock))
    with pytest.raises(KafkaException, match="authorization failed"):
        producer.produce(TOPIC, b"v")
    assert producer.traffic().unknown.records == 0
    mock.refuse(TOPIC, 0)
    wait_until(lambda: TOPIC in producer._kafka_azimuth.topics_in_use.partitioners)
    producer.produce(TOPIC, b"v")
    assert producer.flush(10) == 0
    assert producer.traffic().local.records == 1
    producer.close()


def test_a_topic_that_appears_later_is_found(mock: MockCluster) -> None:
    """Until then its records are queued and counted as unknown; the library sends them when it can."""
    seen = Deliveries()
    producer = AZAwareProducer(config(mock, **{"allow.auto.create.topics": False}), count="queued")
    mock.create("other", [1])
    producer.produce("other", b"v")
    producer.produce("later", b"v", on_delivery=seen)
    assert producer.traffic().reasons[Reason.NO_METADATA].records == 1
    producer.purge()
    producer.close()


def test_a_cluster_that_does_not_answer_warns_once_and_blocks_nobody_twice() -> None:
    """The first record waits for `metadata_timeout_s`; the rest are queued as a bare producer would."""
    settings = {"bootstrap.servers": "127.0.0.1:1", "client.rack": "az-a", "log_level": 0}
    producer = AZAwareProducer(settings, metadata_timeout_s=0.2, count="queued")
    with pytest.warns(RackWarning, match="leaders could not be read"):
        producer.produce(TOPIC, b"v")
    began = time.monotonic()
    for _ in range(100):
        producer.produce(TOPIC, b"v")
    assert time.monotonic() - began < 1.5
    assert producer.traffic().unknown.records == 101
    producer.purge()
    producer.close()


@pytest.mark.parametrize("key", [None, b"k"], ids=["null", "key"])
@pytest.mark.parametrize("way", ["one", "batch"])
def test_a_topic_recreated_with_fewer_partitions_is_no_error(mock: MockCluster, key: bytes | None, way: str) -> None:
    """A bare producer chooses among those there are; ours, until it has read them, lets the client choose."""
    mock.create(TOPIC, [1, 2, 3])
    seen = Deliveries()
    producer = AZAwareProducer(config(mock), keys="local-hrw")
    producer.produce(TOPIC, b"v", key, on_delivery=seen)
    producer._kafka_azimuth.topics_in_use.update(
        TOPIC, [2, 3, 2, 3, 1], {1: "az-a", 2: "az-b", 3: "az-c"}, 0.0
    )  # as it was before
    assert producer._kafka_azimuth_destinations[TOPIC].partition == 4
    for _ in range(10):
        if way == "batch":
            assert producer.produce_batch(TOPIC, [{"value": b"v", "key": key}], on_delivery=seen) == 1
        else:
            producer.produce(TOPIC, b"v", key, headers={"h": b"v"}, on_delivery=seen)
    assert producer.flush(10) == 0
    assert seen.errors == []
    assert seen.partitions.total() == 11
    assert sum(count.records for count in producer.traffic().reasons.values()) == 11
    wait_until(lambda: len(producer._kafka_azimuth.topics_in_use.partitioners[TOPIC].leaders) == 3)
    producer.close()


@pytest.mark.parametrize("keys", ["global", "local-hrw"])
def test_a_topic_recreated_with_fewer_partitions_is_no_error_of_the_asyncio_client(
    mock: MockCluster, keys: str
) -> None:
    """As above; the application's own partition is its error."""
    mock.create(TOPIC, [1, 2, 3])

    async def run() -> list[Any]:
        async with AZAwareAIOProducer(config(mock), keys=keys, count="queued") as producer:
            await producer.produce(TOPIC, b"v")
            await producer.flush(10)
            producer._kafka_azimuth.topics_in_use.update(
                TOPIC, [2, 3] * 50 + [1], {1: "az-a", 2: "az-b", 3: "az-c"}, 0.0
            )
            sent = [await producer.produce(TOPIC, b"v", b"key %d" % number) for number in range(20)]
            sent.append(await producer.produce(TOPIC, b"v", partition=99))
            await producer.flush(10)
            assert sum(one.records for one in producer.traffic().reasons.values()) == 21  # all but the refused one
            return await asyncio.gather(*sent, return_exceptions=True)

    *placed, explicit = asyncio.run(run())
    assert {message.partition() for message in placed} <= {0, 1, 2}
    assert isinstance(explicit, KafkaException)
    assert explicit.args[0].code() == KafkaError._UNKNOWN_PARTITION


def test_what_is_no_topic_is_refused_and_not_waited_for(mock: MockCluster) -> None:
    """The base class's error; nothing keeps asking for a topic that can never appear."""
    mock.create(TOPIC, [1, 2, 3])
    producer = AZAwareProducer(config(mock))
    producer.produce(TOPIC, b"v")
    for topic in (None, 5, b"flights"):
        with pytest.raises(TypeError, match="argument 1 must be str"):
            producer.produce(topic, b"v")  # type: ignore[arg-type]  # the mistake itself
    for name in ("\ud800", "a\0b"):  # the thread that asked for one of them ended
        with pytest.raises(ValueError, match=r"surrogates|null"):
            producer.produce(name, b"v")
    assert producer._kafka_azimuth.watcher.wait_s() == 30.0
    producer.close()


def test_racks_may_be_given_where_the_cluster_may_not_be_asked(mock: MockCluster) -> None:
    """A map of racks replaces the request, and its values count."""
    mock.create(TOPIC, [1, 2, 3])
    producer = AZAwareProducer(config(mock), racks={1: "az-b", 2: "az-c", 3: "az-a"})
    seen = Deliveries()
    producer.produce(TOPIC, b"v", on_delivery=seen)
    assert producer.flush(10) == 0
    assert seen.partitions == {2: 1}
    producer.close()


@pytest.mark.parametrize("way", ["produce", "batch", "messages of a batch", "serializing", "asyncio"])
def test_a_topic_whose_partitions_the_application_chooses_is_read_without_a_wait(
    mock: MockCluster, monkeypatch: pytest.MonkeyPatch, way: str
) -> None:
    """It was never read: all its traffic stayed in the zone "unknown", and cost nothing. Batches waited for it."""
    mock.create(TOPIC, [1, 2, 3])
    readers: list[str] = []

    def read(*arguments: Any, **more: Any) -> Any:
        readers.append(threading.current_thread().name)
        return read_leaders(*arguments, **more)

    monkeypatch.setattr(leader_requests, "read_leaders", read)

    async def run() -> Traffic:
        async with AZAwareAIOProducer(config(mock), count="queued") as producer:
            await producer.produce(TOPIC, b"v", partition=1)
            while TOPIC not in producer._kafka_azimuth.topics_in_use.partitioners:  # noqa: ASYNC110 - the thread knows no event
                await asyncio.sleep(0.01)
            await producer.produce(TOPIC, b"v" * 10, partition=1)
            await producer.flush(10)
            return producer.traffic()

    if way == "asyncio":
        traffic = asyncio.run(asyncio.wait_for(run(), 60))
    else:
        kind = AZAwareSerializingProducer if way == "serializing" else AZAwareProducer
        producer = kind(config(mock), count="queued")

        def send(value: bytes) -> None:
            match way:
                case "batch":
                    assert producer.produce_batch(TOPIC, [{"value": value}], partition=1) == 1
                case "messages of a batch":
                    assert producer.produce_batch(TOPIC, [{"value": value, "partition": 1}]) == 1
                case _:
                    producer.produce(TOPIC, value=value, partition=1)

        send(b"v")
        wait_until(lambda: TOPIC in producer._kafka_azimuth.topics_in_use.partitioners, 60)
        send(b"v" * 10)
        traffic = producer.traffic()
        producer.close()
    assert set(readers) == {"azimuth-leaders"}
    assert traffic.unknown.plus(traffic.zones["az-b"]) == (2, 11)
    assert traffic.zones["az-b"].bytes >= 10  # perhaps also the first one, if it was counted late


def test_a_record_without_a_partition_still_waits_after_one_with_a_partition(mock: MockCluster) -> None:
    """The first record that the producer places waits for the leaders, also if the thread asks for them already."""
    mock.create(TOPIC, [2, 2, 1])
    producer = AZAwareProducer(config(mock), count="queued")
    seen = Deliveries()
    producer.produce(TOPIC, b"v", partition=1, on_delivery=seen)
    producer.produce(TOPIC, b"v", on_delivery=seen)
    assert producer.flush(10) == 0
    assert seen.partitions == {1: 1, 2: 1}
    producer.close()


def test_while_the_controller_is_away_leaders_are_used_and_bytes_wait_for_the_racks(mock: MockCluster) -> None:
    """Leaders come from any broker, racks from the controller: neither may stay unknown after it is back."""
    mock.create(TOPIC, [2, 2])
    mock.down(1)  # the controller
    settings = config(mock, **{"client.rack": "az-b", "statistics.interval.ms": 20, "reconnect.backoff.max.ms": 50})
    producer = AZAwareProducer({**settings, "reconnect.backoff.ms": 10}, metadata_timeout_s=0.2)
    producer._kafka_azimuth.watcher._away_s = 0.05
    with pytest.warns(RackWarning, match="racks of the brokers could not be read"):
        producer.produce(TOPIC, b"v")
    partitioner = producer._kafka_azimuth.topics_in_use.partitioners[TOPIC]
    assert partitioner.leaders == (2, 2)
    assert producer.flush(10) == 0
    wait_until(lambda: producer.poll(0.01) >= 0 and producer._kafka_azimuth.statistics._unshared.get(TOPIC))
    assert producer.traffic().wire_topics == {}
    mock.up(1)
    wait_until(lambda: producer.poll(0.01) >= 0 and producer.traffic().wire_topics)
    assert list(partitioner.zones) == ["az-b", "az-b"]
    traffic = producer.traffic()
    assert traffic.wire_topics.keys() == {(TOPIC, "az-b")}
    assert "unknown" not in traffic.wire_bytes
    producer.close()
