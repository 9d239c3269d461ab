"""A task that is cancelled while it awaits `consume` or `poll` loses no record, whenever that happens."""

import asyncio
import contextlib
import random
from collections.abc import AsyncIterator, Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
from confluent_kafka import OFFSET_INVALID, Consumer, TopicPartition

from assignors import AIOGroupConsumer
from assignors.consumer.cancelled_reads import AwaitedTake
from assignors.consumer.fetching import Fetching
from assignors.consumer.one_thread_at_a_time import CallGate
from producer.testing import MockCluster
from tests.records import offsets
from tests.unit.assignors.conftest import RECORDS
from tests.unit.assignors.consumer.aio_reads import ALL, PARTITIONS, made, progress, rest

pytestmark = pytest.mark.long


@contextlib.asynccontextmanager
async def reading(mock: MockCluster, found: list[Any]) -> AsyncIterator[AIOGroupConsumer]:
    """A consumer that has delivered the first record."""
    with ThreadPoolExecutor(4) as executor:
        async with made(mock, executor) as one:
            await one.subscribe(["t"])
            found.extend(await one.consume(1, 20))
            yield one


@pytest.mark.parametrize("seed", range(4))
def test_each_record_is_delivered_once_and_in_order_whenever_tasks_are_cancelled(mock: MockCluster, seed: int) -> None:
    """After each cancellation the positions and the committed offsets are those of the records given out."""
    draw = random.Random(seed)
    found: list[Any] = []

    async def cancelled_often(one: AIOGroupConsumer) -> None:
        await one.subscribe(["t"])
        found.extend(await one.consume(1, 20))
        for _ in range(25):
            most, wait_s = draw.choice([1, 2, 7, 200]), draw.choice([0, 0.002, 0.05, 20])
            call = one.poll(wait_s) if draw.random() < 0.3 else one.consume(most, wait_s)
            task = asyncio.create_task(call)
            for _ in range(draw.choice([0, 1, 2, 3, 5])):
                await asyncio.sleep(0)
            await asyncio.sleep(draw.choice([0, 0.0002, 0.001, 0.01]))
            task.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                result = await task
                found.extend(result if isinstance(result, list) else [] if result is None else [result])
            assert await progress(one) == len(found)
        before = len(found)
        if before < 3 * RECORDS:  # in order to commit while records are taken
            await one.commit(asynchronous=False)
            assert sum(max(0, at.offset) for at in await one.committed(PARTITIONS, 10)) == before
        await rest(one, found)

    async def run() -> None:
        with ThreadPoolExecutor(4) as executor:
            async with made(mock, executor) as one:
                await cancelled_often(one)

    asyncio.run(run())
    assert offsets(found) == ALL, seed


class Gate(ThreadPoolExecutor):
    """Runs calls in threads, and reports when the newest one has ended."""

    def submit(self, call: Callable[..., Any], /, *given: Any, **named: Any) -> Any:
        """Run it."""
        self.last = super().submit(call, *given, **named)
        return self.last


def test_records_whose_thread_has_ended_go_back_too(mock: MockCluster) -> None:
    """The result is on its way to the task when the task is cancelled: only the event loop can return it."""
    found: list[Any] = []

    async def run() -> None:
        with Gate(4) as executor:
            async with made(mock, executor) as one:
                await one.subscribe(["t"])
                found.extend(await one.consume(1, 20))
                task = asyncio.create_task(one.consume(10, 20))
                await asyncio.sleep(0)
                await asyncio.sleep(0)
                executor.last.result(20)  # the loop stands still meanwhile
                task.cancel()
                with pytest.raises(asyncio.CancelledError):
                    await task
                assert await progress(one) == 1
                await rest(one, found)

    asyncio.run(run())
    assert offsets(found) == ALL


def test_a_commit_beside_a_call_does_not_count_its_records(mock: MockCluster) -> None:
    """Another task commits while records are in hand: if the call is cancelled then, they are not committed."""
    found: list[Any] = []

    async def run() -> None:
        async with reading(mock, found) as one:
            task = asyncio.create_task(one.consume(1000, 60))
            while not any(len(held) > 20 for held in one._kafka_azimuth.parts.fetching.in_hand._lists.values()):  # noqa: ASYNC110 -- of a thread
                await asyncio.sleep(0.01)
            assert await progress(one) == 1
            await one.commit(asynchronous=False)
            task.cancel()
            with pytest.raises(asyncio.CancelledError):
                await task
            assert sum(max(0, at.offset) for at in await one.committed(PARTITIONS, 10)) == 1
            await rest(one, found)

    asyncio.run(run())
    assert offsets(found) == ALL


