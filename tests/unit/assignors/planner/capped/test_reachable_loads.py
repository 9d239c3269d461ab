"""Divisions of a few members' topics within the bounds of their loads: the cheapest of all combinations."""

import itertools

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from assignors.planner.capped import reachable_loads
from assignors.planner.capped.reachable_loads import Division, Way, Ways

Topics = list[tuple[list[tuple[int, Way]], int]]
"""Ways of each topic with their costs, and which of them is known."""


@st.composite
def topics(draw: st.DrawFn, members: int) -> Topics:
    """Up to four topics, each with some ways to divide its partitions."""
    out: Topics = []
    for _ in range(draw(st.integers(1, 4))):
        size = draw(st.integers(1, 4))
        every = [way for way in itertools.product(range(size + 1), repeat=members) if sum(way) == size]
        ways = draw(st.lists(st.sampled_from(every), min_size=1, max_size=5, unique=True))
        rated = sorted((draw(st.integers(0, 3)), way) for way in ways)
        out.append(([(cost - rated[0][0], way) for cost, way in rated], draw(st.integers(0, len(ways) - 1))))
    return out


def loads(ways: list[Way]) -> list[int]:
    """Sum the partitions of each member."""
    return [sum(column) for column in zip(*ways, strict=True)]


@given(st.data(), st.integers(2, 4))
@settings(max_examples=100, deadline=None)
def test_the_division_is_the_cheapest_within_the_bounds(data: st.DataObject, members: int) -> None:
    """Against every combination of ways; the known one makes the bounds reachable and gives the budget."""
    given_topics = data.draw(topics(members))
    known = loads([ways[at][1] for ways, at in given_topics])
    spread = st.lists(st.integers(0, 2), min_size=members, max_size=members)
    low = [max(0, load - less) for load, less in zip(known, data.draw(spread), strict=True)]
    high = [load + more for load, more in zip(known, data.draw(spread), strict=True)]
    every = [ways for ways, _ in given_topics]
    division = Division(low, high, sum(ways[at][0] for ways, at in given_topics), itertools.count(7), {})
    found = division.cheapest(every)
    assert within(found, low, high)
    assert cost(found, every) == min(
        sum(more for more, _ in some) for some in itertools.product(*every) if within([w for _, w in some], low, high)
    )


def within(ways: list[Way], low: list[int], high: list[int]) -> bool:
    """Whether all loads are within their bounds."""
    return all(least <= load <= most for least, load, most in zip(low, loads(ways), high, strict=True))


def cost(found: list[Way], every: list[Ways]) -> int:
    """Sum the costs of the chosen ways."""
    return sum(next(more for more, other in ways if other == way) for way, ways in zip(found, every, strict=True))


def test_every_cheapest_division_can_be_drawn() -> None:
    """Equal costs are drawn at random, because one of them may lead to a cheaper division of other members."""
    ways: Ways = [(0, (2, 0)), (0, (1, 1)), (0, (0, 2)), (1, (2, 0))]
    drawn = {Division([0, 0], [2, 2], 1, itertools.count(n), {}).cheapest([ways])[0] for n in range(3)}
    assert drawn == {(2, 0), (1, 1), (0, 2)}


def test_a_load_above_its_bound_is_no_other_vector() -> None:
    """Loads are digits of a bit's number: a load of 2 where 1 is allowed must not count as 1 of the member before."""
    ways: Ways = [(0, (0, 2, 0)), (1, (0, 0, 2))]
    assert Division([0, 0, 0], [1, 1, 5], 1, itertools.count(), {}).cheapest([ways]) == [(0, 0, 2)]


def test_a_division_that_takes_too_much_work_is_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    """The leader's heartbeats wait, so one division never takes more than its share of the work."""
    monkeypatch.setattr(reachable_loads, "MOST_WORK", 10)
    ways: Ways = [(0, (3, 0)), (1, (2, 1)), (1, (1, 2)), (1, (0, 3))]
    division = Division([0, 0], [9, 9], 3, itertools.count(), {})
    assert division.cheapest([ways] * 3) == []
    assert division.work < 30
