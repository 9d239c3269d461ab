"""`AZAwareProducer.produce_batch` on librdkafka's mock cluster, and the counts after a refusal."""

from typing import Any

import pytest
from confluent_kafka import KafkaError, KafkaException, murmur2

from producer import AZAwareProducer, Reason
from producer.testing import MockCluster
from tests.unit.producer.deliveries import TOPIC, Deliveries, config

pytestmark = pytest.mark.usefixtures("hot")


def test_a_batch_goes_where_its_messages_say_or_stays_local(mock: MockCluster) -> None:
    """The library ignores a message's own partition; grouping keeps it, and the order within a partition."""
    mock.create(TOPIC, [1, 2, 3] * 2)
    seen = Deliveries()
    producer = AZAwareProducer(config(mock), keys="local-hrw")
    messages: list[dict[str, Any]] = [{"value": f"{n}", "key": f"{n}" if n % 2 else None} for n in range(100)]
    messages.append({"value": b"own", "partition": 4})
    assert producer.produce_batch(TOPIC, messages, on_delivery=seen) == 101
    assert producer.produce_batch(TOPIC, [{"value": b"all"}], partition=5, on_delivery=seen) == 1
    assert producer.flush(10) == 0
    assert set(seen.partitions) == {0, 3, 4, 5}
    assert producer.traffic().local.records == 100
    assert producer.traffic().reasons[Reason.EXPLICIT].records == 2
    with pytest.raises(TypeError, match="index 1"):
        producer.produce_batch(TOPIC, [{"value": b"fine"}, {"value": 5}])
    with pytest.raises(TypeError, match="list"):
        producer.produce_batch(TOPIC, "no list")  # type: ignore[arg-type] # the mistake itself
    assert producer.traffic().local.records == 100
    assert len(producer) == 0
    producer.close()


@pytest.mark.parametrize(
    "wrong",
    [
        {"headers": 5},
        {"headers": [("name", 5)]},
        {"headers": {"name": 5}},
        {"headers": [("\ud800", b"v")]},
        {"headers": {"\ud800": b"v"}},
        {"timestamp": 1},
        {"partition": "x"},
        {"key": "\ud800"},
        {"value": "\ud800"},
    ],
    ids=str,
)
def test_a_batch_with_a_wrong_message_sends_and_counts_nothing(mock: MockCluster, wrong: dict[str, Any]) -> None:
    """However late in the batch it is, and whatever is wrong with it."""
    mock.create(TOPIC, [1, 2, 3] * 2)
    producer = AZAwareProducer(config(mock, **{"linger.ms": 10_000}))
    producer.produce(TOPIC, b"first")
    assert producer.flush(10) == 0
    batch = [{"value": b"v", "partition": n} for n in (0, 1, 2)] + [{"value": b"v", "key": "k"}]
    with pytest.raises((TypeError, ValueError, NotImplementedError)):
        producer.produce_batch(TOPIC, [*batch, {"value": b"v", **wrong}, {"value": b"v", "partition": 3}])
    assert len(producer) == 0
    traffic = producer.traffic()
    assert (traffic.local, traffic.cross.records) == ((1, 5), 0)
    producer.close()


def test_a_partition_that_the_client_refuses_midway_leaves_only_what_was_sent_counted(mock: MockCluster) -> None:
    """The partitions before it were sent; it and all after it were not."""
    mock.create(TOPIC, [1, 2, 3] * 2)
    producer = AZAwareProducer(config(mock))
    producer.produce(TOPIC, b"first")
    with pytest.raises(OverflowError):
        producer.produce_batch(TOPIC, [{"value": b"v", "partition": n} for n in (0, 1 << 40, 3)])
    assert producer.flush(10) == 0
    assert producer.traffic().local == (2, 6)
    producer.close()


@pytest.mark.parametrize("partition", [-1, 0])
def test_messages_of_a_batch_that_found_no_room_are_counted_when_they_are_sent_again(
    mock: MockCluster, partition: int
) -> None:
    """A caller hands the same messages in again, which still hold the error of the first time."""
    mock.create(TOPIC, [1, 1])
    producer = AZAwareProducer(config(mock, **{"queue.buffering.max.messages": 2, "linger.ms": 10_000}))
    producer.produce(TOPIC)  # reads the leaders: a batch with a partition does not wait for them
    assert producer.flush(10) == 0
    batch: list[dict[str, Any]] = [{"value": b"v"} for _ in range(3)]
    assert producer.produce_batch(TOPIC, batch, partition) == 2
    refused = [message for message in batch if "_error" in message]
    assert producer.flush(10) == 0
    assert producer.traffic().local == (3, 2)
    assert producer.produce_batch(TOPIC, refused, partition) == 1
    assert not any("_error" in message for message in refused)
    assert producer.flush(10) == 0
    assert producer.traffic().local == (4, 3)
    producer.close()


