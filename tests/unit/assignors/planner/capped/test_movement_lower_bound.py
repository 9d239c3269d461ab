"""The lower bound under worker caps: conditions that force moves, and a bound that is never above the optimum."""

import random
from typing import Any

import numpy as np
import pytest

from assignors import plan
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
