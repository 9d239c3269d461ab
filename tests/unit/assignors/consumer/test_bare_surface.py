"""Every method of confluent_kafka.Consumer, with each kind of argument, in each state: both consumers do the same."""

import inspect
import itertools
import threading
from collections.abc import Iterator

import pytest
from _pytest.mark.structures import ParameterSet
from confluent_kafka import Consumer

from producer.testing import MockCluster
from tests.unit.assignors.consumer import bare_bench
from tests.unit.assignors.consumer.intended_differences import INTENDED, reason
from tests.unit.assignors.consumer.surface_calls import METHODS, calls_of
from tests.unit.assignors.consumer.surface_walk import PROTOCOLS, STATES, Pair, walk


def _pairs() -> Iterator[ParameterSet]:
    """Each state with each method; a quarter runs before a change lands, and an eighth where the broker assigns."""
    cells = itertools.product(enumerate(PROTOCOLS), enumerate(STATES), enumerate(METHODS))
    for (layer, protocol), (row, state), (column, method) in cells:
        marks = [pytest.mark.slow, *[pytest.mark.matrix] * bool((row + column + layer) % (4 + 4 * layer))]
        yield pytest.param(protocol, state, method, id=f"{protocol}-{state}-{method}", marks=marks)


@pytest.mark.parametrize(("protocol", "state", "method"), list(_pairs()))
def test_both_consumers_do_the_same_with_each_argument(
    cluster: MockCluster, protocol: str, state: str, method: str
) -> None:
    """A program changes its class, and nothing else; the differences that remain are listed with their reasons."""
    outcomes = walk(cluster, state, method, pair=Pair(protocol=protocol))
    different = [one for one in outcomes if not one.alike and reason(one) is None]
    assert not different, "\n".join(map(str, different))


def test_every_method_is_walked_through() -> None:
    """A method that a new version of confluent-kafka brings must get a row."""
    assert METHODS.keys() == {name for name in dir(Consumer) if not name.startswith("_")}
    assert sum(1 for method in METHODS for _ in calls_of(method)) * len(STATES) > 2000


def test_each_intended_difference_says_why() -> None:
    """A predicate without a reason would hide a fault."""
    assert all(len(name) > 10 and inspect.signature(one).parameters for name, one in INTENDED.items())


def test_a_close_that_hangs_is_reported_in_time(monkeypatch: pytest.MonkeyPatch) -> None:
    """Librdkafka's close() once did not return: the run must say which, and end."""
    monkeypatch.setattr(bare_bench, "CLOSING_S", 0.05)
    for_ever = threading.Event()

    class Hanging:
        def close(self) -> None:
            for_ever.wait(60)

    with pytest.raises(AssertionError, match=r"Hanging\.close\(\) has not returned"):
        bare_bench.close_in_time(Hanging())
    for_ever.set()
