"""Records that reach librdkafka without confluent-kafka in between."""

import gc
from types import ModuleType
from typing import Any

import pytest
from confluent_kafka import TIMESTAMP_CREATE_TIME, Consumer, KafkaError, KafkaException, Message, Producer

from producer import AZAwareProducer
from producer.testing import MockCluster
from tests.unit.producer.deliveries import TOPIC, Deliveries, config
from tests.waiting import wait_until

produce_compiled: ModuleType = pytest.importorskip(
    "producer.partitioning.produce_compiled", reason="the hot path is not compiled here"
)
MORE_THAN_A_MESSAGE = b"v" * 2_000_000
PARTS: list[bytes | str | None] = [None, b"", "", b"bytes", "Zürich", b"\0 in between \0", b"v" * 100_000]


@pytest.fixture
def producer(mock: MockCluster) -> AZAwareProducer:
    """A producer that has loaded a topic of six partitions."""
    mock.create(TOPIC, [1, 2, 3] * 2)
    made = AZAwareProducer(config(mock))
    made.produce(TOPIC, b"first")
    assert made._kafka_azimuth.direct.is_open
    return made


def read(mock: MockCluster, records: int) -> list[Message]:
    """Read this many records of the topic."""
    consumer = Consumer(
        {"bootstrap.servers": mock.bootstrap_servers, "group.id": "g", "auto.offset.reset": "earliest", "log_level": 0}
    )
    consumer.subscribe([TOPIC])
    found: list[Message] = []
    while len(found) < records:
        found += [one for one in consumer.consume(records, 1.0) if one.error() is None]
    consumer.close()
    return found


