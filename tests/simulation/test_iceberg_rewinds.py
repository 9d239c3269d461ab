"""Each offset is in exactly one of an Iceberg table and its quarantine, whenever the table is rolled back and rewound.

Each seed is one schedule: crashes at any commit, and steps of other writers and of the person in the middle of it.
"""

from pathlib import Path

import pytest

from tests.simulation.iceberg_rewinds import RewindWorld, mutants
from tests.simulation.scheduler import BrokenPromiseError

_QUICK, _MANY = 1, 100
_FOUND_QUICKLY = "the table keeps its names"


def _is_broken(seed: int, root: Path) -> bool:
    try:
        RewindWorld(seed, root).run()
    except BrokenPromiseError:
        return True
    return False


def test_each_offset_is_in_one_place_in_the_first_schedules(tmp_path: Path) -> None:
    """A few of them with every run of the unit tests."""
    for seed in range(_QUICK):
        RewindWorld(seed, tmp_path).run()


@pytest.mark.slow
@pytest.mark.matrix
def test_each_offset_is_in_one_place_in_many_schedules(tmp_path: Path) -> None:
    """More of them."""
    for seed in range(_QUICK, _MANY):
        RewindWorld(seed, tmp_path).run()


@pytest.mark.parametrize(
    "name",
    [pytest.param(one, marks=pytest.mark.long if one == _FOUND_QUICKLY else pytest.mark.slow) for one in mutants()],
)
def test_each_mutant_breaks_one_of_the_first_schedules(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A rewind needs each of these steps: so the schedules above are worth something."""
    mutants()[name](monkeypatch)
    assert any(_is_broken(seed, tmp_path) for seed in range(_MANY))
