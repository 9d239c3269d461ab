"""The same calls on AIOConsumer and AIOGroupConsumer: results, errors and callbacks are alike."""

import asyncio
import time
from collections.abc import Awaitable, Callable
from typing import Any

import pytest
from confluent_kafka.aio import AIOConsumer

from assignors import AIOGroupConsumer, HRWAssignor
from producer.testing import MockCluster
from tests.unit.assignors.conftest import RECORDS
from tests.unit.assignors.consumer.bare_bench import Raised, Servers, alike, at, plain

Make = Callable[..., Any]
Case = Callable[[Make], Awaitable[Any]]


def maker(cluster: Servers, kind: type, protocol: str = "classic") -> Make:
    """Make a consumer of this kind, of a group of its own, in this protocol."""

    def make(**more: Any) -> Any:
        config = {
            "bootstrap.servers": cluster.bootstrap_servers,
            "group.id": f"{kind.__name__}-{time.monotonic()}",
            "auto.offset.reset": "earliest",
            "enable.auto.commit": False,
            "group.protocol": protocol,
            "log_level": 0,
            **more,
        }
        mocked = isinstance(cluster, MockCluster)
        ours = {"assignors": [HRWAssignor(agent="a")], "member": {"api_version": (2, 0)} if mocked else {}}
        return kind(config, max_workers=4, **(ours if kind is AIOGroupConsumer and protocol == "classic" else {}))

    return make


async def attempt(call: Awaitable[Any]) -> Any:
    """The value or the error of a call."""
    try:
        return await call
    except Exception as error:  # noqa: BLE001 -- compared with the other client's
        return Raised(error)


async def read(one: Any, count: int) -> list[Any]:
    """So many records."""
    found: list[Any] = []
    until = time.monotonic() + 20
    while len(found) < count:
        assert time.monotonic() < until, f"{len(found)} of {count}"
        found += await one.consume(count - len(found), timeout=0.1)
    return found


async def records_and_offsets(make: Make) -> Any:
    """Read, ask, pause, seek and commit."""
    async with make() as one:
        await one.subscribe(["t"])
        found = await read(one, 3 * RECORDS)
        assigned = await one.assignment()
        await one.pause([at(1)])
        await one.seek(at(0, 47))
        again = sorted((m.partition(), m.offset()) for m in await read(one, 3))
        await one.resume(assigned)
        committed = plain(await one.commit(offsets=[at(0, 5, metadata="x")], asynchronous=False))
        return [
            sorted((m.partition(), m.offset()) for m in found),
            len(assigned),
            again,
            committed,
            plain(await one.committed([at(0)], timeout=10)),
            bool(await one.consumer_group_metadata()),
            await one.poll(timeout=0.05),
        ]


async def callbacks_may_await_calls(make: Make) -> Any:
    """Each gets the consumer itself; a commit in on_revoke is accepted, on_commit is called."""
    seen: list[Any] = []

    async def assigned(given: Any, partitions: Any) -> None:
        await given.assign([at(p.partition, 48) for p in partitions])
        seen.append((given is one, len(partitions)))

    async def revoked(given: Any, partitions: Any) -> None:
        committed = await given.commit(offsets=[at(0, 49)], asynchronous=False)
        seen.append((given is one, len(partitions), plain(committed)))

    async def on_commit(error: object, partitions: Any) -> None:
        seen.append((error, plain(partitions)))

    one = make(on_commit=on_commit)
    await one.subscribe(["t"], on_assign=assigned, on_revoke=revoked)
    found = await read(one, 6)
    await one.commit(offsets=[at(1, 49)], asynchronous=True)
    until = time.monotonic() + 10
    while len(seen) < 2 and time.monotonic() < until:
        await one.poll(timeout=0.05)
    await one.close()
    return [sorted((m.partition(), m.offset()) for m in found), [entry for entry in seen if entry[0] is not None]]


async def a_callback_that_raises(make: Make) -> Any:
    """Its error comes out of the call that runs it."""

    async def broken(*_: object) -> None:
        raise LookupError

    one = make()
    await one.subscribe(["t"], on_assign=broken)
    for _ in range(200):
        if isinstance(result := await attempt(one.poll(timeout=0.05)), Raised):
            break
    await one.close()
    return result


async def calls_beside_each_other(make: Make) -> Any:
    """They wait for one another, and no record is lost or delivered twice."""
    async with make() as one:
        await one.subscribe(["t"])
        await read(one, 3)
        found: list[Any] = []
        until = time.monotonic() + 20
        while len(found) < 3 * RECORDS - 3 and time.monotonic() < until:
            for messages in await asyncio.gather(*(one.consume(7, timeout=0.1) for _ in range(3))):
                found += messages
        return len({(m.partition(), m.offset()) for m in found}), len(found)