def test_a_release_of_confluent_kafka_with_an_unknown_layout_is_left_alone(
    mock: MockCluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The place of the client in its object is no promise of that package."""
    mock.create(TOPIC, [1, 2, 3])
    monkeypatch.setattr("producer.clients.confluent._LAYOUT_IS_KNOWN", False)
    made = AZAwareProducer(config(mock))
    made.produce(TOPIC, b"value")
    assert not made._kafka_azimuth.direct.is_open
    assert made.flush(20) == 0
    made.close()


def test_each_record_arrives_as_it_was_given(mock: MockCluster, producer: AZAwareProducer) -> None:
    """Null and empty are different values to a compacted topic, and a zero byte ends no text."""
    mock.wait_for_members(0)
    given = [(value, key) for value in PARTS for key in PARTS]
    for value, key in given:
        producer.produce(TOPIC, value, key)
    assert producer.flush(20) == 0

    def sent(data: bytes | str | None) -> bytes | None:
        return data.encode() if isinstance(data, str) else data

    arrived = [(one.value(), one.key()) for one in read(mock, len(given) + 1)]
    arrived.remove((b"first", None))
    expected = [(sent(value), sent(key)) for value, key in given]
    assert sorted(arrived, key=repr) == sorted(expected, key=repr)
    producer.close()


def test_a_record_has_the_time_of_its_call(mock: MockCluster, producer: AZAwareProducer) -> None:
    """The client sets it, as for a bare producer without a timestamp."""
    mock.wait_for_members(0)
    producer.produce(TOPIC, b"v")
    assert producer.flush(20) == 0
    for message in read(mock, 2):
        kind, at = message.timestamp()
        assert kind == TIMESTAMP_CREATE_TIME
        assert at > 0
    producer.close()


def test_both_ways_keep_the_order_of_a_key(mock: MockCluster, producer: AZAwareProducer) -> None:
    """A record with a callback, headers or a timestamp goes through confluent-kafka, its neighbours do not."""
    mock.wait_for_members(0)
    more: list[dict[str, Any]] = [{}, {"headers": {"h": b"v"}}, {}, {"on_delivery": Deliveries()}, {"timestamp": 5}]
    for number in range(500):
        producer.produce(TOPIC, b"%d" % number, b"key", **more[number % len(more)])
    assert producer.flush(20) == 0
    keyed = [int(one.value() or b"") for one in read(mock, 501) if one.key()]
    assert keyed == list(range(500))
    producer.close()


def test_a_default_callback_gets_a_report_of_each_record(mock: MockCluster) -> None:
    """Of the configuration; librdkafka reports no record to Python that it got directly."""
    mock.create(TOPIC, [1, 2, 3])
    reports = Deliveries()
    producer = AZAwareProducer(config(mock, on_delivery=reports))
    for _ in range(10):
        producer.produce(TOPIC, b"v", b"k")
    assert producer.flush(10) == 0
    assert reports.partitions.total() == 10
    producer.close()


@pytest.mark.parametrize("way", ["close", "with", "base class"])
def test_a_closed_producer_refuses_as_the_base_class(producer: AZAwareProducer, way: str) -> None:
    """Also if the base class closed it, past our method: the handles of its topics are gone with the client."""
    if way == "close":
        producer.close()
    elif way == "with":
        with producer:
            pass
    else:
        Producer.close(producer)
    with pytest.raises(RuntimeError) as ours:
        producer.produce(TOPIC, b"v", b"k")
    bare = Producer({"log_level": 0})
    bare.close()
    with pytest.raises(RuntimeError) as theirs:
        bare.produce(TOPIC, b"v", b"k")
    assert str(ours.value) == str(theirs.value)


def test_producers_may_be_dropped_without_a_close(mock: MockCluster) -> None:
    """The handles of topics are released before the client: librdkafka would use freed memory."""
    topics = [f"{TOPIC}-{number}" for number in range(5)]
    for topic in topics:
        mock.create(topic, [1, 2, 3])
    for _ in range(5):
        producer = AZAwareProducer(config(mock))
        for topic in topics * 2:
            producer.produce(topic, b"v")
        assert producer.flush(10) == 0
        producer._kafka_azimuth.watcher.close()
        del producer
        gc.collect()


@pytest.mark.parametrize("circular", [False, True], ids=["by the last reference", "by the collector"])
def test_the_way_is_closed_before_the_client_whoever_still_refers_to_it(mock: MockCluster, *, circular: bool) -> None:
    """The thread that reads leaders may hold destinations a moment longer: the process hung, or ended by a fault."""
    mock.create(TOPIC, [1, 2, 3])
    producer = AZAwareProducer(config(mock))
    for _ in range(2):  # the first of a topic goes another way than the rest
        producer.produce(TOPIC, b"v")
    kept, queue = producer._kafka_azimuth_destinations[TOPIC], producer._kafka_azimuth.direct
    assert queue.is_open
    if circular:
        circle: list[object] = [producer]
        circle.append(circle)
        del circle
    del producer
    wait_until(lambda: gc.collect() >= 0 and not queue.is_open, 20, what="the end of the producer")
    assert kept.keyed_partition(b"k") in range(3)


def test_a_record_that_is_too_large_is_the_base_classs_error_and_counts_nothing(producer: AZAwareProducer) -> None:
    """The client refuses it directly, and again through confluent-kafka, which raises."""
    before = producer.traffic()
    with pytest.raises(KafkaException) as refused:
        producer.produce(TOPIC, MORE_THAN_A_MESSAGE, b"k")
    assert refused.value.args[0].code() == KafkaError.MSG_SIZE_TOO_LARGE
    assert producer.traffic().topics == before.topics
    producer.close()


def test_a_record_outside_a_transaction_is_refused_and_inside_is_sent(mock: MockCluster) -> None:
    """As by the base class: a transactional producer accepts records between begin and commit only."""
    mock.create(TOPIC, [1, 2, 3])
    producer = AZAwareProducer(config(mock, **{"transactional.id": "one"}))
    producer.init_transactions(20)
    for _ in range(2):
        producer.begin_transaction()
        for _ in range(2):  # the first of a topic goes another way than the rest
            producer.produce(TOPIC, b"v", b"k")
        producer.commit_transaction(20)
        with pytest.raises(KafkaException) as refused:
            producer.produce(TOPIC, b"v", b"k")
        assert refused.value.args[0].code() == KafkaError._STATE
    assert sum(count.records for count in producer.traffic().topics.values()) == 4
    producer.close()


@pytest.mark.parametrize("other", [[1], "text", {"key": 1}], ids=["list", "text", "mapping"])
def test_an_object_that_has_no_empty_place_for_a_client_is_not_looked_into(other: object) -> None:
    """Another layout of confluent-kafka costs speed, not a crash: every record then goes through its method."""
    queue: Any = produce_compiled.DirectQueue(other)
    queue.start()
    assert not queue.is_open
    queue.close()


@pytest.mark.parametrize("kind", [Producer, AZAwareProducer])
def test_a_topic_that_is_gone_is_the_base_classs_error_and_heals(mock: MockCluster, kind: type[Producer]) -> None:
    """The handle of the topic is kept for the life of the producer, as librdkafka itself keeps the topic."""
    mock.create(TOPIC, [1, 2, 3])
    # Without it librdkafka takes a topic that is this new for one that is still being created.
    producer = kind(config(mock, **{"topic.metadata.propagation.max.ms": 0}))
    refusals: list[int] = []

    def refused() -> bool:
        producer.list_topics(TOPIC, 5)
        try:
            producer.produce(TOPIC, b"v", b"k")
        except KafkaException as refusal:
            refusals.append(refusal.args[0].code())
            return True
        return False

    assert not refused()
    assert producer.flush(10) == 0
    mock.refuse(TOPIC, KafkaError.UNKNOWN_TOPIC_OR_PART)
    wait_until(refused, 20)
    mock.refuse(TOPIC, KafkaError.NO_ERROR)
    wait_until(lambda: not refused(), 20)
    assert set(refusals) == {KafkaError._UNKNOWN_TOPIC}
    assert producer.flush(10) == 0
    producer.close()
