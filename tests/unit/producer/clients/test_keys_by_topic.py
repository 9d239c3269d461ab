"""`keys` by patterns of topics: each way to send keeps the mode of each topic."""

import asyncio
from collections.abc import Callable
from itertools import groupby

import pytest
from confluent_kafka import murmur2
from kafka import KafkaProducer

from producer import (
    AZAwareAIOProducer,
    AZAwareAIOSerializingProducer,
    AZAwarePartitioner,
    AZAwareProducer,
    AZAwareSerializingProducer,
)
from producer.testing import MockCluster
from tests.unit.producer.deliveries import config

RULES = {r"local\..*": "local-mod", r"loose\..*": "ignore", r"any\.of": "ignore"}
TOPICS = ["local.one", "loose.one", "any.of", "any.of.these", "global.one"]
LEADERS = [1, 2, 3] * 2
LOCAL = (0, 3)
KEYS = [f"key-{number}".encode() for number in range(60)]
BATCH_BYTES = 500
VALUE = b"v" * 100
Sent = dict[str, list[int]]
"""Per topic, the partition of each key in `KEYS`."""


def by_produce(mock: MockCluster) -> Sent:
    """One record a call."""
    return _sync(AZAwareProducer(config(mock), keys=RULES, batch_bytes=BATCH_BYTES), batch=False)


def by_batch(mock: MockCluster) -> Sent:
    """All records in one call."""
    return _sync(AZAwareProducer(config(mock), keys=RULES, batch_bytes=BATCH_BYTES), batch=True)


def by_serializing(mock: MockCluster) -> Sent:
    """With a serializer of the key."""
    settings = config(mock, **{"key.serializer": lambda key, _: key})
    return _sync(AZAwareSerializingProducer(settings, keys=RULES, batch_bytes=BATCH_BYTES), batch=False)


def _sync(producer: AZAwareProducer, *, batch: bool) -> Sent:
    seen: dict[str, dict[bytes | None, int | None]] = {topic: {} for topic in TOPICS}
    for topic in TOPICS:

        def note(error: object, message: object, places: dict[bytes | None, int | None] = seen[topic]) -> None:
            assert error is None
            places[message.key()] = message.partition()  # type: ignore[attr-defined]  # a message

        if batch:
            messages = [{"value": VALUE, "key": key} for key in KEYS]
            assert producer.produce_batch(topic, messages, on_delivery=note) == len(KEYS)
        else:
            for key in KEYS:
                producer.produce(topic, value=VALUE, key=key, on_delivery=note)
    assert producer.flush(20) == 0
    producer.close()
    return {topic: [places[key] or 0 for key in KEYS] for topic, places in seen.items()}


def by_asyncio(mock: MockCluster) -> Sent:
    """The asyncio client, whose base class puts records into batches."""
    return asyncio.run(_aio(lambda: AZAwareAIOProducer(config(mock), keys=RULES, batch_bytes=BATCH_BYTES)))


def by_asyncio_serializing(mock: MockCluster) -> Sent:
    """Its twin with serializers."""
    settings = config(mock, **{"key.serializer": lambda key, _: key})
    return asyncio.run(_aio(lambda: AZAwareAIOSerializingProducer(settings, keys=RULES, batch_bytes=BATCH_BYTES)))


async def _aio(make: Callable[[], AZAwareAIOProducer]) -> Sent:
    async with make() as producer:
        futures = {topic: [await producer.produce(topic, value=VALUE, key=key) for key in KEYS] for topic in TOPICS}
        await producer.flush(20)
        return {
            topic: [message.partition() for message in await asyncio.gather(*ones)] for topic, ones in futures.items()
        }


def by_kafka_python(mock: MockCluster) -> Sent:
    """The other client."""
    producer = KafkaProducer(
        bootstrap_servers=mock.bootstrap_servers,
        api_version=(2, 0),
        enable_idempotence=False,
        linger_ms=60_000,  # a batch that is sent early may end a run early
        partitioner=AZAwarePartitioner(rack="az-a", keys=RULES, batch_bytes=BATCH_BYTES),
    )
    futures = {topic: [producer.send(topic, VALUE, key) for key in KEYS] for topic in TOPICS}
    producer.flush(20)
    producer.close()
    return {topic: [future.get(20).partition for future in ones] for topic, ones in futures.items()}


@pytest.mark.parametrize(
    "send", [by_produce, by_batch, by_serializing, by_asyncio, by_asyncio_serializing, by_kafka_python]
)
def test_each_topic_has_the_mode_of_the_first_pattern_that_matches_its_whole_name(
    mock: MockCluster, send: Callable[[MockCluster], Sent]
) -> None:
    """A key in a local mode has one partition of the zone, ignored keys fill runs there, and others are global."""
    for topic in TOPICS:
        mock.create(topic, LEADERS)
    sent = send(mock)
    assert sent["local.one"] == [LOCAL[murmur2(key, len(LOCAL))] for key in KEYS]
    assert sent["global.one"] == sent["any.of.these"] == [murmur2(key, len(LEADERS)) for key in KEYS]
    for topic in ("loose.one", "any.of"):
        assert set(sent[topic]) <= set(LOCAL)
        runs = [len(list(run)) for _, run in groupby(sent[topic])]
        assert sum(runs) == len(KEYS)
        # A run goes on until it has its bytes, and the next one may draw the same partition.
        assert all(length % 5 == 0 for length in runs[:-1]), runs
