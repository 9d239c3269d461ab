"""`AZAwareProducer` and its asyncio form against librdkafka's mock cluster."""

import gc
import logging
import threading
import time
from collections import Counter
from collections.abc import Callable
from typing import Any

import pytest
from confluent_kafka import KafkaError, KafkaException, Message, Producer

from producer import AZAwareProducer, PolicyError, RackWarning, Reason, SkewGuard
from producer.clients.client_statistics import queues
from producer.decisions.key_mapping import global_partition
from producer.decisions.sticky import queue_weights
from producer.testing import MockCluster
from producer.topology import connection
from tests.unit.producer.deliveries import TOPIC, Deliveries, config
from tests.waiting import wait_until

TOPIC_AUTHORIZATION_FAILED = 29
pytestmark = pytest.mark.usefixtures("hot")


@pytest.mark.parametrize("keys", ["global", "local-mod", "local-hrw"])
def test_everything_that_may_stay_local_does(mock: MockCluster, keys: str) -> None:
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
    wait_until(lambda: producer.poll(0.01) >= 0 and producer.traffic().wire_topics[cell].records == traffic.local[0])
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


def test_configuration_may_come_as_keywords(mock: MockCluster) -> None:
    """As in the base class: all of it, or some in addition to a dictionary, which the keywords override."""
    more: dict[str, Any] = {"client.rack": "az-a"}
    for producer in (
        AZAwareProducer(**config(mock)),
        AZAwareProducer(config(mock, **{"client.rack": "az-b"}), **more),
    ):
        assert producer._topics_in_use.policy.rack == "az-a"
        producer.close()


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


def test_counts_never_fall_while_a_queue_is_full(mock: MockCluster) -> None:
    """A batch was counted before it was queued, and the refused part taken back: Prometheus takes that for a reset."""
    mock.create(TOPIC, [1, 2, 3])
    # Without statistics: `len(producer)` counts a report that waits for a poll as well.
    settings = config(mock, **{"queue.buffering.max.messages": 20, "linger.ms": 10_000, "statistics.interval.ms": 0})
    producer = AZAwareProducer(settings, keys="local-hrw")
    producer.produce(TOPIC, b"v")
    counts: list[int] = []

    class Observed(dict[str, Any]):
        """A message that looks at the counts whenever it is read."""

        def get(self, *arguments: Any) -> Any:  # noqa: ANN401 - as the base class
            counts.append(producer.traffic().local.records)
            return super().get(*arguments)

    for _ in range(10):
        batch: list[Any] = [Observed(value=b"v", key=f"{number}" if number % 2 else None) for number in range(7)]
        sent = producer.produce_batch(TOPIC, batch)
        counts.append(producer.traffic().local.records)
        assert sent == sum("_error" not in message for message in batch)
    assert counts == sorted(counts)
    assert counts[-1] == len(producer) == 20
    producer.purge()
    producer.close()


def test_money_on_the_wire_is_after_compression(mock: MockCluster) -> None:
    """3.0 MB were billed where 0.2 MB went over the wire."""
    mock.create(TOPIC, [1, 2, 3])
    producer = AZAwareProducer(config(mock, **{"statistics.interval.ms": 50, "compression.type": "gzip"}))
    producer.produce(TOPIC, b"v")
    for _ in range(300):
        producer.produce(TOPIC, b"v" * 10_000, partition=1)
    assert producer.flush(20) == 0
    reported: list[float] = []

    def settled() -> bool:
        producer.poll(0.1)
        reported.append(producer.traffic().wire_cost() or 0.0)
        return reported[-1] > 0 and reported[-3:].count(reported[-1]) == len(reported[-3:]) > 1

    wait_until(settled, 10)
    assert reported == sorted(reported)
    assert producer.traffic().cost() >= 300 * 10_000 / 1e9 * 0.01
    assert reported[-1] < producer.traffic().cost() / 10
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


def test_tombstones_and_text_count_their_bytes(mock: MockCluster) -> None:
    """Bytes are counted as sent: UTF-8, and no value for a tombstone."""
    mock.create(TOPIC, [1])
    producer = AZAwareProducer(config(mock))
    producer.produce(TOPIC, None, b"gone")
    producer.produce(TOPIC, "Zürich", "ä", headers={"h": b"v"}, timestamp=1)
    producer.produce(TOPIC)
    assert producer.flush(10) == 0
    assert producer.traffic().local == (3, 4 + 7 + 2 + 2)
    producer.close()


