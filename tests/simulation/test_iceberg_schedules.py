"""Writers of an Iceberg table keep every record once, whatever the catalog answers.

Each seed is one schedule: crashes, lost answers, lost requests, other writers and compactions right before a commit.
"""

from pathlib import Path

import pytest

from tests.simulation.iceberg_schedules import IcebergWorld, mutants
from tests.simulation.scheduler import BrokenPromiseError

_QUICK, _MANY = 4, 200
_MUTANT_SEEDS = 30


def _first_broken(first: int, end: int, root: Path) -> int | None:
    for seed in range(first, end):
        try:
            IcebergWorld(seed, root).run()
        except BrokenPromiseError:
            return seed
    return None


def test_every_record_is_there_once_in_the_first_schedules(tmp_path: Path) -> None:
    """A few of them with every run of the unit tests."""
    for seed in range(_QUICK):
        IcebergWorld(seed, tmp_path).run()


@pytest.mark.slow
@pytest.mark.matrix
def test_every_record_is_there_once_in_many_schedules(tmp_path: Path) -> None:
    """More of them."""
    for seed in range(_QUICK, _MANY):
        IcebergWorld(seed, tmp_path).run()


@pytest.mark.parametrize("name", mutants())
def test_each_mutant_doubles_rows_in_one_of_the_first_schedules(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Without the fence a schedule finds a row twice: so the schedules above are worth something."""
    mutants()[name](monkeypatch)
    assert _first_broken(0, _MUTANT_SEEDS, tmp_path) is not None
