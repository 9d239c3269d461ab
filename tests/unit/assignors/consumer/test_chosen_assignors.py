"""The assignors of a GroupConsumer get its rack."""

import copy
from typing import Any

import pytest

from assignors import HRWAssignor, ShuffledRoundRobinAssignor
from assignors.consumer.chosen_assignors import assignors_with_rack
from tests.unit.assignors.protocol.test_served_consumers import joining

KINDS = [HRWAssignor, ShuffledRoundRobinAssignor]


def rack_of(assignor: Any) -> str | None:
    """The rack that the group gets."""
    found: str | None = assignor.metadata({"t"}).rack_id
    return found


@pytest.mark.parametrize("kind", KINDS)
def test_a_rack_of_the_assignor_itself_counts_first(kind: Any) -> None:
    """A program may place the consumer in another zone than its connections."""
    [found] = assignors_with_rack([kind(rack="az-a")], "az-b")
    assert rack_of(found) == "az-a"


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("again", [copy.copy, lambda one: one], ids=["a copy", "the same one"])
def test_an_assignor_that_had_a_consumer_gets_the_rack_of_the_next_one(kind: Any, again: Any) -> None:
    """The second consumer kept the first one's rack, and read from a zone that it is not in."""
    [first] = assignors_with_rack([kind()], "az-a")
    assert rack_of(first) == "az-a"
    [second] = assignors_with_rack([again(first)], "az-b")
    assert rack_of(second) == "az-b"


@pytest.mark.parametrize("kind", KINDS)
def test_a_second_consumer_does_not_change_the_rack_of_one_that_runs(kind: Any) -> None:
    """It is refused when it joins; the first one goes on."""
    [assignor] = assignors_with_rack([kind()], "az-a")
    running = joining(assignor)
    running.group_protocols()
    assignors_with_rack([assignor], "az-b")
    assert rack_of(assignor) == "az-a"
    running._heartbeat_closed = True
    assignors_with_rack([assignor], "az-b")
    assert rack_of(assignor) == "az-b"
