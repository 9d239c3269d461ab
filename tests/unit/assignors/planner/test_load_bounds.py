"""Bounds of the loads: within epsilon of the fair share wherever whole numbers allow it."""

import itertools

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from assignors.planner.load_bounds import exact_band, fair_band

weights = st.lists(st.sampled_from([0.5, 1.0, 1.5, 2.0, 3.0]), min_size=1, max_size=6)


@given(st.integers(0, 60), weights, st.sampled_from([0.0, 0.05, 0.1, 0.5, 2.0]))
def test_a_plan_fits_between_the_bounds(partitions: int, given_weights: list[float], epsilon: float) -> None:
    """The bounds never exclude every plan."""
    band = fair_band(partitions, np.array(given_weights), epsilon)
    assert (band.low >= 0).all()
    assert (band.low <= band.high).all()
    assert band.low.sum() <= partitions <= band.high.sum()


@given(st.integers(0, 9), st.lists(st.sampled_from([0.5, 1.0, 2.0, 3.0]), min_size=1, max_size=4))
def test_exact_bounds_are_those_of_the_smallest_sorted_vector(partitions: int, given_weights: list[float]) -> None:
    """Compared with every vector of loads."""
    vectors = [v for v in itertools.product(range(partitions + 1), repeat=len(given_weights)) if sum(v) == partitions]

    def heights(loads: tuple[int, ...]) -> list[float]:
        return sorted((round(n / w, 9) for n, w in zip(loads, given_weights, strict=True)), reverse=True)

    best = min(map(heights, vectors))
    columns = list(zip(*(v for v in vectors if heights(v) == best), strict=True))
    band = exact_band(partitions, np.array(given_weights))
    assert band.low.tolist() == [min(c) for c in columns]
    assert band.high.tolist() == [max(c) for c in columns]


@pytest.mark.parametrize(
    ("partitions", "members", "epsilon", "low", "high"),
    [
        (300, 30, 0.05, 10, 10),  # 10.5 holds no more than 10
        (300, 30, 0.1, 9, 11),
        (110, 10, 0.1, 10, 12),  # 1.1 * 11 = 12.1 and not 12.100000000000001; 0.9 * 11 = 9.9
        (100, 10, 0.1, 9, 11),  # 1.1 * 10 must not become 11.000000000000002, nor 0.9 * 10 a 10
        (10, 4, 0.05, 2, 3),  # nothing lies within 5 % of 2.5: floor and ceiling
        (1, 3, 0.05, 0, 1),
    ],
)
def test_bounds_of_equal_members(partitions: int, members: int, epsilon: float, low: int, high: int) -> None:
    """Strictly within epsilon on both sides; rounding makes no partition too many."""
    band = fair_band(partitions, np.ones(members), epsilon)
    assert (set(band.low.tolist()), set(band.high.tolist())) == ({low}, {high})
