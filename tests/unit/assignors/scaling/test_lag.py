"""Lag in records and in seconds."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from assignors.scaling import NEVER, UNKNOWN, Observation, Window, window
from assignors.scaling.lag import lag_records, lag_seconds, per_second

OFFSETS = hnp.arrays(np.int64, 8, elements=st.integers(-2, 1000))


@given(OFFSETS, OFFSETS, OFFSETS)
def test_lag_is_a_count_or_unknown(start: np.ndarray, end: np.ndarray, committed: np.ndarray) -> None:
    """Never NaN, never below 0, and unknown exactly where an offset that is needed is."""
    lag = lag_records(start, np.where(end == NEVER, UNKNOWN, end), committed)
    unknown = (end < 0) | (committed == UNKNOWN) | ((committed == NEVER) & (start == UNKNOWN))
    assert ((lag >= 0) | (lag == UNKNOWN)).all()
    assert (lag[unknown] == UNKNOWN).all()


def test_without_a_commit_all_that_is_kept_counts() -> None:
    """The lag is not the end offset: records that retention has deleted do not count."""
    (lag,) = lag_records(np.array([900]), np.array([1000]), np.array([NEVER]))
    assert lag == 100


@given(st.integers(1, 500), st.integers(0, 40_000))
def test_seconds_are_read_from_the_observed_ends(rate: int, lag: int) -> None:
    """At a constant rate the age is lag / rate, as far back as the window sees."""
    times = np.array([n * 10.0 for n in range(100)])
    end = np.round(times[:, None] * rate).astype(np.int64) + 100_000
    committed = np.full_like(end, end[-1, 0] - lag)
    seen = Window(times_s=times, start=np.zeros_like(end), end=end, committed=committed)
    (seconds,), (at_least,) = lag_seconds(seen)
    assert at_least == (lag > 990 * rate)
    assert seconds == pytest.approx(min(lag / rate, 990.0), abs=1 / rate + 1e-6)


def test_a_clock_that_jumps_back_begins_a_new_window() -> None:
    """No rate can be computed across the jump, and none is invented."""
    one = np.array([1], dtype=np.int64)
    seen = window([Observation(time_s=t, start=one, end=one, committed=one) for t in (100.0, 110.0, 50.0, 60.0)])
    assert seen.times_s.tolist() == [50.0, 60.0]


def test_added_partitions_were_unknown_before() -> None:
    """A topic that grows keeps its window, and new partitions have no rate from before."""
    before = Observation(time_s=0.0, start=np.array([0]), end=np.array([10]), committed=np.array([5]))
    after = Observation(time_s=10.0, start=np.zeros(2, int), end=np.array([20, 7]), committed=np.array([5, NEVER]))
    seen = window([before, after])
    assert seen.end.tolist() == [[10, UNKNOWN], [20, 7]]
    assert per_second(seen.end, seen.times_s, 60).tolist() == [1.0, 0.0]
