"""The walk through all calls of both consumers once more, on AIOConsumer and AIOGroupConsumer."""

import asyncio
import ctypes
import itertools
from collections.abc import Callable, Iterator, Mapping
from typing import Any, ClassVar

import pytest
from _pytest.mark.structures import ParameterSet
from confluent_kafka.aio import AIOConsumer

from assignors import AIOGroupConsumer
from producer.testing import MockCluster
from tests.unit.assignors.consumer.intended_differences import reason
from tests.unit.assignors.consumer.surface_calls import METHODS
from tests.unit.assignors.consumer.surface_walk import PROTOCOLS, STATES, Pair, walk

MISSING = {"memberid"}  # AIOConsumer has no such method


class Awaited:
    """A consumer whose calls are awaited, as one whose calls return."""

    kind: ClassVar[type[AIOConsumer]] = AIOConsumer

    def __init__(self, config: Mapping[str, Any], **more: Any) -> None:
        self._loop = asyncio.new_event_loop()

        async def make() -> AIOConsumer:
            return self.kind(dict(config), max_workers=4, **more)

        self._one = self._loop.run_until_complete(make())
        self._closed = False
        self._joins = False

    def __getattr__(self, name: str) -> Callable[..., Any]:
        method = getattr(self._one, name)

        def call(*arguments: Any, **named: Any) -> Any:
            coroutines = {key: _nothing if callable(value) else value for key, value in named.items()}
            found = self._loop.run_until_complete(method(*arguments, **coroutines))
            # Until it has read a record.
            self._joins = name == "subscribe" or (self._joins and not (name in {"poll", "consume"} and found))
            return found

        return call

    def close(self, *arguments: Any, **named: Any) -> Any:
        """Close it; unlike the bare class, a second call of the bench does nothing.

        The bare class stays open if it joins. librdkafka may then wait for ever for the answer to its own assignment,
        with the interpreter's lock held, and so would each of its other ends.
        """
        if self._closed and not arguments and not named:
            return None
        self._closed = True
        if self._joins and self.kind is AIOConsumer:
            ctypes.pythonapi.Py_IncRef(ctypes.py_object(self._one._consumer))
            return None
        return self._loop.run_until_complete(self._one.close(*arguments, **named))

    def __del__(self) -> None:
        self._loop.close()


async def _nothing(*_: object) -> None:
    """Take the place of a callback: AIOConsumer's are coroutine functions."""


class AwaitedGroupConsumer(Awaited):
    """The same of ours."""

    kind = AIOGroupConsumer


def _pairs() -> Iterator[ParameterSet]:
    """Each state with each method in each protocol; where the broker assigns, an eighth runs before a change lands."""
    cells = itertools.product(PROTOCOLS, enumerate(STATES), enumerate(sorted(METHODS.keys() - MISSING)))
    for protocol, (row, state), (column, method) in cells:
        seldom = protocol == "consumer" and (row + column) % 8
        marks = [pytest.mark.slow, *[pytest.mark.matrix] * bool(seldom)]
        # Of calls that change the consumer only the usual arguments are tried.
        yield pytest.param(protocol, state, method, id=f"{protocol}-{state}-{method}", marks=marks)


@pytest.mark.parametrize(("protocol", "state", "method"), list(_pairs()))
def test_both_consumers_do_the_same_with_each_argument(
    cluster: MockCluster, protocol: str, state: str, method: str
) -> None:
    """A program changes its class, and nothing else; the differences that remain are those of the other classes."""
    outcomes = walk(cluster, state, method, thorough=False, pair=Pair(Awaited, AwaitedGroupConsumer, protocol))
    different = [one for one in outcomes if not one.alike and reason(one) is None]
    assert not different, "\n".join(map(str, different))


def test_every_method_of_the_bare_class_is_walked_through() -> None:
    """A method that a new version of confluent-kafka brings must get a row, or a place in the exceptions."""
    public = {name for name in dir(AIOConsumer) if not name.startswith("_")}
    assert public == METHODS.keys() - MISSING
    assert public <= set(dir(AIOGroupConsumer))
