"""The real code of source, sink, quarantine, compaction, replay and rewind keeps its promises in every schedule.

Each seed is one schedule of a few agents and of everyone else who touches the table. `python -m tests.simulation SEED`
runs one alone and prints its steps.
"""

import os

import pytest

from tests.simulation.kept_landing import KeptSorting
from tests.simulation.many_schedules import all_broken, first_broken
from tests.simulation.mutants import DIRECTED, MUTANTS, UNREFUSED, mutated
from tests.simulation.scheduler import BrokenPromiseError
from tests.simulation.schedules import directed, simulate

_QUICK = 60
_ENOUGH = 1_000
_SLOW = int(os.environ.get("AZIMUTH_SCHEDULES", "100000"))
# Found by any seed of the first few, so that the quick tests show that a schedule can fail.
_PLAIN_MUTANTS = ("the position is not compared", "the quarantine adds what it has")


def _run(first: int, end: int) -> None:
    found = first_broken(first, end)
    assert found is None, f"seed {found[0]}: {found[1]}\nits steps: python -m tests.simulation {found[0]}"


def test_promises_hold_in_the_first_schedules() -> None:
    """A few of them with every run of the unit tests."""
    _run(0, _QUICK)


@pytest.mark.slow
def test_promises_hold_in_a_thousand_schedules() -> None:
    """As many as find every mutant below."""
    _run(_QUICK, _ENOUGH)


@pytest.mark.slow
def test_promises_hold_in_many_schedules() -> None:
    """As many as two cores run in twenty minutes; AZIMUTH_SCHEDULES=5000 for fewer."""
    broken = all_broken(_ENOUGH, _SLOW)
    assert not broken, f"{broken}\nits steps: python -m tests.simulation {min(broken)}"


def test_a_seed_gives_the_same_steps_again() -> None:
    """A failure that cannot be repeated cannot be understood."""
    KeptSorting._KEPT.clear()
    for seed in range(5):
        assert simulate(seed).scheduler.trace == simulate(seed).scheduler.trace


@pytest.mark.parametrize("name", _PLAIN_MUTANTS)
def test_plain_mutants_are_found_quickly(name: str) -> None:
    """The schedules above are worth something: without a fence one of the first few breaks a promise."""
    with mutated(name):
        found = first_broken(0, _QUICK)
    assert found is not None
    assert isinstance(found[1], BrokenPromiseError)


@pytest.mark.parametrize("name", DIRECTED)
def test_a_directed_schedule_needs_its_fence(name: str) -> None:
    """With the fence the promises hold, mostly because a commit is refused; without it, one breaks."""
    whole = directed(DIRECTED[name])
    assert whole.error is None
    refused = [what for _, _, what in whole.scheduler.trace if what.startswith("TableError")]
    assert bool(refused) == (name not in UNREFUSED)
    with mutated(name):
        assert isinstance(directed(DIRECTED[name]).error, BrokenPromiseError)


@pytest.mark.slow
@pytest.mark.parametrize("name", sorted(MUTANTS.keys() - DIRECTED.keys()))
def test_each_mutant_is_found_within_a_thousand_schedules(name: str) -> None:
    """Each fence has a schedule that needs it."""
    with mutated(name):
        found = first_broken(0, _ENOUGH)
    assert found is not None
    assert isinstance(found[1], BrokenPromiseError)
