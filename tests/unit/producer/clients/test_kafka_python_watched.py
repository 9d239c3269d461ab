"""A producer of kafka-python that is watched behaves as one that is not."""

import gc
from collections.abc import Callable
from typing import Any

import pytest
from kafka import KafkaProducer
from kafka.errors import TopicAuthorizationFailedError
from kafka.serializer.abstract import Serializer

from producer import AZAwarePartitioner
from producer.testing import MockCluster
from tests.unit.producer.clients.test_kafka_python import TOPIC, connect

HEADERS = [("h", b"1234567")]


def watch(mock: MockCluster, **more: Any) -> tuple[AZAwarePartitioner, Any]:
    """Make a topic, and a watched producer in the zone of its only leader."""
    mock.create(TOPIC, [1])
    partitioner = AZAwarePartitioner(rack="az-a")
    producer = connect(mock, partitioner, **more)
    partitioner.watch(producer)
    return partitioner, producer


def test_a_forgotten_producer_closes_itself_at_once(mock: MockCluster) -> None:
    """As a bare one, without the garbage collector, which a program may have turned off."""
    _, producer = watch(mock, linger_ms=60_000)
    future, sender = producer.send(TOPIC, b"v", headers=HEADERS), producer._sender
    gc.disable()
    try:
        del producer
        assert not sender.is_alive()
    finally:
        gc.enable()
    assert future.succeeded()


def test_a_watched_producer_keeps_its_class_and_its_methods(mock: MockCluster) -> None:
    """Also a method that outlives the name of its producer, and the error of a wrong call."""
    producer = watch(mock)[1]
    assert issubclass(type(producer), KafkaProducer)
    assert repr(type(producer)) == repr(KafkaProducer)
    with pytest.raises(TypeError, match=r"KafkaProducer\.send\(\) takes from 2 to 7 positional arguments but 8"):
        producer.send(TOPIC, b"v", None, HEADERS, 0, 1, 2)
    send, close = producer.send, producer.close
    del producer
    assert send(TOPIC, b"v").get(10).partition == 0
    close()


def test_a_producer_that_is_watched_twice_counts_once(mock: MockCluster) -> None:
    """Each call wrapped `send` again, so headers counted once for each call."""
    partitioner, producer = watch(mock)
    partitioner.watch(producer)
    producer.send(TOPIC, b"v", headers=HEADERS).get(10)
    assert partitioner.traffic().local == (1, 1 + 8)
    producer.close()


def test_a_topic_that_may_not_be_seen_any_more_fails_the_future(
    mock: MockCluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As without headers; `send` raised a TypeError, because the refused record has no partition."""
    partitioner, producer = watch(mock)
    producer.send(TOPIC, b"v", headers=HEADERS).get(10)
    before = partitioner.traffic().local

    def refuse(topic: str, _wait_ms: float) -> set[int]:
        raise TopicAuthorizationFailedError({topic})

    with monkeypatch.context() as patched:
        patched.setattr(producer._metadata, "partitions_for_topic", lambda _: None)
        patched.setattr(producer, "_wait_on_metadata", refuse)
        future = producer.send(TOPIC, b"v", headers=HEADERS)
    assert isinstance(future.exception, TopicAuthorizationFailedError)
    assert partitioner.traffic().local == before
    producer.close()


@pytest.mark.parametrize(
    ("serialize", "key", "sent"),
    [(lambda _: None, b"k", 0), (lambda key: key or b"default", None, 7)],
    ids=["removes it", "makes one"],
)
def test_headers_weigh_where_the_serializer_decides_about_the_key(
    mock: MockCluster, serialize: Callable[[bytes | None], bytes | None], key: bytes | None, sent: int
) -> None:
    """Their bytes were added to the other kind of records, and appeared only when such a record was sent."""

    class Keys(Serializer):
        """Adds or removes a key."""

        def serialize(self, topic: str, headers: object, data: bytes | None) -> bytes | None:
            """Convert a key."""
            assert topic == TOPIC
            assert headers == HEADERS
            return serialize(data)

    partitioner, producer = watch(mock, key_serializer=Keys())
    producer.send(TOPIC, b"v", key, headers=HEADERS).get(10)
    assert partitioner.traffic().local == (1, 1 + sent + 8)
    producer.close()
