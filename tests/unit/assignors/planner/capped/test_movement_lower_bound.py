"""The lower bound under worker caps: conditions that force moves, and a bound that is never above the optimum."""

import random
from typing import Any

import numpy as np
import pytest

from assignors import Member, Topic, plan
from assignors.planner.capped.movement_lower_bound import least_moves
from assignors.planner.input_arrays import read_problem
from assignors.planner.load_bounds import Band, fair_band
from assignors.planner.worker_caps import worker_caps
from assignors.testing import random_scenario


def bound(owned: list[list[int]], sizes: list[int], cap: int, low: int, high: int) -> int:
    """The bound for members of equal weight and one cap for all."""
    members = len(owned[0])
    band = Band(np.full(members, low), np.full(members, high))
    caps = np.full(len(sizes), cap, dtype=np.int32)
    return least_moves(np.array(owned), np.array(sizes), caps, band, np.ones(members))


@pytest.mark.parametrize(
    ("least", "given"),
    [
        pytest.param(0, ([[2, 0], [0, 2]], [2, 2], 1, 2, 2), id="all is well"),
        pytest.param(
            1, ([[2, 0, 0], [1, 0, 0], [0, 2, 0]], [2, 1, 2], 1, 1, 2), id="one above, and a topic of one to give"
        ),
        pytest.param(
            2, ([[2, 0, 0], [2, 0, 0], [0, 1, 0]], [2, 2, 1], 1, 1, 3), id="one above, and only a whole topic to give"
        ),
        pytest.param(2, ([[3, 0], [3, 0], [0, 0]], [3, 3, 2], 2, 4, 4), id="with two workers a part of it"),
        pytest.param(2, ([[2, 2]], [4], 1, 0, 4), id="one owner too many"),
        pytest.param(1, ([[2, 0], [0, 2], [0, 0]], [2, 2, 3], 1, 2, 4), id="a free topic pushes another out"),
        pytest.param(2, ([[2, 0], [2, 0]], [2, 2], 1, 1, 3), id="a load of one is no sum of twos"),
        pytest.param(
            1, ([[2, 0, 0], [1, 3, 0], [0, 0, 3]], [5, 4, 3], 2, 3, 4), id="no two readers have room for three"
        ),
        pytest.param(0, ([[1, 0, 0], [3, 2, 0]], [4, 5], 2, 0, 5), id="an owner has room, and another reader"),
        pytest.param(2, ([[2, 0, 0], [7, 0, 0]], [8, 7], 1, 0, 9), id="an owner without room makes place"),
    ],
)
def test_what_must_move_is_counted(least: int, given: tuple[Any, ...]) -> None:
    """Each reason for moves by itself."""
    assert bound(*given) == least


@pytest.mark.parametrize("weights", [False, True])
def test_no_plan_moves_fewer(*, weights: bool) -> None:
    """Small groups are planned exactly, and the bound is never above the moves of the best plan."""
    met = tight = 0
    for seed in range(300):
        scenario = random_scenario(random.Random(seed), equal=True, weights=weights, racks=False, capped=True)
        made = plan(scenario.topics, scenario.members, epsilon=scenario.epsilon, workers=scenario.workers)
        if not scenario.goals_of(made).outside:
            problem = read_problem(scenario.topics, scenario.members, 0)
            band = fair_band(problem.partitions, problem.weights, scenario.epsilon)
            caps = worker_caps(scenario.workers, [t.name for t in problem.topics])
            least = least_moves(problem.owned, np.diff(problem.first), caps, band, problem.weights)
            assert least <= made.moved, seed
            met += 1
            tight += least == made.moved
    assert tight > 0.8 * met


def _after_a_leave(seed: int) -> tuple[list[Topic], list[Member]]:
    """A small group with two or three workers a topic, one of whose members left."""
    dice = random.Random(seed)
    topics = [Topic(f"t{i}", dice.randint(2, 6)) for i in range(dice.randint(2, 4))]
    names = frozenset(t.name for t in topics)
    members = [Member(f"m{i}", names) for i in range(dice.randint(3, 5))]
    before = plan(topics, members, workers=2).partitions
    return topics, [Member(m.id, names, owned=frozenset(before[m.id]), generation=1) for m in members[1:]]


def test_unowned_partitions_that_their_readers_cannot_take_are_counted() -> None:
    """After a leave all others are within their bounds; claims that the unowned partitions displace are counted."""
    counted = 0
    for seed in range(200):
        topics, members = _after_a_leave(seed)
        made = plan(topics, members, workers=2)
        problem = read_problem(topics, members, 0)
        band, sizes = fair_band(problem.partitions, problem.weights, 0.05), np.diff(problem.first)
        loads = np.array(list(made.loads.values()))
        if (loads < band.low).any() or (loads > band.high).any():
            continue
        caps = np.full(len(sizes), 2, dtype=np.int32)
        least = least_moves(problem.owned, sizes, caps, band, problem.weights)
        assert least <= made.moved, seed
        counted += least > 0
    assert counted > 0
