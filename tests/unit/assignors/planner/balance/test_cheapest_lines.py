"""Half a round of Bellman-Ford over whole arrays and over the allowed cells alone."""

import numpy as np
import pytest

from assignors.planner.balance.cheapest_lines import SingleCells, WholeLines, lines_of
from assignors.planner.balance.min_cost_flow import Exchange, Flow

NEVER = 1 << 50


@pytest.mark.parametrize("seed", range(20))
def test_single_cells_choose_the_same_ways_as_whole_lines(seed: int) -> None:
    """Equal costs are frequent: another choice among them would give another plan than the recorded one."""
    rng = np.random.default_rng(seed)
    shape = int(rng.integers(20, 40)), int(rng.integers(20, 40))
    allowed = rng.random(shape) < 0.1
    dense = np.where(allowed, rng.integers(-1, 2, shape), NEVER)
    for lines, axis in zip(lines_of(allowed), (0, 1), strict=True):
        assert isinstance(lines, SingleCells)
        potentials = rng.integers(-2, 1, shape[axis])
        best, cost = lines.cheapest(lines.costs(dense), potentials)
        whole_best, whole_cost = WholeLines(by_kind=axis == 0).cheapest(dense, potentials)
        reached = allowed.any(axis=axis)
        assert (best[reached] == whole_best[reached]).all()
        assert (cost[reached] == whole_cost[reached]).all()
        assert (cost[~reached] >= NEVER).all()


def test_arrays_are_used_whole_where_most_cells_are_allowed() -> None:
    """Selecting cells costs more than it saves there."""
    assert all(isinstance(lines, WholeLines) for lines in lines_of(np.ones((3, 3), dtype=bool)))


@pytest.mark.parametrize("seed", range(20))
def test_counts_are_the_same_with_single_cells_and_with_whole_lines(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Which form is faster depends on the group; the plan must not."""
    rng = np.random.default_rng(seed)
    members, kinds = 24, 30
    allowed = rng.random((members, kinds)) < 0.12
    counts = np.where(allowed.any(axis=0), rng.integers(0, 9, kinds), 0)
    off = allowed & (rng.random(allowed.shape) < 0.2)
    owned = np.where(allowed, rng.integers(0, 3, allowed.shape), 0)
    owned *= owned.cumsum(axis=0) <= counts
    mean = int(counts.sum()) // members
    bounds = Exchange(
        np.full(members, max(0, mean - 3)), np.full(members, mean + 3), exact=False, weights=np.zeros(members, int)
    )
    found = []
    for few in (1, 1000):  # cells for each allowed one, from which single cells are used
        monkeypatch.setattr("assignors.planner.balance.cheapest_lines._FEW", few)
        flow = Flow(counts, allowed, off, owned)
        assert isinstance(flow.to_kind, SingleCells) == (few == 1)
        found.append((flow.solve(bounds, None, 0), flow.proven, flow.given.tolist(), flow.load.tolist()))
    assert found[0] == found[1]
