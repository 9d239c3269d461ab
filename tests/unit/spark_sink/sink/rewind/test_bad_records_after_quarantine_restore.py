"""A RESTORE of the quarantine: a rewind of its table puts the bad records back that it took."""

import shutil
from pathlib import Path

import pyarrow as pa
import pytest
from deltalake import DeltaTable

from spark_sink.errors import TableError
from spark_sink.formats.bad_values_quarantined import COLUMN
from spark_sink.formats.quarantine_addresses import quarantine_of
from spark_sink.lake.delta_log_reader import TransactionLog
from spark_sink.lake.holes_and_doubles import verify
from spark_sink.lake.parquet_landing import normal_schema
from spark_sink.ranges.batch_offset import Offset, Range
from spark_sink.sink.query_tables import Tables
from spark_sink.sink.rewind.delta_rewind import rewind
from spark_sink.sink.rows_by_table import Sorting
from spark_sink.sink.sink_options import SinkOptions
from tests.landed_offsets import landed_offsets
from tests.raw_rows import SCHEMA


def _commit(path: Path, begin: int, *bad: int, group: str = "g") -> None:
    """Ten offsets of the group's topic, by a new process."""
    options = SinkOptions.parse(
        {"path": str(path), "kafka.group.id": group, "checkpointLocation": "c", "compactEvery": "0"}
    )
    sorting = Sorting(options, normal_schema(SCHEMA), "run")
    rows = [
        {"topic": group, "partition": 0, "offset": one, "value": b"v"}
        | ({COLUMN: {"error_class": "Bad", "value": b"v"}} if one in bad else {})
        for one in range(begin, begin + 10)
    ]
    sorting.write(pa.RecordBatch.from_pylist(rows, schema=SCHEMA))
    offset = Offset.of([Range(group, 0, begin, begin + 10)])
    Tables(options).commit(offset, sorting.close(), normal_schema(SCHEMA), 0)


def _quarantine(path: Path) -> DeltaTable:
    return DeltaTable(quarantine_of(str(path)))


def _whole(path: Path, *bad: int, end: int = 30, group: str = "g") -> None:
    assert landed_offsets(quarantine_of(str(path)), group) == list(bad)
    assert sorted([*landed_offsets(str(path), group), *bad]) == list(range(end))


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Three batches, each with a bad record: the quarantine has versions 0 to 3."""
    path = tmp_path_factory.mktemp("whole") / "table"
    for begin, bad in ((0, 5), (10, 15), (20, 25)):
        _commit(path, begin, bad)
    return path


@pytest.fixture
def path(whole: Path, tmp_path: Path) -> Path:
    """A copy of the table and its quarantine, to be changed."""
    return Path(shutil.copytree(whole.parent, tmp_path / "lake")) / "table"


@pytest.mark.parametrize("versions", [(0,), (1,), (2,), (0, 2), (2, 0), (1, 2, 4)])
def test_a_rewind_puts_back_what_the_restores_took(path: Path, versions: tuple[int, ...]) -> None:
    """Its positions are ahead of what it has, so no agent would read those records again."""
    for version in versions:
        _quarantine(path).restore(version)
    with pytest.raises(TableError, match=rf"RESTORE of a quarantine, .*`azimuth rewind {path} --apply` puts them back"):
        _commit(path, 30)
    assert rewind(str(path), apply=True) == []
    _whole(path, 5, 15, 25)
    assert verify(str(path)).ok
    _commit(path, 30, 30)
    _whole(path, 5, 15, 25, 30, end=40)


def test_a_newest_commit_that_the_store_lacks_for_a_moment_resolves_no_restore(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It was read just before. Without it the log seems to have no RESTORE, and the mark would come without records."""
    _quarantine(path).restore(0)
    entry = TransactionLog.entry
    monkeypatch.setattr(TransactionLog, "entry", lambda log, at: entry(log, at) if at < log.version else None)
    rewind(str(path), apply=True)
    monkeypatch.undo()
    _whole(path, 5, 15, 25)


