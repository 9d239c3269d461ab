"""Bad records that are gone are an error, which spoils nothing and has a way out."""

import shutil
from pathlib import Path

import pytest

from spark_sink.errors import TableError
from spark_sink.formats.quarantine_addresses import quarantine_of
from spark_sink.lake.delta_table import DeltaLakeTable
from spark_sink.lake.holes_and_doubles import verify
from spark_sink.sink.rewind.delta_rewind import rewind
from tests.landed_offsets import landed_offsets
from tests.unit.spark_sink.sink.quarantine.test_quarantine_commit import _crash, _Crashed, _run, clean_up_log


def _kept(path: str) -> list[int]:
    """Offsets in the table and in its quarantine, each of which must be readable."""
    return sorted(landed_offsets(path) + landed_offsets(quarantine_of(path)))


def test_a_quarantine_that_was_deleted_is_refused_until_it_is_back(tmp_path: Path) -> None:
    """Its files were committed by name before; named again, they would make a quarantine that cannot be read."""
    path, quarantine = str(tmp_path / "table"), tmp_path / "table_quarantine"
    _run(path, 0, 10, {4})
    _run(path, 10, 20, {12, 13})
    quarantine.rename(tmp_path / "away")
    for end in (30, 40):  # the second time, too
        with pytest.raises(TableError, match=r"3 bad records .* such as part-.*Was the quarantine deleted\?.*rewind"):
            _run(path, end - 10, end, {end - 8})
    shutil.copytree(tmp_path / "away", quarantine, dirs_exist_ok=True)
    _run(path, 40, 50, set())
    assert _kept(path) == list(range(50))
    assert verify(path).ok


def test_a_rewind_gives_up_what_is_gone_and_says_what_it_was(tmp_path: Path) -> None:
    """The run goes on, and `verify` lists the offsets that are in neither table."""
    path = str(tmp_path / "table")
    _run(path, 0, 10, {4})
    _run(path, 10, 20, {12, 19})
    shutil.rmtree(quarantine_of(path))
    told: list[str] = []
    rewind(path, tell=told.append)
    rewind(path, apply=True, tell=told.append)
    assert [text.split(": ")[1] for text in told] == [
        f"bad records that the table names are gone; those below the new positions {gone} given up"
        for gone in ("would be", "were")
    ]
    _run(path, 19, 30, {19, 22})  # 19 was the last record of the partition, so it is read again
    assert _kept(path) == [one for one in range(30) if one not in {4, 12}]
    assert not verify(path).ok


def test_a_rewind_gives_up_records_whose_log_entry_is_gone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The sentence about them names this way out."""
    path = str(tmp_path / "table")
    with monkeypatch.context() as patch:
        patch.setattr(DeltaLakeTable, "swap", _crash("before the quarantine"))
        with pytest.raises(_Crashed):
            _run(path, 0, 10, {4})
    clean_up_log(tmp_path / "table")
    with pytest.raises(TableError, match="cleaned up"):
        _run(path, 10, 20, {12})
    rewind(path, apply=True)
    _run(path, 20, 30, {22})
    assert _kept(path) == [one for one in range(30) if one != 4]