@pytest.mark.usefixtures("hot")
@pytest.mark.parametrize("keyed", [True, False])
def test_a_full_queue_takes_the_first_messages_of_a_batch(mock: MockCluster, *, keyed: bool) -> None:
    """As with the bare client, a caller may send the messages behind the returned number again, and loses none."""
    mock.create(TOPIC, [1, 2, 3] * 2)
    producer = AZAwareProducer(config(mock, **{"queue.buffering.max.messages": 50, "linger.ms": 20}), batch_bytes=16)
    producer.produce(TOPIC, b"first")
    assert producer.flush(10) == 0
    seen = []
    key = "key-%d" if keyed else None
    messages: list[dict[str, Any]] = [{"value": b"%d" % n, "key": key and key % n} for n in range(200)]
    rest = messages
    while rest:
        queued = producer.produce_batch(
            TOPIC, rest, on_delivery=lambda _, record: seen.append(int(record.value() or b""))
        )
        refused = [message["_error"].code() for message in rest[queued:]]
        assert refused == [KafkaError._QUEUE_FULL] * len(refused)
        assert all("_error" not in message for message in rest[:queued])
        rest = rest[queued:]
        producer.poll(0.05)
    assert producer.flush(10) == 0
    assert sorted(seen) == list(range(200))
    assert sum(one.records for one in producer.traffic().topics.values()) == 201
    producer.close()


@pytest.mark.usefixtures("hot")
def test_no_record_of_a_key_overtakes_another_in_a_queue_that_is_full_by_bytes(mock: MockCluster) -> None:
    """Some messages of the key name its partition, so they are sent apart; the last ones alone would still fit."""
    mock.create(TOPIC, [1, 2, 3] * 2)
    producer = AZAwareProducer(config(mock, **{"queue.buffering.max.kbytes": 4, "linger.ms": 10_000}))
    own = {"partition": murmur2(b"key", 6)}
    sizes = (900, 2900, 900, 10, 10)
    messages: list[dict[str, Any]] = [
        {"key": b"key", "value": b"v" * size, **(own if number % 2 else {})} for number, size in enumerate(sizes)
    ]
    assert producer.produce_batch(TOPIC, messages) == 2
    assert ["_error" in message for message in messages] == [False, False, True, True, True]
    assert messages[-1]["_error"].code() == KafkaError._QUEUE_FULL
    producer.purge()
    producer.close()


def test_what_the_client_refuses_is_not_counted(mock: MockCluster) -> None:
    """A partition out of range, a value or a key that is no bytes, a full queue: the base class's errors."""
    mock.create(TOPIC, [1, 2, 3])
    producer = AZAwareProducer(config(mock, **{"queue.buffering.max.messages": 1, "linger.ms": 10_000}))
    producer.produce(TOPIC, b"fits")
    with pytest.raises(BufferError):
        producer.produce(TOPIC, b"does not")
    assert producer.flush(10) == 0
    for partition in (99, -2):  # -1 alone means that the producer chooses
        with pytest.raises(KafkaException, match="Unknown partition"):
            producer.produce(TOPIC, b"v", partition=partition)
        message: dict[str, Any] = {"value": b"v"}
        for one, of_all in (message, partition), (message | {"partition": partition}, -1):
            assert producer.produce_batch(TOPIC, [one], of_all) == 0
            assert one["_error"].code() == KafkaError._UNKNOWN_PARTITION
    with pytest.raises(TypeError):
        producer.produce(TOPIC, 5)  # type: ignore[arg-type] # the mistake itself
    with pytest.raises(TypeError, match="key must be"):
        producer.produce(TOPIC, b"v", 5)  # type: ignore[arg-type] # the mistake itself
    assert producer.flush(10) == 0
    traffic = producer.traffic()
    assert traffic.local == (1, 4)
    assert traffic.cross.records == traffic.unknown.records == 0
    producer.close()
