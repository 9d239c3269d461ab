"""`AZAwareAIOProducer` against librdkafka's mock cluster."""

import asyncio

import pytest

from producer import AZAwareAIOProducer, Reason
from producer.testing import MockCluster
from tests.unit.producer.deliveries import TOPIC, config


def test_the_asyncio_client_keeps_records_local_too(mock: MockCluster) -> None:
    """No key, a key, an explicit partition; counts and callbacks as in the synchronous client."""
    mock.create(TOPIC, [1, 2, 3] * 2)

    async def run() -> tuple[list[int | None], AZAwareAIOProducer]:
        async with AZAwareAIOProducer(config(mock), keys="local-hrw") as producer:
            futures = [await producer.produce(TOPIC, b"v" * 10, f"{n}" if n % 2 else None) for n in range(200)]
            futures.append(await producer.produce(TOPIC, b"v" * 10, partition=1))
            await producer.flush()
            return [message.partition() for message in await asyncio.gather(*futures)], producer

    partitions, producer = asyncio.run(run())
    assert set(partitions[:-1]) <= {0, 3}
    assert partitions[-1] == 1
    traffic = producer.traffic()
    assert (traffic.local.records, traffic.unknown.records) == (200, 0)
    assert traffic.cross == traffic.reasons[Reason.EXPLICIT] == (1, 10)


def test_the_asyncio_client_counts_nothing_that_it_refuses(mock: MockCluster) -> None:
    """The base class takes no headers and says so at once."""
    mock.create(TOPIC, [1])

    async def run() -> AZAwareAIOProducer:
        async with AZAwareAIOProducer(config(mock)) as producer:
            await producer.produce(TOPIC, b"v")
            with pytest.raises(NotImplementedError, match="Headers are not supported"):
                await producer.produce(TOPIC, b"v", headers=[("name", b"v")])
            return producer

    assert asyncio.run(run()).traffic().local == (1, 1)
