"""A task that is cancelled while a callback runs stops neither the event loop nor another call."""

import asyncio
import contextlib
import threading
from collections.abc import Callable, Coroutine
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
from confluent_kafka import Producer, TopicPartition

from assignors import AIOGroupConsumer
from assignors.consumer.consumer_errors import ClosedConsumerError
from producer.testing import MockCluster
from tests.records import offsets
from tests.unit.assignors.conftest import RECORDS
from tests.unit.assignors.consumer.aio_reads import ALL, made, progress, rest

pytestmark = pytest.mark.long


def test_a_call_in_a_callback_does_not_wait_for_the_cancelled_call_that_runs_it(mock: MockCluster) -> None:
    """It would wait for itself."""
    begun, cancelled = asyncio.Event(), asyncio.Event()
    seen: list[int] = []

    async def assigned(one: AIOGroupConsumer, partitions: list[TopicPartition]) -> None:
        begun.set()
        await cancelled.wait()
        seen.append(len(await one.assignment()) + len(partitions))

    async def run() -> list[Any]:
        found: list[Any] = []
        with ThreadPoolExecutor(4) as executor:
            async with made(mock, executor) as one:
                await one.subscribe(["t"], on_assign=assigned)
                task = asyncio.create_task(one.consume(10, 20))
                await begun.wait()
                task.cancel()
                with pytest.raises(asyncio.CancelledError):
                    await task
                cancelled.set()
                await rest(one, found)
        return found

    assert offsets(asyncio.run(run())) == ALL
    assert seen == [3]


def bounded(run: Callable[[], Coroutine[Any, Any, None]]) -> None:
    """Run it in an event loop of another thread: one that stands still fails the test, and does not stop it."""
    raised: list[BaseException] = []

    def ended() -> None:
        try:
            asyncio.run(run())
        except BaseException as error:  # noqa: BLE001 -- raised below
            raised.append(error)
        ends.set()

    ends = threading.Event()
    threading.Thread(target=ended, daemon=True).start()
    assert ends.wait(60)
    if raised:
        raise raised[0]


async def _until_it_is_over(one: AIOGroupConsumer, heard: list[str], found: list[Any]) -> None:
    async with asyncio.timeout(20):
        while "end" not in heard:
            with contextlib.suppress(TimeoutError):
                found += await asyncio.wait_for(one.consume(1, 0.1), 0.2)


@pytest.mark.parametrize("name", ["on_assign", "on_revoke", "on_commit", "error_cb"])
def test_calls_that_are_cancelled_beside_a_slow_callback_do_not_stop_the_event_loop(
    mock: MockCluster, name: str
) -> None:
    """A second cancelled call waited in the event loop for the call whose callback waits for the event loop."""
    heard: list[str] = []

    async def slow(*_: object) -> None:
        heard.append("begin")
        await asyncio.sleep(0.8)
        heard.append("end")

    async def run() -> None:
        one = made(mock, None, **({name: slow} if name in {"on_commit", "error_cb"} else {}))
        await one.subscribe(["t"], **({name: slow} if name in {"on_assign", "on_revoke"} else {}))
        found: list[Any] = []
        if name == "on_assign":
            await _until_it_is_over(one, heard, found)
        found += await one.consume(1, 20)
        if name == "on_revoke":
            leaving = asyncio.create_task(one.unsubscribe())
        elif name == "on_commit":
            await one.commit(asynchronous=True)
        elif name == "error_cb":
            mock.down(1)
        await _until_it_is_over(one, heard, found)
        if name == "on_revoke":
            await leaving
        elif name == "error_cb":
            mock.up(1)  # perhaps the coordinator: the member may have to join again, which takes a session
        else:
            await rest(one, found)
            assert offsets(found) == ALL
        await one.close()

    bounded(run)


