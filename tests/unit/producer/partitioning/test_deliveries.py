"""Records that count when librdkafka's own threads learn of their delivery, on its mock cluster."""

import gc
import os
import threading
from collections.abc import Callable
from itertools import pairwise
from typing import Any

import pytest
from confluent_kafka import KafkaException, Producer

from producer import AZAwareProducer, AZAwareSerializingProducer, Count, ForkError, MetadataError, Reason
from producer.clients import leader_requests, leader_watcher, unpolled_reports
from producer.metadata_requests import read_leaders
from producer.testing import MockCluster
from tests.unit.producer.deliveries import TOPIC, Deliveries, config
from tests.waiting import wait_until

pytest.importorskip("producer.partitioning.produce_compiled", reason="the hot path is not compiled here")

Send = Callable[[AZAwareProducer, dict[str, Any]], None]


def by_produce(producer: AZAwareProducer, more: dict[str, Any]) -> None:
    """Send one record of 10 bytes and a key of one."""
    producer.produce(TOPIC, b"v" * 10, b"k", **more)


def by_batch(producer: AZAwareProducer, more: dict[str, Any]) -> None:
    """Send it in a batch."""
    assert producer.produce_batch(TOPIC, [{"value": b"v" * 10, "key": b"k"}], **more) == 1


@pytest.fixture
def topic(mock: MockCluster) -> str:
    """A topic with one partition a zone."""
    mock.create(TOPIC, [1, 2, 3])
    return TOPIC


def total(producer: AZAwareProducer) -> Count:
    """All that counts."""
    found = Count()
    for count in producer.traffic().topics.values():
        found = found.plus(count)
    return found


@pytest.mark.usefixtures("topic")
@pytest.mark.parametrize("send", [by_produce, by_batch])
@pytest.mark.parametrize(
    "more", [{}, {"on_delivery": Deliveries()}, {"partition": 1}], ids=["", "callback", "explicit"]
)
def test_a_record_counts_once_delivered_and_never_if_it_is_purged(
    mock: MockCluster, send: Send, more: dict[str, Any]
) -> None:
    """By default: a purged record was billed, and nothing could take it back without a counter that falls."""
    producer = AZAwareProducer(config(mock, **{"linger.ms": 60_000}))
    for _ in range(2):
        send(producer, more)
    assert producer.traffic().delivered
    assert total(producer) == (0, 0)
    assert producer.flush(20) == 0
    assert total(producer) == (2, 22)
    send(producer, more)
    producer.purge()
    wait_until(lambda: producer.poll(0.05) >= 0 and len(producer) == 0, 20)
    assert total(producer) == (2, 22)
    assert producer.traffic().cost() == pytest.approx(producer.traffic().cross.bytes / 1e9 * 0.01)
    producer.close()


@pytest.mark.usefixtures("topic")
def test_a_record_that_is_given_up_never_counts(mock: MockCluster) -> None:
    """Its brokers were gone for longer than the client tries."""
    producer = AZAwareProducer(config(mock, **{"message.timeout.ms": 300}))
    by_produce(producer, {})
    assert producer.flush(20) == 0
    for broker in (1, 2, 3):
        mock.down(broker)
    seen = Deliveries()
    by_produce(producer, {"on_delivery": seen})
    by_produce(producer, {})
    wait_until(lambda: producer.poll(0.05) >= 0 and len(producer) == 0, 20)
    assert len(seen.errors) == 1
    assert total(producer) == (1, 11)
    producer.close()


@pytest.mark.usefixtures("topic")
def test_records_count_while_nobody_polls(mock: MockCluster, monkeypatch: pytest.MonkeyPatch) -> None:
    """The client's own threads count, so a scrape sees them; also where successes are not reported."""
    monkeypatch.setattr(unpolled_reports, "_GRACE_S", 1_000.0)
    producer = AZAwareProducer(config(mock, **{"delivery.report.only.error": True}))
    for _ in range(100):
        by_produce(producer, {})
    wait_until(lambda: total(producer) == (100, 1_100), 20)
    producer.close()


@pytest.mark.usefixtures("topic")
def test_counters_never_fall_while_leaders_move_and_threads_send(mock: MockCluster) -> None:
    """Each record counts once for the zone that led its partition, whoever reads in between."""
    producer = AZAwareProducer(config(mock), hold_s=0.0)
    by_produce(producer, {})
    assert producer.flush(20) == 0
    each, seen, over = 2_000, [producer.traffic()], threading.Event()

    def send() -> None:
        for number in range(each):
            producer.produce(TOPIC, b"v" * 10, b"%d" % (number % 10), partition=-1 if number % 5 else 2)

    def read() -> None:
        while not over.is_set():
            seen.append(producer.traffic())

    senders = [threading.Thread(target=send) for _ in range(3)]
    reader = threading.Thread(target=read)
    for thread in (*senders, reader):
        thread.start()
    for turn in range(6):
        mock.lead(TOPIC, [turn % 3 + 1, 2, 3])
        producer.refresh_leaders()
        producer.poll(0.05)
    for thread in senders:
        thread.join()
    assert producer.flush(30) == 0
    over.set()
    reader.join()
    assert total(producer) == (3 * each + 1, (3 * each + 1) * 11)
    for before, after in pairwise(seen):
        for cell, count in before.topics.items():
            assert after.topics[cell].records >= count.records
            assert after.topics[cell].bytes >= count.bytes
        assert after.cost() >= before.cost()
    producer.close()