def test_the_local_set_follows_leaders_away_and_back(mock: MockCluster) -> None:
    """Every leader leaves the zone, one comes back: fallback with its reason, then home after the hold, by itself."""
    mock.create(TOPIC, [1, 2, 3])
    producer = AZAwareProducer(config(mock), hold_s=0.2)
    producer.produce(TOPIC, b"v")
    mock.lead(TOPIC, [2, 2, 3])
    producer.refresh_leaders()
    partitioner = producer._topics_in_use.partitioners[TOPIC]
    wait_until(lambda: partitioner.locality.reason is Reason.NO_LOCAL_LEADER)
    producer.produce(TOPIC, b"v")
    mock.lead(TOPIC, [2, 1, 3])
    wait_until(lambda: partitioner.locality.reason is Reason.LOCAL)
    assert partitioner.locality.candidates == (1,)
    producer.produce(TOPIC, b"v")
    assert producer.flush(10) == 0
    assert producer.traffic().reasons[Reason.LOCAL].records == 2
    assert producer.traffic().reasons[Reason.NO_LOCAL_LEADER].records == 1
    producer.close()


def test_a_leader_that_moves_without_a_lost_broker_is_followed_by_the_statistics(mock: MockCluster) -> None:
    """The client learns it immediately; ours continued for up to 30 s, and counted cross-zone records as local."""
    mock.create(TOPIC, [1, 2, 3])
    producer = AZAwareProducer(config(mock, **{"statistics.interval.ms": 50}), refresh_s=1_000.0)
    producer.produce(TOPIC, b"v")
    assert producer.flush(10) == 0
    partitioner = producer._topics_in_use.partitioners[TOPIC]
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


def test_new_credentials_reach_every_client(mock: MockCluster) -> None:
    """The questions about racks went on with the old password."""
    settings = config(mock, **{"sasl.username": "old", "sasl.password": "old", "sasl.mechanism": "PLAIN"})
    producer = AZAwareProducer(settings)
    producer.set_sasl_credentials("new", "newer")
    found = connection(producer._topology._config)
    assert (found["sasl.username"], found["sasl.password"]) == ("new", "newer")
    producer.close()


