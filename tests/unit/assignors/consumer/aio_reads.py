"""An asyncio consumer of three partitions, and the records that it has not read."""

import asyncio
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from confluent_kafka import TopicPartition

from assignors import AIOGroupConsumer, HRWAssignor
from producer.testing import MockCluster
from tests.unit.assignors.conftest import RECORDS

ALL = {n: list(range(RECORDS)) for n in range(3)}
PARTITIONS = [TopicPartition("t", n) for n in range(3)]


def made(mock: MockCluster, executor: ThreadPoolExecutor | None, **more: Any) -> AIOGroupConsumer:
    """A consumer of the topic."""
    config = {
        "bootstrap.servers": mock.bootstrap_servers,
        "group.id": "g",
        "auto.offset.reset": "earliest",
        "enable.auto.commit": False,
        "log_level": 0,
        **more,
    }
    return AIOGroupConsumer(
        config, executor=executor, assignors=[HRWAssignor(agent="a")], member={"api_version": (2, 0)}
    )


async def rest(one: AIOGroupConsumer, found: list[Any]) -> None:
    """Add the records that are left."""
    async with asyncio.timeout(30):
        while len(found) < 3 * RECORDS:
            found += await one.consume(3 * RECORDS, 0.1)


async def progress(one: AIOGroupConsumer) -> int:
    """Number of records before the positions."""
    return sum(max(0, at.offset) for at in await one.position(PARTITIONS))