async def every_call_after_close(make: Make) -> Any:
    """RuntimeError."""
    one = make()
    await one.close()
    calls = (one.poll(timeout=0), one.consume(1, 0), one.subscribe(["t"]), one.assignment(), one.commit(), one.close())
    return [await attempt(call) for call in calls]


async def statistics_reach_their_coroutine(make: Make) -> Any:
    """stats_cb is awaited in poll."""
    seen: list[str] = []

    async def note(text: str) -> None:
        seen.append(text)

    async with make(**{"statistics.interval.ms": 50, "stats_cb": note}) as one:
        until = time.monotonic() + 10
        while not seen and time.monotonic() < until:
            await one.poll(timeout=0.05)
    return bool(seen)


CASES = [
    records_and_offsets,
    callbacks_may_await_calls,
    a_callback_that_raises,
    calls_beside_each_other,
    every_call_after_close,
    statistics_reach_their_coroutine,
]


# With group.protocol=consumer the bare client refuses assign().
BROKER_ASSIGNED = [body for body in CASES if body is not callbacks_may_await_calls]


def check(body: Case, cluster: Servers, protocol: str = "classic") -> None:
    """Run the case with both kinds."""

    async def result(kind: type) -> Any:
        return await body(maker(cluster, kind, protocol))

    bare, ours = (asyncio.run(result(kind)) for kind in (AIOConsumer, AIOGroupConsumer))
    assert alike(bare, ours), f"bare: {bare!r}\nours: {ours!r}"


@pytest.mark.parametrize("body", CASES, ids=lambda body: body.__name__)
def test_both_consumers_do_the_same(cluster: MockCluster, body: Case) -> None:
    """A program changes its class, and nothing else."""
    check(body, cluster)


@pytest.mark.parametrize("body", BROKER_ASSIGNED, ids=lambda body: body.__name__)
def test_both_consumers_do_the_same_where_the_broker_assigns(cluster: MockCluster, body: Case) -> None:
    """A program changes its class and the protocol, and nothing else."""
    check(body, cluster, "consumer")


def test_its_threads_end_with_it_and_its_arguments_are_those_of_its_base_class(cluster: MockCluster) -> None:
    """The base class writes wrapped callbacks into its caller's dictionary: a second consumer would wrap them twice."""

    async def note(*_: object) -> None:
        """Nothing."""

    async def made() -> None:
        config = {"bootstrap.servers": cluster.bootstrap_servers, "group.id": "g", "error_cb": note, "log_level": 0}
        one = AIOGroupConsumer(config, max_workers=2)
        await one.close()
        assert config["error_cb"] is note
        # `GroupConsumer`'s second argument, where this class has its base class's.
        with pytest.raises(TypeError, match=r"give assignors by name: assignors=\[\.\.\.\]"):
            AIOGroupConsumer(config, [HRWAssignor()])  # type: ignore[arg-type]

    asyncio.run(made())


@pytest.mark.parametrize("protocol", ["classic", "consumer"])
def test_close_in_a_callback_is_refused_and_a_later_close_leaves(cluster: MockCluster, protocol: str) -> None:
    """It waited for the callback that waits for it; after that the member could not be closed, and kept its group."""

    async def body() -> None:
        config = {
            "bootstrap.servers": cluster.bootstrap_servers,
            "group.id": f"close-{protocol}-{time.monotonic()}",
            "log_level": 0,
        }
        classic: dict[str, Any] = {"assignors": [HRWAssignor(agent="a")], "member": {"api_version": (2, 0)}}
        one = AIOGroupConsumer({**config, "group.protocol": protocol}, **(classic if protocol == "classic" else {}))
        refused: list[Any] = []

        async def assigned(consumer: AIOGroupConsumer, _: Any) -> None:
            refused.append(await attempt(consumer.close()))

        await one.subscribe(["t"], on_assign=assigned)
        until = time.monotonic() + 20
        while not refused:
            assert time.monotonic() < until
            await one.poll(0.1)
        assert "close()" in repr(refused[0])
        assert len(await one.assignment()) == 3
        await one.close()
        assert isinstance(await attempt(one.assignment()), Raised)
        assert one._kafka_azimuth.parts.membership.closed

    asyncio.run(asyncio.wait_for(body(), 60))