async def in_hand(one: AIOGroupConsumer) -> asyncio.Task[list[Any]]:
    """A call that holds all the records but one, and waits for more."""
    task = asyncio.create_task(one.consume(1000, 60))
    while not any(len(held) == 3 * RECORDS - 1 for held in one._kafka_azimuth.parts.fetching.in_hand._lists.values()):  # noqa: ASYNC110 -- of a thread
        await asyncio.sleep(0.01)
    return task


def test_a_seek_drops_the_records_in_hand(mock: MockCluster) -> None:
    """Returned after the seek, they would come before the records sought; a paused partition even lost the seek."""
    found: list[Any] = []

    async def run() -> None:
        async with reading(mock, found) as one:
            task = await in_hand(one)
            for n in range(3):
                await one.seek(TopicPartition("t", n, 40))
            await one.pause([PARTITIONS[0]])
            task.cancel()
            with pytest.raises(asyncio.CancelledError):
                await task
            assert [at.offset for at in await one.position(PARTITIONS)] == [OFFSET_INVALID] * 3
            await one.resume([PARTITIONS[0]])
            del found[:]
            async with asyncio.timeout(30):
                while len(found) < 30:
                    found.extend(await one.consume(100, 0.1))

    asyncio.run(run())
    assert offsets(found) == {n: list(range(40, RECORDS)) for n in range(3)}


def test_records_in_hand_of_revoked_partitions_are_left_to_the_next_owner(mock: MockCluster) -> None:
    """They are not committed, so a program that got them nevertheless would have them twice."""
    found: list[Any] = []

    async def run() -> None:
        with ThreadPoolExecutor(4) as executor:
            async with made(mock, executor, **{"enable.auto.commit": True}) as one:
                await one.subscribe(["t"])
                found.extend(await one.consume(1, 20))
                task = await in_hand(one)
                await one.unsubscribe()
                assert not any(one._kafka_azimuth.parts.fetching.in_hand._lists.values())
                task.cancel()
                with contextlib.suppress(asyncio.CancelledError):
                    found.extend(await task)  # the call ends where partitions are revoked

    asyncio.run(run())
    peer = Consumer({"bootstrap.servers": mock.bootstrap_servers, "group.id": "g", "log_level": 0})
    assert sum(max(0, at.offset) for at in peer.committed(PARTITIONS, timeout=20)) == len(found) == 1
    peer.close()


@pytest.mark.parametrize("state", ["read", "paused"])
@pytest.mark.parametrize("given_up", [[0, 1], [1, 0], [0], [1]])
def test_calls_at_once_that_are_cancelled_leave_the_order_of_a_partition(
    mock: MockCluster, given_up: list[int], state: str
) -> None:
    """Later records that came back before earlier ones moved the position beyond these: a crash then lost them."""
    found: list[Any] = []

    async def run() -> None:
        async with reading(mock, found) as one:
            calls = [one._kafka_azimuth.parts.awaited_take(20, 20) for _ in range(2)]
            for call in calls:
                await asyncio.wrap_future(one.executor.submit(call.run))
            if state == "paused":
                await one.pause(PARTITIONS)
            for n in given_up:
                calls[n].give_up()
                await asyncio.wrap_future(calls[n].settled)
            assert await progress(one) == 1
            for n in {0, 1} - set(given_up):
                found.extend(calls[n].hand_over())
            assert await progress(one) == len(found) == (21 if given_up == [1] else 1)
            if state == "paused":
                await one.resume(PARTITIONS)
            await rest(one, found)

    asyncio.run(run())
    assert offsets(found) == ALL


def test_a_call_that_fails_while_it_is_given_up_returns_its_records_once() -> None:
    """Returned twice, they would be delivered twice."""
    fetching = Fetching({"bootstrap.servers": "localhost:1", "group.id": "g", "log_level": 0})
    fetching._begun["t", 0] = 0
    executor = ThreadPoolExecutor(1)

    def taken(found: list[Any], given_up: Callable[[], bool]) -> None:
        found.append(Record())
        call.give_up()
        assert given_up()
        raise OSError("the call")

    call = AwaitedTake(fetching, CallGate(), taken)
    with pytest.raises(OSError, match="the call"):
        call.run()
    assert call.settled.done()
    assert fetching.ahead.left() == 1
    fetching.close()
    executor.shutdown()


class Record:
    """As a message of confluent-kafka, whose class cannot be created without a broker."""

    def topic(self) -> str:
        """Its topic."""
        return "t"

    def partition(self) -> int:
        """Its partition."""
        return 0

    def offset(self) -> int:
        """Its place."""
        return 7

    def error(self) -> None:
        """None."""
