"""A RESTORE to before an earlier rewind: the quarantine gets the bad records back that belong to those rows."""

import shutil
from pathlib import Path

import pyarrow as pa
import pytest
from deltalake import DeltaTable

from spark_sink.errors import TableError
from spark_sink.formats.bad_values_quarantined import COLUMN
from spark_sink.formats.quarantine_addresses import quarantine_of
from spark_sink.lake.holes_and_doubles import verify
from spark_sink.lake.parquet_landing import normal_schema
from spark_sink.ranges.batch_offset import Offset, Range
from spark_sink.sink.query_tables import Tables
from spark_sink.sink.rewind.delta_rewind import rewind
from spark_sink.sink.rows_by_table import Sorting
from spark_sink.sink.sink_options import SinkOptions
from tests.landed_offsets import landed_offsets
from tests.raw_rows import SCHEMA


def _commit(path: Path, begin: int, *bad: int) -> None:
    """Ten offsets, by a new process."""
    options = SinkOptions.parse(
        {"path": str(path), "kafka.group.id": "g", "checkpointLocation": "c", "compactEvery": "0"}
    )
    sorting = Sorting(options, normal_schema(SCHEMA), "run")
    rows = [
        {"topic": "t", "partition": 0, "offset": one, "value": b"v"}
        | ({COLUMN: {"error_class": "Bad", "value": b"v"}} if one in bad else {})
        for one in range(begin, begin + 10)
    ]
    sorting.write(pa.RecordBatch.from_pylist(rows, schema=SCHEMA))
    offset = Offset.of([Range("t", 0, begin, begin + 10)])
    Tables(options).commit(offset, sorting.close(), normal_schema(SCHEMA), 0)


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Offset 15 was bad; after a RESTORE and a rewind 16 was; a second RESTORE brings the rows beside 15 back."""
    path = tmp_path_factory.mktemp("whole") / "table"
    _commit(path, 0, 5)
    _commit(path, 10, 15, 19)
    _commit(path, 20, 25)
    DeltaTable(str(path)).restore(1)
    rewind(str(path), apply=True)
    _commit(path, 10, 16)
    _commit(path, 20)
    DeltaTable(str(path)).restore(3)
    return path


@pytest.fixture
def path(whole: Path, tmp_path: Path) -> Path:
    """A copy of the table and its quarantine, to be changed."""
    return Path(shutil.copytree(whole.parent, tmp_path / "lake")) / "table"


def _whole(path: Path, *bad: int) -> None:
    assert landed_offsets(quarantine_of(str(path))) == list(bad)
    assert sorted([*landed_offsets(str(path)), *bad]) == list(range(30))
    assert verify(str(path)).ok


def test_the_bad_records_beside_the_rows_come_back(path: Path) -> None:
    """The rows of a batch and its bad records are of one decoding, or an offset is in neither or in both."""
    assert rewind(str(path), apply=True) == []
    _whole(path, 5, 15, 19, 25)
    _commit(path, 30)
    DeltaTable(str(path)).restore(3)
    rewind(str(path), apply=True)
    _whole(path, 5, 15, 19, 25)


def test_records_that_came_back_leave_again_with_their_rows(tmp_path: Path) -> None:
    """A person goes from one past of the table to the other: the quarantine's position counts what came back."""
    path = tmp_path / "table"
    _commit(path, 0, 5)
    first = DeltaTable(str(path)).version()
    _commit(path, 10, 15)
    with_bad = DeltaTable(str(path)).version()
    DeltaTable(str(path)).restore(first)
    rewind(str(path), apply=True)
    rewound = DeltaTable(str(path)).version()
    _commit(path, 10)
    for version, bad in ((with_bad, [5, 15]), (rewound, [5])):
        DeltaTable(str(path)).restore(version)
        rewind(str(path), apply=True)
        assert landed_offsets(quarantine_of(str(path))) == bad
    for begin in (10, 20):
        _commit(path, begin)
    _whole(path, 5)


def test_records_that_a_restore_of_the_quarantine_brings_back_are_taken_out(tmp_path: Path) -> None:
    """They follow the rows without a gap, and are above the position: the rewind took them for rows of the table."""
    path = tmp_path / "table"
    quarantine = quarantine_of(str(path))
    _commit(path, 0, 5)
    first = DeltaTable(str(path)).version()
    _commit(path, 10, 10)
    with_bad = DeltaTable(quarantine).version()
    DeltaTable(str(path)).restore(first)
    rewind(str(path), apply=True)
    DeltaTable(quarantine).restore(with_bad)
    assert landed_offsets(quarantine) == [5, 10]
    with pytest.raises(TableError, match="azimuth rewind"):
        _commit(path, 10, 11)
    rewind(str(path))  # a look changes nothing
    assert landed_offsets(quarantine) == [5, 10]
    rewind(str(path), apply=True)
    assert landed_offsets(quarantine) == [5]
    for begin in (10, 20):
        _commit(path, begin)
    _whole(path, 5)


def test_a_crash_at_any_step_leaves_the_work_to_the_next_call(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Records are removed and added in two commits."""
    for step in (
        "bad_records_after_table_restore.from_offsets",
        "bad_records_after_table_restore.Change",
        "delta_rewind._set_positions",
    ):
        with monkeypatch.context() as patch:
            patch.setattr(f"spark_sink.sink.rewind.{step}", _crash)
            with pytest.raises(KeyboardInterrupt):
                rewind(str(path), apply=True)
        with pytest.raises(TableError, match="azimuth rewind"):
            _commit(path, 30)
    rewind(str(path), apply=True)
    _whole(path, 5, 15, 19, 25)


def _crash(*_: object, **__: object) -> None:
    raise KeyboardInterrupt


def test_a_restore_that_names_a_time_brings_them_back_as_well(path: Path) -> None:
    """The log has the time that was asked for, and not the version that was found."""
    entry = path / "_delta_log" / f"{8:020}.json"
    assert '"operationParameters":{"version":"3"}' in entry.read_text()
    entry.write_text(entry.read_text().replace('{"version":"3"}', '{"datetime":"1700000000000"}'))
    rewind(str(path), apply=True)
    _whole(path, 5, 15, 19, 25)


@pytest.mark.parametrize("gone", ["files", "log"])
def test_records_that_are_gone_are_read_again_after_their_rows_are_deleted(path: Path, gone: str) -> None:
    """VACUUM removes files that are no longer in the quarantine, and the cleaning of the log what names them."""
    if gone == "files":
        quarantine = DeltaTable(quarantine_of(str(path)))
        quarantine.vacuum(retention_hours=0, dry_run=False, enforce_retention_duration=False)
    else:
        DeltaTable(str(path)).create_checkpoint()
        for version in range(3):
            (path / "_delta_log" / f"{version:020}.json").unlink()
    before = (path / "_delta_log").stat().st_mtime_ns
    with pytest.raises(TableError, match=r"Delete the rows of t/0 from offset 10 on, and run the command again"):
        rewind(str(path), apply=True)
    assert (path / "_delta_log").stat().st_mtime_ns == before
    DeltaTable(str(path)).delete('topic = \'t\' AND "partition" = 0 AND "offset" >= 10')
    rewind(str(path), apply=True)
    for begin in (10, 20):
        _commit(path, begin, begin)
    _whole(path, 5, 10, 20)
