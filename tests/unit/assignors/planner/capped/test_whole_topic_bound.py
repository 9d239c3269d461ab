"""The lower bound for topics with one worker each: never above the optimum, and seldom below it."""

import random

import numpy as np
import pytest

from assignors import Member, Topic, plan
from assignors.planner.capped.movement_lower_bound import least_moves
from assignors.planner.capped.whole_topic_bound import whole_topic_moves
from assignors.planner.input_arrays import read_problem
from assignors.planner.load_bounds import Band, fair_band


def _bound(owned: list[list[int]], sizes: list[int], low: int, high: int, moved: int) -> int:
    members = len(owned[0])
    band = Band(np.full(members, low), np.full(members, high))
    return whole_topic_moves(np.array(owned), np.array(sizes), band, 0, moved)


@pytest.mark.parametrize(
    ("least", "given"),
    [
        pytest.param(0, ([[3, 0], [0, 3]], [3, 3], 3, 3, 3), id="all is well"),
        pytest.param(1, ([[3, 0], [1, 0], [0, 2]], [3, 1, 2], 3, 3, 9), id="a small topic goes"),
        pytest.param(3, ([[3, 0], [2, 0], [0, 1], [0, 2]], [3, 2, 1, 2], 4, 4, 9), id="one less only by an exchange"),
        pytest.param(2, ([[2, 2]], [4], 0, 4, 4), id="two owners of one topic"),
        pytest.param(2, ([[2, 0], [0, 2], [0, 0]], [2, 2, 3], 3, 4, 9), id="a free topic pushes another out"),
    ],
)
def test_exchanges_are_counted(least: int, given: tuple[list[list[int]], list[int], int, int, int]) -> None:
    """Each reason for moves by itself."""
    assert _bound(*given) == least


def _group(dice: random.Random) -> tuple[list[Topic], list[Member], float]:
    """Draw a small group after a join, a leave or false claims, which is planned exactly."""
    count, number, epsilon = dice.randint(2, 5), dice.randint(3, 7), dice.choice([0, 0.05, 0.2, 0.5])
    topics = [Topic(f"t{i}", dice.randint(1, 4)) for i in range(number)]
    names = frozenset(t.name for t in topics)
    claims: list[set[tuple[str, int]]] = [set() for _ in range(count)]
    for topic in topics:
        first, second = dice.randrange(count), dice.randrange(count)
        for partition in range(topic.partitions):
            claims[first if dice.random() < 0.8 else second].add((topic.name, partition))
    if dice.random() < 0.5:
        claims[0] = set()
    weights = [1.0, 1.0, 2.0] if dice.random() < 0.3 else [1.0]
    return (
        topics,
        [
            Member(f"m{i}", names, owned=frozenset(mine), generation=1, weight=dice.choice(weights))
            for i, mine in enumerate(claims)
        ],
        epsilon,
    )


@pytest.mark.parametrize("seeds", [80, pytest.param(400, marks=pytest.mark.slow)])
def test_no_plan_moves_fewer(seeds: int) -> None:
    """Small groups are planned exactly: the bound is never above their optimum, and often reaches it."""
    met = tight = quick = 0
    for seed in range(seeds):
        topics, members, epsilon = _group(random.Random(seed))
        made = plan(topics, members, workers=1, epsilon=epsilon)
        problem = read_problem(topics, members, 0)
        band, sizes = fair_band(problem.partitions, problem.weights, epsilon), np.diff(problem.first)
        loads = np.array([made.loads[m.id] for m in problem.members])
        if (loads < band.low).any() or (loads > band.high).any():
            continue
        least = least_moves(problem.owned, sizes, np.ones(len(sizes), dtype=np.int32), band, problem.weights)
        bound = whole_topic_moves(problem.owned, sizes, band, 0, made.moved + 2)
        assert bound <= made.moved, seed
        met += 1
        tight += bound == made.moved
        quick += least == made.moved
    assert met > seeds / 4
    assert tight > 0.9 * met
    assert tight > quick


def test_a_large_group_is_left_with_the_quick_bound() -> None:
    """The tables of ten thousand topics on three members would take gigabytes."""
    owned = np.zeros((10_000, 3), dtype=np.int64)
    owned[np.arange(10_000), np.arange(10_000) % 3] = 9
    band = Band(np.full(3, 30_000), np.full(3, 30_000))
    assert whole_topic_moves(owned, np.full(10_000, 9), band, 7, 20) == 7


def test_a_plan_tells_the_higher_bound() -> None:
    """A join at narrow bounds needs exchanges, which the quick bound does not see."""
    dice = random.Random(50)
    topics = [Topic(f"t{i:02d}", dice.randint(1, 6)) for i in range(40)]
    names = frozenset(t.name for t in topics)
    members = [Member(f"m{i:02d}", names) for i in range(12)]
    before = plan(topics, members, workers=1).partitions
    owners = [Member(m.id, names, owned=frozenset(before[m.id]), generation=1) for m in members]
    made = plan(topics, [*owners, Member("new", names)], workers=1)
    problem = read_problem(topics, [*owners, Member("new", names)], 0)
    band = fair_band(problem.partitions, problem.weights, 0.05)
    caps = np.ones(len(topics), dtype=np.int32)
    quick = least_moves(problem.owned, np.diff(problem.first), caps, band, problem.weights)
    assert quick <= made.lower_bound <= made.moved
