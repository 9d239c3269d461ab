"""The walk through all calls of both consumers once more, on AIOConsumer and AIOGroupConsumer."""

import asyncio
from collections.abc import Callable, Mapping
from concurrent.futures import Executor, Future
from threading import Thread
from typing import Any, ClassVar

import pytest
from confluent_kafka.aio import AIOConsumer

from assignors import AIOGroupConsumer
from producer.testing import MockCluster
from tests.unit.assignors.consumer.surface_walk import METHODS, STATES, reason, walk

MISSING = {"memberid"}  # AIOConsumer has no such method
_CLOSE_S = 10.0


class DaemonThreads(Executor):
    """A thread for each call, which does not keep the process alive."""

    def submit(self, fn: Callable[..., Any], /, *arguments: Any, **named: Any) -> Future[Any]:  # noqa: ANN401 -- any call's
        """Begin a call."""
        future: Future[Any] = Future()

        def run() -> None:
            try:
                future.set_result(fn(*arguments, **named))
            except BaseException as error:  # noqa: BLE001 -- raised where the call is awaited
                future.set_exception(error)

        Thread(target=run, daemon=True).start()
        return future


class Awaited:
    """A consumer whose calls are awaited, as one whose calls return."""

    kind: ClassVar[type[AIOConsumer]] = AIOConsumer

    def __init__(self, config: Mapping[str, Any], **more: Any) -> None:  # noqa: ANN401 -- settings
        self._loop = asyncio.new_event_loop()

        async def make() -> AIOConsumer:
            return self.kind(dict(config), executor=DaemonThreads(), **more)

        self._one = self._loop.run_until_complete(make())
        self._closed = False

    def __getattr__(self, name: str) -> Callable[..., Any]:
        method = getattr(self._one, name)

        def call(*arguments: Any, **named: Any) -> Any:  # noqa: ANN401 -- any call's
            coroutines = {key: _nothing if callable(value) else value for key, value in named.items()}
            return self._loop.run_until_complete(method(*arguments, **coroutines))

        return call

    def close(self, *arguments: Any, **named: Any) -> Any:  # noqa: ANN401 -- as above
        """Close it; unlike the bare class, a second call of the bench does nothing.

        If the bare class closes in a join, librdkafka may wait for ever for the answer to its own assignment. Ours must
        not.
        """
        if self._closed and not arguments and not named:
            return None
        self._closed = True
        closing = self._loop.create_task(self._one.close(*arguments, **named))
        # Not `wait_for`, which cancels the call and waits for its end.
        self._loop.run_until_complete(asyncio.wait({closing}, timeout=_CLOSE_S))
        if not closing.done():
            assert self.kind is AIOConsumer
            return None
        return closing.result()

    def __del__(self) -> None:
        self._loop.close()


async def _nothing(*_: object) -> None:
    """Take the place of a callback: AIOConsumer's are coroutine functions."""


class AwaitedGroupConsumer(Awaited):
    """The same of ours."""

    kind = AIOGroupConsumer


@pytest.mark.slow
@pytest.mark.parametrize("method", sorted(METHODS.keys() - MISSING))
@pytest.mark.parametrize("state", STATES)
def test_both_consumers_do_the_same_with_each_argument(cluster: MockCluster, state: str, method: str) -> None:
    """A program changes its class, and nothing else; the differences that remain are those of the other classes."""
    outcomes = walk(cluster, state, method, thorough=False, kinds=(Awaited, AwaitedGroupConsumer))
    different = [one for one in outcomes if not one.alike and reason(one) is None]
    assert not different, "\n".join(map(str, different))


def test_every_method_of_the_bare_class_is_walked_through() -> None:
    """A method that a new version of confluent-kafka brings must get a row, or a place in the exceptions."""
    public = {name for name in dir(AIOConsumer) if not name.startswith("_")}
    assert public == METHODS.keys() - MISSING
    assert public <= set(dir(AIOGroupConsumer))