def test_a_restore_that_cannot_be_read_again_is_not_resolved(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The log has neither it nor a rewind after it: somebody removed commits by hand."""
    _quarantine(path).restore(0)
    _quarantine(path).alter.set_table_properties({"delta.appendOnly": "false"})
    monkeypatch.setattr(TransactionLog, "entry", lambda *_: None)
    with pytest.raises(TableError, match=r"_quarantine: the commit of a RESTORE can no longer be read"):
        rewind(str(path), apply=True)
    monkeypatch.undo()
    rewind(str(path), apply=True)
    _whole(path, 5, 15, 25)


def test_a_dry_run_changes_nothing(path: Path) -> None:
    """It only reports."""
    _quarantine(path).restore(1)
    said: list[str] = []
    rewind(str(path), tell=said.append)
    assert said == [f"{quarantine_of(str(path))}: it was restored, and would be put back to version 3"]
    assert landed_offsets(quarantine_of(str(path)), "g") == [5]
    assert _quarantine(path).version() == 4


@pytest.mark.parametrize("first", ["table", "quarantine"])
def test_a_restore_of_both_leaves_the_bad_records_below_the_new_positions(path: Path, first: str) -> None:
    """A person who restores the table restores its quarantine, too."""
    for one in (first, "quarantine" if first == "table" else "table"):
        DeltaTable(str(path) if one == "table" else quarantine_of(str(path))).restore(1)
    (found,) = rewind(str(path), apply=True)
    assert (found.before, found.after) == (30, 10)
    _whole(path, 5, end=10)
    _commit(path, 10, 12)
    _whole(path, 5, 12, end=20)


def test_a_quarantine_restored_to_before_a_rewind_gets_no_record_twice(path: Path) -> None:
    """The rewind had taken records out that were read again, as good ones."""
    DeltaTable(str(path)).restore(1)
    rewind(str(path), apply=True)
    for begin, bad in ((10, 11), (20, 21)):
        _commit(path, begin, bad)
    _quarantine(path).restore(3)
    rewind(str(path), apply=True)
    _whole(path, 5, 11, 21)
    assert verify(str(path)).ok


def test_records_that_a_new_group_added_after_the_restore_are_kept(path: Path) -> None:
    """A group without positions has lost nothing, so the RESTORE does not stop its first batch."""
    _quarantine(path).restore(1)
    _commit(path, 0, 3, group="h")
    _quarantine(path).restore(1)
    rewind(str(path), "g", apply=True)
    _whole(path, 5, 15, 25)
    _whole(path, 3, end=10, group="h")
    rewind(str(path), "h", apply=True)
    _commit(path, 10, 13, group="h")
    _whole(path, 5, 15, 25)
    _whole(path, 3, 13, end=20, group="h")


def test_a_second_group_finds_its_records_back_after_the_first_one_has_gone_on(path: Path) -> None:
    """One rewind puts back the records of all groups; that of the other must not take away what came since."""
    _commit(path, 0, 3, group="h")
    _quarantine(path).restore(1)
    rewind(str(path), "h", apply=True)
    _commit(path, 10, 13, group="h")
    with pytest.raises(TableError, match="RESTORE of a quarantine"):
        _commit(path, 30)
    rewind(str(path), "g", apply=True)
    _commit(path, 30, 31)
    _whole(path, 5, 15, 25, 31, end=40)
    _whole(path, 3, 13, end=20, group="h")


def test_a_crash_at_any_step_leaves_the_work_to_the_next_call(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The RESTORE back and the mark are two commits."""
    _quarantine(path).restore(1)
    for step in (
        "bad_records_after_quarantine_restore.commit_positions",
        "delta_rewind._add_named",
        "delta_rewind._rewind_quarantine",
    ):
        with monkeypatch.context() as patch:
            patch.setattr(f"spark_sink.sink.rewind.{step}", _crash)
            with pytest.raises(KeyboardInterrupt):
                rewind(str(path), apply=True)
    rewind(str(path), apply=True)
    _whole(path, 5, 15, 25)
    _commit(path, 30, 31)
    _whole(path, 5, 15, 25, 31, end=40)


def _crash(*_: object, **__: object) -> None:
    raise KeyboardInterrupt


@pytest.mark.parametrize("gone", ["files", "log"])
def test_records_that_cannot_be_put_back_are_said_and_nothing_is_written(path: Path, gone: str) -> None:
    """VACUUM removes files that no version in use has, and the cleaning of the log the versions themselves."""
    _quarantine(path).restore(1)
    if gone == "files":
        _quarantine(path).vacuum(retention_hours=0, dry_run=False, enforce_retention_duration=False)
    else:
        _quarantine(path).create_checkpoint()
        for version in range(4):
            (Path(quarantine_of(str(path))) / "_delta_log" / f"{version:020}.json").unlink()
    versions = [DeltaTable(str(path)).version(), _quarantine(path).version()]
    told: list[str] = []
    with pytest.raises(TableError, match="version 3, which has the bad records that it took back, cannot be read or"):
        rewind(str(path), apply=True, tell=told.append)
    assert told == []
    assert versions == [DeltaTable(str(path)).version(), _quarantine(path).version()]


def test_a_quarantine_that_cannot_be_put_back_is_given_up_once_its_folder_is_away(path: Path) -> None:
    """The refusal names this way out."""
    _quarantine(path).restore(1)
    _quarantine(path).vacuum(retention_hours=0, dry_run=False, enforce_retention_duration=False)
    with pytest.raises(TableError, match="Without a backup, move the folder of the quarantine away"):
        rewind(str(path), apply=True)
    Path(quarantine_of(str(path))).rename(path.parent / "away")
    assert rewind(str(path), apply=True) == []
    _commit(path, 30, 35)
    assert landed_offsets(quarantine_of(str(path)), "g") == [35]
    assert not verify(str(path)).ok
