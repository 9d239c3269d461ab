"""Limits hold, separately and combined."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from assignors.errors import LimitsError
from assignors.scaling import Bounds, Confirmed, CoolDown, DownWindow, Scaler, State, Static, Step, Window, decide
from tests.unit.assignors.scaling.conftest import MakeWindow

NUMBERS = st.integers(1, 40)
_ZERO = np.zeros((1, 1), dtype=np.int64)
ONE = Window(times_s=np.array([1.0]), start=_ZERO, end=_ZERO, committed=_ZERO)


@given(st.tuples(NUMBERS, NUMBERS), NUMBERS, st.integers(0, 20), st.integers(1, 5))
def test_bounds_and_steps_compose(wanted_now: tuple[int, int], least: int, span: int, step: int) -> None:
    """Bounds come last, so they hold whatever the step allowed."""
    wanted, now = wanted_now
    scaler = Scaler(
        policy=Static(workers=wanted), limits=(Step(up=step, down=step), Bounds(least=least, most=least + span))
    )
    made = decide(scaler, ONE, State(workers=now))
    assert least <= made.workers <= least + span
    assert abs(made.workers - now) <= step or made.workers in {least, least + span}


def test_a_cool_down_waits_and_a_clock_that_jumped_does_not_hold_for_ever(steady: MakeWindow) -> None:
    """The last change may lie in the future of a clock that went back."""
    seen = steady([1], [1], [0], steps=3)
    scaler = Scaler(policy=Static(workers=5), limits=(CoolDown(up_s=100.0),))
    changed = [seen.now_s - 50.0, seen.now_s - 150.0, seen.now_s + 9e9]
    assert [decide(scaler, seen, State(workers=2, changed_s=at)).workers for at in changed] == [2, 5, 5]


def test_a_down_window_goes_to_the_most_that_was_wanted(steady: MakeWindow) -> None:
    """And never up by it."""
    seen = steady([1], [1], [0], steps=3)
    scaler = Scaler(policy=Static(workers=2), limits=(DownWindow(window_s=100.0),))
    state = State(workers=9, wanted=((seen.now_s - 200, 9), (seen.now_s - 90, 4), (seen.now_s - 30, 3)))
    made = decide(scaler, seen, state)
    assert made.workers == 4
    assert [number for _, number in made.state.wanted] == [4, 3, 2]  # what is too old is forgotten
    assert decide(scaler, seen, replace(state, workers=3)).workers == 3


def test_confirmed_needs_the_same_wish_in_a_row(steady: MakeWindow) -> None:
    """Once is a wish, twice is a change."""
    seen = steady([1], [1], [0], steps=3)
    scaler = Scaler(policy=Static(workers=6), limits=(Confirmed(times=2),))
    first = decide(scaler, seen, State(workers=2))
    later = steady([1], [1], [0], steps=4, every_s=60.0)
    assert first.workers == 2
    assert decide(scaler, later, replace(first.state, wanted=((0.0, 6),))).workers == 6


@pytest.mark.parametrize(
    ("limit", "settings", "named"),
    [
        (Bounds, {"least": 5, "most": 3}, "no number fits"),
        (Bounds, {"least": 0}, "min_workers=0"),
        (Step, {"up": 0}, "step_up=0"),
        (CoolDown, {"up_s": -1.0}, "cool-down"),
        (DownWindow, {"window_s": float("nan")}, "down_window_s"),
    ],
)
def test_contradictions_are_named(limit: type, settings: dict[str, float], named: str) -> None:
    """Contradictions are found at the creation, not at the first use."""
    with pytest.raises(LimitsError, match=named):
        limit(**settings)
