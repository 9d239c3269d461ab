"""What a producer reads of its configuration itself, it reads as the client does."""

import asyncio
from typing import Any

import numpy as np
import pytest
from confluent_kafka import KafkaException

from producer import AZAwareAIOProducer, AZAwareProducer, TrafficMeter
from producer.decisions.partitioner_names import ClientPartitioner

LEAST = {"bootstrap.servers": "127.0.0.1:1", "log_level": 0}


def read(parts: Any) -> dict[str, Any]:
    """Return what the parts of a producer have read."""
    policy = parts.topics_in_use.policy
    return {
        "rack": policy.rack,
        "batch_bytes": policy.batch_bytes,
        "partitioner": policy.partitioner,
        "interval_s": parts.statistics._interval_s,
        "asks": parts.topology.has_connection,
        "username": parts.topology._config.get("sasl.username"),
        "queue": getattr(parts, "longest_queue", None),
    }


@pytest.mark.parametrize(
    ("given", "found"),
    [
        ({"client.rack": np.int64(2)}, {"rack": "2"}),
        ({"batch.size": "5000.0"}, {"batch_bytes": 5000}),
        ({"batch.size": "0x1000"}, {"batch_bytes": 4096}),
        ({"statistics.interval.ms": "700.0"}, {"interval_s": 0.7}),
        ({"statistics.interval.ms": "0x400"}, {"interval_s": 1.024}),
        ({"queue.buffering.max.messages": "7e3"}, {"queue": 7}),
        ({"test.mock.num.brokers": "1.0"}, {"asks": False}),
        ({"default.topic.config": {"client.rack": "az-b"}}, {"rack": "az-b"}),
        ({"default.topic.config": {"statistics.interval.ms": 0}}, {"interval_s": 0.0}),
        ({"default.topic.config": {"sasl.username": "me"}}, {"username": "me"}),
        ({"default.topic.config": {"partitioner": "fnv1a"}}, {"partitioner": ClientPartitioner.FNV1A}),
    ],
    ids=str,
)
def test_each_spelling_has_the_meaning_that_the_client_gives_it(given: dict[str, Any], found: dict[str, Any]) -> None:
    """Wire bytes were missing, racks were read without credentials, and a zone had no effect."""
    with AZAwareProducer({**LEAST, **given}) as producer:
        assert found.items() <= read(producer._kafka_azimuth).items()

    async def run() -> dict[str, Any]:
        async with AZAwareAIOProducer({**LEAST, **given}) as producer:
            return read(producer._kafka_azimuth)

    assert {**asyncio.run(run()), "queue": found.get("queue")}.items() >= found.items()


@pytest.mark.parametrize("name", ["batch.size", "queue.buffering.max.messages", "statistics.interval.ms"])
@pytest.mark.parametrize("value", [float("inf"), -1])
def test_a_number_that_the_client_refuses_is_refused_by_its_name(name: str, value: float) -> None:
    """It was an OverflowError, or named an argument that the program had not given."""
    with pytest.raises(KafkaException, match=name):
        AZAwareProducer({**LEAST, name: value})


@pytest.mark.parametrize("given", [{"client.rack": 2}, {"default.topic.config": {"client.rack": "2"}}], ids=str)
def test_a_meter_reads_the_zone_as_a_producer(given: dict[str, Any]) -> None:
    """Compared as a number, each record would leave its zone."""
    assert TrafficMeter({**LEAST, **given}, racks={1: "2"}).traffic().rack == "2"
