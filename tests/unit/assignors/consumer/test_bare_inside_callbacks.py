"""Every method of confluent_kafka.Consumer inside each callback, and in a child process."""

import inspect
import itertools
import json
import os
from collections.abc import Iterator
from typing import Any

import pytest
from _pytest.mark.structures import ParameterSet

from assignors import GroupConsumer
from producer.testing import MockCluster
from tests.unit.assignors.consumer.bare_bench import Bench, Raised
from tests.unit.assignors.consumer.callback_walk import (
    CALLBACKS,
    INTENDED,
    reason_inside,
    usual_call_of,
    walk_inside,
)
from tests.unit.assignors.consumer.surface_calls import METHODS
from tests.unit.assignors.consumer.surface_walk import PROTOCOLS, STATES


def _pairs() -> Iterator[ParameterSet]:
    """Each callback with each method in each protocol; where the broker assigns, an eighth before a change lands."""
    cells = itertools.product(PROTOCOLS, enumerate(CALLBACKS), enumerate(METHODS))
    for protocol, (row, callback), (column, method) in cells:
        seldom = protocol == "consumer" and (row + column) % 8
        marks = [pytest.mark.slow, *[pytest.mark.matrix] * bool(seldom)]
        yield pytest.param(protocol, callback, method, id=f"{protocol}-{callback}-{method}", marks=marks)


@pytest.mark.parametrize(("protocol", "callback", "method"), list(_pairs()))
def test_both_consumers_do_the_same_inside_a_callback(
    cluster: MockCluster, protocol: str, callback: str, method: str
) -> None:
    """Programs commit in on_revoke, seek in on_assign and look at their consumer in stats_cb."""
    outcomes = walk_inside(cluster, callback, [method], protocol)
    different = [one for one in outcomes if not one.alike and not reason_inside(one)]
    assert not different, "\n".join(map(str, different))


@pytest.mark.parametrize(
    ("callback", "method"),
    [
        ("in_on_assign", "position"),
        ("in_on_revoke", "commit"),
        ("in_on_commit", "poll"),
        ("in_stats_cb", "assignment"),
        ("in_error_cb", "assignment"),
        ("in_throttle_cb", "assignment"),
    ],
)
def test_common_calls_inside_callbacks_do_the_same(cluster: MockCluster, callback: str, method: str) -> None:
    """Some of the above, in each run."""
    (found,) = walk_inside(cluster, callback, [method])
    assert found.alike, str(found)


def test_each_intended_difference_says_why() -> None:
    """A predicate without a reason would hide a fault."""
    assert all(len(name) > 10 and inspect.signature(one).parameters for name, one in INTENDED.items())


@pytest.mark.parametrize("state", sorted(STATES.keys() - {"closed"}))
def test_a_child_process_is_refused_every_call(cluster: MockCluster, state: str) -> None:
    """No thread of either client runs in the child: the bare client's calls hang there, or deliver records twice."""
    bench = Bench(cluster, GroupConsumer)
    one = STATES[state](bench)
    reading, writing = os.pipe()
    child = os.fork()
    if not child:
        found: dict[str, Any] = {}
        for method in METHODS:
            result = usual_call_of(method).on(one)
            found[method] = type(result.error).__name__ if isinstance(result, Raised) else repr(result)
        os.write(writing, json.dumps(found).encode())
        os._exit(0)
    assert os.waitpid(child, 0)[1] == 0
    os.close(writing)
    refused = json.loads(os.read(reading, 10_000))
    os.close(reading)
    assert refused.pop("close") == "None"
    assert set(refused.values()) == {"ClosedConsumerError"}, refused
    bench.close()