def test_a_call_that_is_cancelled_beside_a_slow_callback_keeps_no_other_call_waiting(mock: MockCluster) -> None:
    """It woke up, handled the answer to the commit, and then waited for records without a limit of time."""

    async def slow(*_: object) -> None:
        began.set()
        await asyncio.sleep(0.5)

    async def run() -> None:
        async with made(mock, None, on_commit=slow) as one:
            await one.subscribe(["t"])
            found: list[Any] = []
            await rest(one, found)
            await one.commit(asynchronous=True)
            while not began.is_set():
                polling = asyncio.create_task(one.poll(0))
                await asyncio.wait([polling, asyncio.create_task(began.wait())], return_when="FIRST_COMPLETED")
            waiting = asyncio.create_task(one.poll())
            await asyncio.sleep(0.1)  # for the gate
            waiting.cancel()
            with pytest.raises(asyncio.CancelledError):
                await waiting
            async with asyncio.timeout(5):
                assert await progress(one) == 3 * RECORDS
            assert await polling is None

    began = asyncio.Event()
    bounded(run)


Program = Callable[[AIOGroupConsumer, list[Any]], Coroutine[Any, Any, None]]


async def leaves_a_call_behind(one: AIOGroupConsumer, tasks: list[Any]) -> None:
    """It has no limit of time."""
    tasks.append(asyncio.create_task(one.consume(1)))
    await asyncio.sleep(0.1)  # it waits for records


async def gives_a_call_up(one: AIOGroupConsumer, tasks: list[Any]) -> None:
    """And makes another one beside its thread, which has not ended."""
    with contextlib.suppress(TimeoutError):
        await asyncio.wait_for(one.consume(10, 5), 0.1)
    tasks.append(asyncio.create_task(one.consume(1, 0.1)))
    await tasks[-1]


async def makes_calls_at_once(one: AIOGroupConsumer, tasks: list[Any]) -> None:
    """Each waits for the others."""
    tasks += [asyncio.create_task(one.consume(1, 0.1)) for _ in range(3)]
    await asyncio.gather(*tasks)


async def awaits_an_older_call(one: AIOGroupConsumer, tasks: list[Any]) -> None:
    """One that an earlier callback left behind."""
    if not tasks:
        await leaves_a_call_behind(one, tasks)
    else:
        await asyncio.wait(tasks, timeout=0.3)


async def closes(one: AIOGroupConsumer, tasks: list[Any]) -> None:
    """The consumer ends its pool, one thread of which runs this callback."""
    tasks.append(None)
    await one.close()


@pytest.mark.parametrize(
    "program", [leaves_a_call_behind, gives_a_call_up, makes_calls_at_once, awaits_an_older_call, closes]
)
@pytest.mark.parametrize("name", ["on_commit", "stats_cb"])
def test_what_a_callback_leaves_behind_stops_no_call(mock: MockCluster, name: str, program: Program) -> None:
    """The thread of such a call opened the gate, which another thread held: no call came through any more."""
    found: list[Any] = []

    async def run() -> None:
        tasks: list[Any] = []

        async def called(*_: object) -> None:
            if len(found) == 3 * RECORDS and len(tasks) < 2:
                await program(one, tasks)

        more: dict[str, Any] = {"statistics.interval.ms": 1_000} if name == "stats_cb" else {}
        one = made(mock, None, **{name: called}, **more)
        await one.subscribe(["t"])
        await rest(one, found)
        if name == "on_commit":
            await one.commit(asynchronous=True)
            await one.commit(offsets=[TopicPartition("t", 0, 1)], asynchronous=True)
        async with asyncio.timeout(20):
            while not tasks:
                with contextlib.suppress(ClosedConsumerError):
                    await one.consume(1, 0)
            if program is closes:
                return
            assert await progress(one) == 3 * RECORDS
            producer = Producer({"bootstrap.servers": mock.bootstrap_servers, "log_level": 0})
            producer.produce("t", b"", partition=0)
            assert producer.flush(20) == 0
            added: list[Any] = []
            while not added:
                added += await one.consume(1, 0.1)
                added += [message for task in tasks if task.done() for message in task.result()]
            await one.close()
            await asyncio.gather(*tasks, return_exceptions=True)

    bounded(run)