@pytest.mark.parametrize("partitions", [1, 63, 64, 65, 200])
def test_each_partition_has_its_own_count(mock: MockCluster, partitions: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """At the ends of the pieces of memory that grow with a topic, too."""
    monkeypatch.setattr(leader_watcher.LeaderWatcher, "load_later", lambda *_: None)  # its thread would take them
    mock.create(TOPIC, [number % 3 + 1 for number in range(partitions)])
    producer = AZAwareProducer(config(mock))
    producer.produce(TOPIC, b"", partition=0)
    for number in range(partitions):
        producer.produce(TOPIC, b"v" * number, partition=number)
    assert producer.flush(30) == 0
    taken = producer._kafka_azimuth.deliveries.take(TOPIC)
    assert {partition: (records, size) for partition, _, records, size in taken} == {
        number: (1 + (number == 0), number) for number in range(partitions)
    }
    assert {way for _, way, _, _ in taken} == {"explicit"}
    assert producer._kafka_azimuth.deliveries.take(TOPIC) == []
    producer.close()


@pytest.mark.filterwarnings("ignore::producer.RackWarning")
def test_records_that_are_delivered_before_the_leaders_are_read_count_for_their_zone(
    mock: MockCluster, topic: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A batch whose partitions the application gives does not wait for the leaders: it stayed "unknown" for ever."""
    may_read = threading.Event()

    def read(*arguments: Any, **more: Any) -> Any:
        if not may_read.is_set():
            raise MetadataError("away")
        return read_leaders(*arguments, **more)

    monkeypatch.setattr(leader_requests, "read_leaders", read)
    producer = AZAwareProducer(config(mock), metadata_timeout_s=0.01)
    assert producer.produce_batch(topic, [{"value": b"v"}] * 10, partition=1) == 10
    for number in range(60):  # librdkafka chooses among all partitions
        producer.produce(topic, b"v", key=str(number))
    assert producer.flush(30) == 0
    may_read.set()
    wait_until(lambda: topic in producer._kafka_azimuth.topics_in_use.partitioners)
    traffic = producer.traffic()
    assert sum(count.records for zone, count in traffic.zones.items() if zone != "unknown") == 70
    assert {reason: count.records for reason, count in traffic.reasons.items()} == {
        Reason.EXPLICIT: 10,
        Reason.NO_METADATA: 60,
    }
    producer.close()


def test_headers_and_names_in_any_alphabet_count(mock: MockCluster) -> None:
    """Bytes as they are sent; a second topic is not taken for the first one."""
    mock.create(TOPIC, [1])
    mock.create("other", [1])
    producer = AZAwareProducer(config(mock))
    for topic in (TOPIC, "other", TOPIC):
        producer.produce(topic, "Zürich", "ä", headers=[("ä", b"12345"), ("n", None)])
    assert producer.flush(20) == 0
    assert producer.traffic().topics == {(TOPIC, "az-a"): (2, 34), ("other", "az-a"): (1, 17)}
    producer.close()


@pytest.mark.usefixtures("topic")
@pytest.mark.parametrize("way", ["close", "with", "dropped", "collected"])
def test_figures_outlive_the_client_with_records_in_flight(mock: MockCluster, way: str) -> None:
    """Librdkafka's threads count until the client has ended, whoever still refers to the producer or its figures."""
    for _ in range(3):
        producer = AZAwareProducer(config(mock))
        for number in range(200):
            by_produce(producer, {"partition": 1} if number % 2 else {})
        deliveries = producer._kafka_azimuth.deliveries
        if way == "close":
            producer.close()
        elif way == "with":
            with producer:
                pass
        elif way == "collected":
            circle: list[object] = [producer]
            circle.append(circle)
            del circle
        if way in {"close", "with"}:
            assert total(producer) == (200, 2_200)
        del producer
        gc.collect()
        assert sum(records for _, _, records, _ in deliveries.take(TOPIC)) <= 200
        del deliveries


@pytest.mark.usefixtures("topic")
def test_the_records_of_an_aborted_transaction_that_never_left_do_not_count(mock: MockCluster) -> None:
    """An abort drops what waits in the queue; what the broker took before has crossed the zone, and stays counted."""
    producer = AZAwareProducer(config(mock, **{"transactional.id": "one", "linger.ms": 30_000}))
    producer.init_transactions(20)
    producer.begin_transaction()
    by_produce(producer, {})
    by_produce(producer, {})
    producer.abort_transaction(20)
    assert total(producer) == (0, 0)
    producer.begin_transaction()
    by_produce(producer, {})
    producer.commit_transaction(20)
    assert total(producer) == (1, 11)
    producer.close()


@pytest.mark.usefixtures("topic")
def test_a_record_that_is_sent_again_counts_once(mock: MockCluster) -> None:
    """The client retries by itself; only the last answer is a delivery."""
    producer = AZAwareProducer(config(mock, **{"retry.backoff.ms": 10}))
    by_produce(producer, {})
    assert producer.flush(20) == 0
    mock.lead(TOPIC, [2, 3, 1])  # the old leaders answer that they are not, until the client has read the new ones
    for _ in range(20):
        by_produce(producer, {})
    assert producer.flush(30) == 0
    assert total(producer) == (21, 21 * 11)
    producer.close()


@pytest.mark.usefixtures("topic")
def test_callbacks_are_those_of_the_bare_client(mock: MockCluster) -> None:
    """The same calls in the same order, and an error of one ends `flush` as it does there; the record still counts."""
    calls: dict[str, list[tuple[object, object]]] = {}
    for kind in (Producer, AZAwareProducer):
        seen = calls[kind.__name__] = []

        def report(error: object, message: Any, seen: list[tuple[object, object]] = seen) -> None:
            seen.append((message.key(), error))
            if message.key() == b"3":
                raise ValueError("from a callback")

        producer = kind(config(mock, **{"linger.ms": 200}))
        for number in range(6):
            producer.produce(TOPIC, b"v", b"%d" % number, 0, on_delivery=report)
        with pytest.raises(ValueError, match="from a callback"):
            producer.flush(20)
        assert producer.flush(20) == 0
        if isinstance(producer, AZAwareProducer):
            assert total(producer) == (6, 12)
        producer.close()
    assert calls["Producer"] == calls["AZAwareProducer"]
    assert [key for key, _ in calls["Producer"]] == [b"%d" % number for number in range(6)]


@pytest.mark.usefixtures("topic")
def test_a_refused_record_leaves_no_mark_for_the_next_one(mock: MockCluster) -> None:
    """A refusal is an acknowledgement with an error, and the next record of the thread is not the caller's choice."""
    producer = AZAwareProducer(config(mock), keys="local-hrw")
    by_produce(producer, {})
    with pytest.raises(KafkaException):
        by_produce(producer, {"partition": 99})
    by_produce(producer, {})
    assert producer.flush(20) == 0
    assert producer.traffic().reasons == {Reason.LOCAL: (2, 22)}
    producer.close()


@pytest.mark.usefixtures("topic")
def test_the_serializing_producer_counts_what_it_sends(mock: MockCluster) -> None:
    """The serialized bytes."""
    settings = {**config(mock), "value.serializer": lambda value, _: value * 2}
    producer = AZAwareSerializingProducer(settings)
    producer.produce(TOPIC, key=b"k", value=b"v")
    assert producer.flush(20) == 0
    assert total(producer) == (1, 3)
    producer.close()


@pytest.mark.usefixtures("topic")
def test_the_copy_after_a_fork_refuses_and_the_original_goes_on_counting(mock: MockCluster) -> None:
    """The threads that count stay in the process that made the producer."""
    producer = AZAwareProducer(config(mock))
    by_produce(producer, {})
    assert producer.flush(20) == 0
    child = os.fork()
    if not child:
        try:
            producer.traffic()
        except ForkError:
            os._exit(0)
        os._exit(1)
    assert os.waitpid(child, 0)[1] == 0
    by_produce(producer, {})
    assert producer.flush(20) == 0
    assert total(producer) == (2, 22)
    producer.close()


def test_the_applications_plugins_are_loaded_as_well(mock: MockCluster) -> None:
    """The counts come to librdkafka as a plugin, and the setting is a list: one that is missing is still an error."""
    with pytest.raises(KafkaException, match="no-such-plugin"):
        AZAwareProducer(config(mock, **{"plugin.library.paths": "no-such-plugin"}))


@pytest.mark.usefixtures("topic")
def test_a_bare_client_that_is_made_meanwhile_is_not_counted(mock: MockCluster) -> None:
    """Only the client that the constructor makes; a second producer has counts of its own."""
    first, second, bare = AZAwareProducer(config(mock)), AZAwareProducer(config(mock)), Producer(config(mock))
    by_produce(first, {})
    bare.produce(TOPIC, b"v")
    assert [client.flush(20) for client in (first, second, bare)] == [0, 0, 0]
    assert total(first) == (1, 11)
    assert total(second) == (0, 0)
    for client in (first, second, bare):
        client.close()