@pytest.mark.parametrize(
    ("rack", "racks", "says"),
    [
        ("eu-west-1a", ("euw1-az1", "euw1-az2", "euw1-az3"), "zone name"),
        ("az-z", ("az-a", "az-b", "az-c"), "'az-a', 'az-b', 'az-c'"),
        ("az-a", (None, None, None), "no broker has a rack"),
        (None, ("az-a", "az-b", "az-c"), "own rack is not set"),
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
        assert not producer._topics_in_use.away()  # nowhere to come back to: no reason to ask every second
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
    wait_until(lambda: TOPIC in producer._topics_in_use.partitioners)
    producer.produce(TOPIC, b"v")
    assert producer.flush(10) == 0
    assert producer.traffic().local.records == 1
    producer.close()


def test_a_topic_that_appears_later_is_found(mock: MockCluster) -> None:
    """Until then its records are queued and counted as unknown; the library sends them when it can."""
    seen = Deliveries()
    producer = AZAwareProducer(config(mock, **{"allow.auto.create.topics": False}))
    mock.create("other", [1])
    producer.produce("other", b"v")
    producer.produce("later", b"v", on_delivery=seen)
    assert producer.traffic().reasons[Reason.NO_METADATA].records == 1
    producer.purge()
    producer.close()


def test_a_cluster_that_does_not_answer_warns_once_and_blocks_nobody_twice() -> None:
    """The first record waits for `metadata_timeout_s`; the rest are queued as a bare producer would."""
    settings = {"bootstrap.servers": "127.0.0.1:1", "client.rack": "az-a", "log_level": 0}
    producer = AZAwareProducer(settings, metadata_timeout_s=0.2)
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
def test_a_topic_made_anew_with_fewer_partitions_is_no_error(mock: MockCluster, key: bytes | None, way: str) -> None:
    """A bare producer chooses among those there are; ours, until it has read them, lets the client choose."""
    mock.create(TOPIC, [1, 2, 3])
    seen = Deliveries()
    producer = AZAwareProducer(config(mock), keys="local-hrw")
    producer.produce(TOPIC, b"v", key, on_delivery=seen)
    producer._topics_in_use.update(TOPIC, [2, 3, 2, 3, 1], {1: "az-a", 2: "az-b", 3: "az-c"}, 0.0)  # as it was before
    assert producer._destinations[TOPIC].partition == 4
    for _ in range(10):
        if way == "batch":
            assert producer.produce_batch(TOPIC, [{"value": b"v", "key": key}], on_delivery=seen) == 1
        else:
            producer.produce(TOPIC, b"v", key, headers={"h": b"v"}, on_delivery=seen)
    assert producer.flush(10) == 0
    assert seen.errors == []
    assert seen.partitions.total() == 11
    assert sum(count.records for count in producer.traffic().reasons.values()) == 11
    wait_until(lambda: len(producer._topics_in_use.partitioners[TOPIC].leaders) == 3)
    producer.close()


def test_what_is_no_topic_is_refused_and_not_waited_for(mock: MockCluster) -> None:
    """The base class's error; nothing keeps asking for a topic that can never appear."""
    mock.create(TOPIC, [1, 2, 3])
    producer = AZAwareProducer(config(mock))
    producer.produce(TOPIC, b"v")
    for topic in (None, 5, b"flights"):
        with pytest.raises(TypeError, match="argument 1 must be str"):
            producer.produce(topic, b"v")  # type: ignore[arg-type]  # the mistake itself
    assert producer._watcher.wait_s() == 30.0
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


@pytest.mark.parametrize(
    ("rack", "arguments", "says"),
    [
        ("az-a", {"keys": "nearest"}, "'global', 'local-mod', 'local-hrw'"),
        (" ", {}, "empty"),
        (5, {}, "rack=5, need text"),
        ("az-a", {"fallback": "az-b"}, r"need a list of zones: \['az-b'\]"),
        ("az-a", {"batch_bytes": 0}, "batch_bytes=0"),
        ("az-a", {"hold_s": float("nan")}, "hold_s=nan"),
    ],
    ids=["key mode", "empty rack", "rack of another type", "fallback that is no list", "batch bytes", "hold"],
)
def test_settings_that_cannot_work_are_named_before_anything_starts(
    rack: object, arguments: dict[str, Any], says: str
) -> None:
    """Value, place and way out, as one error of the package."""
    with pytest.raises(PolicyError, match=says):
        AZAwareProducer({"bootstrap.servers": "127.0.0.1:1", "client.rack": rack}, **arguments)


def test_the_applications_own_callbacks_are_still_called(mock: MockCluster) -> None:
    """Statistics and errors pass through; ours come first."""
    mock.create(TOPIC, [1])
    reports: list[object] = []
    settings = config(mock, **{"statistics.interval.ms": 20, "stats_cb": reports.append, "error_cb": reports.append})
    producer = AZAwareProducer(settings, metadata_timeout_s=1.0)
    producer.produce(TOPIC, b"v")
    wait_until(lambda: producer.poll(0.01) >= 0 and bool(reports))
    assert producer.flush(10) == 0
    for broker in mock.racks:
        mock.down(broker)
    wait_until(lambda: producer.poll(0.01) >= 0 and any(isinstance(one, KafkaError) for one in reports))
    producer.close()


@pytest.mark.parametrize(
    ("setting", "error"),
    [({"stats_cb": 5}, TypeError), ({"error_cb": "x"}, TypeError), ({"batch.size": "many"}, KafkaException)],
    ids=["stats_cb", "error_cb", "batch.size"],
)
def test_a_setting_that_the_client_refuses_is_refused_by_its_name(
    setting: dict[str, Any], error: type[Exception]
) -> None:
    """When the producer is made, as a bare one, and not at some later `poll`."""
    with pytest.raises(error, match=next(iter(setting))):
        AZAwareProducer({"bootstrap.servers": "127.0.0.1:1", "client.rack": "az-a", **setting})


def test_a_logger_may_be_given_as_to_the_base_class(caplog: pytest.LogCaptureFixture) -> None:
    """It takes the client's lines while the application polls."""
    logger = logging.getLogger("of the application")
    producer = AZAwareProducer({"bootstrap.servers": "127.0.0.1:1", "client.rack": "az-a"}, logger=logger)
    wait_until(lambda: producer.poll(0.01) >= 0 and "Connect" in caplog.text)
    producer.close()


def test_threads_share_a_producer_without_losing_a_count(mock: MockCluster) -> None:
    """Eight threads, one topic: every record is counted once and stays local."""
    mock.create(TOPIC, [1, 2, 3] * 2)
    producer = AZAwareProducer(config(mock), keys="local-hrw", batch_bytes=100)
    producer.produce(TOPIC, b"v" * 10)

    def send(number: int) -> None:
        for one in range(5_000):
            producer.produce(TOPIC, b"v" * 10, f"{number}-{one}" if one % 2 else None)
            if one % 1_000 == 0:
                producer.traffic()

    threads = [threading.Thread(target=send, args=(number,)) for number in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert producer.flush(20) == 0
    assert producer.traffic().local.records == 40_001
    assert producer.traffic().cross.records == 0
    producer.close()


def test_a_forgotten_producer_ends_its_thread(mock: MockCluster) -> None:
    """No close, no leak: the watching thread holds no reference to the producer."""
    mock.create(TOPIC, [1])
    producer = AZAwareProducer(config(mock), refresh_s=0.05)
    producer.produce(TOPIC, b"v")
    producer.flush(10)
    thread = producer._watcher._thread
    assert thread is not None
    del producer
    gc.collect()
    wait_until(lambda: not thread.is_alive())


def test_it_works_as_a_context_manager(mock: MockCluster) -> None:
    """As the base class does: flushed at the end of the block."""
    mock.create(TOPIC, [1])
    seen = Deliveries()
    with AZAwareProducer(config(mock)) as producer:
        producer.produce(TOPIC, b"v", on_delivery=seen)
    assert seen.partitions == {0: 1}


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


def test_a_slow_leader_gets_less() -> None:
    """Two leaders in the zone, one answers late: its waiting records lower its weight (KIP-794)."""
    with MockCluster(("az-a", "az-a")) as slow:
        slow.create(TOPIC, [1, 2])
        seen = Deliveries()
        settings = config(slow, **{"statistics.interval.ms": 20, "max.in.flight": 1})
        producer = AZAwareProducer(settings, batch_bytes=1_000)
        producer.produce(TOPIC, b"v", on_delivery=seen)
        assert producer.flush(10) == 0
        slow.delay(2, 300)
        sent = 0

        def send() -> bool:
            nonlocal sent
            for _ in range(100):
                producer.produce(TOPIC, b"v" * 100, on_delivery=seen)
            producer.poll(0.005)
            sent += 100
            return sent >= 20_000

        wait_until(send, 30)
        assert producer.flush(20) == 0
        assert seen.partitions[1] < 0.35 * sent
        assert producer.traffic().local.records == sent + 1
        producer.close()


def test_what_waits_for_a_dead_broker_weighs_the_most() -> None:
    """Bytes for a broker without a connection keep new records away; idle partitions are no queue."""
    partition = {"msgq_bytes": 10, "xmit_msgq_bytes": 5, "leader": 1}
    report = {
        "0": partition,
        "1": {**partition, "leader": 2},
        "2": {**partition, "msgq_bytes": 0, "xmit_msgq_bytes": 0},
    }
    found = queues({**report, "-1": partition}, {2})
    assert found[0] == 15
    assert found[1] > 10**15
    assert set(found) == {0, 1}


def test_a_report_of_short_queues_leaves_no_partition_out() -> None:
    """Under a batch is no queue, and one batch more halves a share: a report is seconds old when it is used."""
    report = {f"{n}": {"msgq_bytes": size, "xmit_msgq_bytes": 0, "leader": 1} for n, size in enumerate((900, 0, 99))}
    assert queues(report, batch_bytes=1_000) == {}
    report["0"]["msgq_bytes"] = 1_900
    assert queues(report, batch_bytes=1_000) == {0: 1}
    assert queue_weights((0, 1, 2), queues(report, batch_bytes=1_000)) == (1, 3, 5)


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
    assert places == {key: global_partition(key.encode(), 15) for key in places}
    assert len(places) == 100
    producer.close()
