"""A table that went back is refused, and continues without a hole after a rewind."""

import shutil
from collections.abc import Sequence
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
import pytest
from deltalake import DeltaTable, Schema, write_deltalake
from typer.testing import CliRunner

from spark_sink import positions
from spark_sink.cli._app import app
from spark_sink.cli.rewind import register
from spark_sink.errors import TableError
from spark_sink.formats.bad_values_quarantined import COLUMN, good_schema
from spark_sink.formats.quarantine_addresses import quarantine_of
from spark_sink.lake.holes_and_doubles import verify
from spark_sink.lake.parquet_landing import normal_schema
from spark_sink.ranges.batch_offset import Offset, Range
from spark_sink.sink.query_tables import Tables
from spark_sink.sink.rewind import delta_rewind
from spark_sink.sink.rewind.delta_rewind import rewind
from spark_sink.sink.rows_by_table import Sorting
from spark_sink.sink.sink_options import SinkOptions
from tests.landed_offsets import landed_offsets
from tests.raw_rows import SCHEMA

PLACES = [("t", 0), ("t", 1)]


def _tables(path: str) -> tuple[Tables, SinkOptions]:
    options = SinkOptions.parse({"path": path, "kafka.group.id": "g", "checkpointLocation": "c", "compactEvery": "0"})
    return Tables(options), options


def _replaced(path: str, left: int) -> pa.Table:
    """Replace a table by its rows below an offset, as a CREATE OR REPLACE TABLE AS SELECT; return these rows."""
    handle = DeltaTable(path)
    rows = handle.to_pyarrow_table().filter(pc.field("offset") < left)
    DeltaTable.create(path, handle.schema(), mode="overwrite")
    write_deltalake(path, rows, mode="append")
    return rows


def _commit(
    path: str, begin: int, kept: tuple[Tables, SinkOptions] | None = None, places: Sequence[tuple[str, int]] = PLACES
) -> None:
    """Ten offsets of two partitions; the sixth of each is bad."""
    tables, options = kept or _tables(path)
    sorting = Sorting(options, normal_schema(SCHEMA), "run")
    rows = [
        {"topic": topic, "partition": number, "offset": one, "value": b"v"}
        | ({COLUMN: {"error_class": "Bad", "error_text": "x", "value": b"v"}} if one % 10 == 5 else {})
        for topic, number in places
        for one in range(begin, begin + 10)
    ]
    sorting.write(pa.RecordBatch.from_pylist(rows, schema=SCHEMA))
    offset = Offset.of(Range(*place, begin, begin + 10) for place in places)
    tables.commit(offset, sorting.close(), normal_schema(SCHEMA), 0)


@pytest.mark.parametrize("running", [True, False], ids=["while it runs", "between two runs"])
@pytest.mark.parametrize("checkpoint", [True, False], ids=["checkpoint after it", "no checkpoint"])
def test_a_restored_table_is_refused_and_goes_on_after_a_rewind(
    tmp_path: Path, *, running: bool, checkpoint: bool
) -> None:
    """RESTORE keeps the positions: the offsets between would be in no table, and the next batch would commit."""
    path = str(tmp_path / "table")
    kept = _tables(path)
    for begin in (0, 10, 20, 30):
        _commit(path, begin, kept)
    DeltaTable(path).restore(2)
    if checkpoint:
        DeltaTable(path).create_checkpoint()
    for again in (kept if running else None, None):
        with pytest.raises(
            TableError, match=rf"version 5 is a RESTORE, .*`azimuth rewind {path} --apply` sets the positions"
        ):
            _commit(path, 40, again)
    assert {(one.key.partition, one.before, one.after) for one in rewind(path)} == {(0, 40, 20), (1, 40, 20)}
    assert positions(path, "g") == {("t", 0): 40, ("t", 1): 40}
    rewind(path, apply=True)
    assert positions(path, "g") == {("t", 0): 20, ("t", 1): 20}
    assert landed_offsets(quarantine_of(path)) == [5, 5, 15, 15]
    assert rewind(path) == []
    for begin in (20, 30, 40):
        _commit(path, begin)
    assert sorted(landed_offsets(path) + landed_offsets(quarantine_of(path))) == sorted([*range(50)] * 2)
    assert verify(path).ok


@pytest.mark.parametrize("left", [0, 10], ids=["no row is left", "the first rows are left"])
@pytest.mark.parametrize("checkpoint", [True, False], ids=["checkpoint after it", "no checkpoint"])
def test_a_replaced_table_is_refused_and_goes_on_after_a_rewind(tmp_path: Path, left: int, *, checkpoint: bool) -> None:
    """CREATE OR REPLACE TABLE keeps the positions, too: a process that started later went on behind the lost rows."""
    path = str(tmp_path / "table")
    kept = _tables(path)
    for begin in (0, 10):
        _commit(path, begin, kept)
    _replaced(path, left)
    if checkpoint:
        DeltaTable(path).create_checkpoint()
    with pytest.raises(TableError, match="recreated while the query ran"):
        _commit(path, 20, kept)
    with pytest.raises(TableError, match=rf"version 3 is a CREATE OR REPLACE TABLE, .*`azimuth rewind {path} --apply`"):
        _commit(path, 20)
    rewind(path, apply=True)
    assert positions(path, "g") == {("t", 0): left, ("t", 1): left}
    for begin in range(left, 30, 10):
        _commit(path, begin)
    assert sorted(landed_offsets(path) + landed_offsets(quarantine_of(path))) == sorted([*range(30)] * 2)
    assert verify(path).ok


@pytest.mark.parametrize("left", [0, 10], ids=["no row is left", "the first rows are left"])
def test_a_restore_to_a_replaced_table_sets_the_positions_to_its_rows(tmp_path: Path, left: int) -> None:
    """The version that it brings back has the positions of the table before: their records would be in no table."""
    path = str(tmp_path / "table")
    for begin in (0, 10):
        _commit(path, begin)
    rows = _replaced(path, left)
    version = DeltaTable(path).version()
    write_deltalake(path, rows, mode="append")
    DeltaTable(path).restore(version)
    rewind(path, apply=True)
    assert positions(path, "g") == {("t", 0): left, ("t", 1): left}
    for begin in range(left, 30, 10):
        _commit(path, begin)
    assert sorted(landed_offsets(path) + landed_offsets(quarantine_of(path))) == sorted([*range(30)] * 2)
    assert verify(path).ok


def test_a_replaced_table_whose_rows_are_all_there_needs_a_rewind_once(tmp_path: Path) -> None:
    """The rewind changes no position, and its mark is what the agents look for."""
    path = str(tmp_path / "table")
    _commit(path, 0)
    _replaced(path, left=10)
    with pytest.raises(TableError, match="version 2 is a CREATE OR REPLACE TABLE"):
        _commit(path, 10)
    assert rewind(path, apply=True) == []
    _commit(path, 10)
    assert verify(path).ok


def test_a_table_that_was_replaced_before_its_first_record_is_written(tmp_path: Path) -> None:
    """A program may create the table so; the group has no position that could be ahead of the rows."""
    path = str(tmp_path / "table")
    DeltaTable.create(path, Schema.from_arrow(good_schema(normal_schema(SCHEMA))), mode="overwrite")
    DeltaTable.create(path, DeltaTable(path).schema(), mode="overwrite")
    for begin in (0, 10):
        _commit(path, begin)
    assert verify(path).ok


def test_a_table_of_two_topics_is_rewound_twice(tmp_path: Path) -> None:
    """A rewind rewrites files of the quarantine by a DELETE, and the next one must be able to read them."""
    path, places = str(tmp_path / "table"), [("t", 0), ("u", 0)]
    for begin in (0, 10, 20):
        _commit(path, begin, places=places)
    DeltaTable(quarantine_of(path)).optimize.compact()
    for version, end in ((2, 20), (1, 10)):
        DeltaTable(path).restore(version)
        assert [one.after for one in rewind(path, apply=True)] == [end, end]
        assert landed_offsets(quarantine_of(path)) == sorted([*range(5, end, 10)] * 2)
    for begin in (10, 20):
        _commit(path, begin, places=places)
    assert sorted(landed_offsets(path) + landed_offsets(quarantine_of(path))) == sorted([*range(30)] * 2)
    assert verify(path).ok


def test_a_rewind_that_was_cut_off_is_finished_by_the_next(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The table is set back, its quarantine is not: the sink refuses until it is."""
    path = str(tmp_path / "table")
    for begin in (0, 10, 20):
        _commit(path, begin)
    DeltaTable(path).restore(1)
    with monkeypatch.context() as patch:
        patch.setattr("spark_sink.sink.rewind.delta_rewind._rewind_quarantine", _crash)
        with pytest.raises(KeyboardInterrupt):
            rewind(path, apply=True)
    with pytest.raises(TableError, match="azimuth rewind"):
        _commit(path, 10)
    rewind(path, apply=True)
    for begin in (10, 20):
        _commit(path, begin)
    assert sorted(landed_offsets(path) + landed_offsets(quarantine_of(path))) == sorted([*range(30)] * 2)


@pytest.mark.parametrize("cause", ["a rewind that was cut off", "an older copy of the table"])
def test_a_quarantine_ahead_whose_first_record_is_at_the_position_is_set_back(
    tmp_path: Path, cause: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """These bad records follow the rows without a gap, and yet the table does not count them."""
    path = str(tmp_path / "table")
    _commit(path, 5)  # its first record is bad, as that of each batch here
    shutil.copytree(path, tmp_path / "older")
    _commit(path, 15)
    if cause == "an older copy of the table":
        shutil.rmtree(path)
        shutil.copytree(tmp_path / "older", path)
    else:
        DeltaTable(path).restore(1)
        with monkeypatch.context() as patch:
            patch.setattr("spark_sink.sink.rewind.delta_rewind._rewind_quarantine", _crash)
            with pytest.raises(KeyboardInterrupt):
                rewind(path, apply=True)
    assert positions(path, "g") == {("t", 0): 15, ("t", 1): 15}
    with pytest.raises(TableError, match=r"it has records of t/[01] up to offset 25.* `azimuth rewind .* --apply`"):
        _commit(path, 15)
    told: list[str] = []
    assert rewind(path, tell=told.append) == rewind(path, apply=True, tell=told.append) == []
    assert [text.split(", because")[0].split(": ")[1] for text in told] == [
        f"2 bad records from the new positions on {gone} removed from it" for gone in ("would be", "were")
    ]
    assert landed_offsets(quarantine_of(path)) == [5, 5]
    _commit(path, 15)
    assert sorted(landed_offsets(path) + landed_offsets(quarantine_of(path))) == sorted([*range(5, 25)] * 2)


def test_a_writer_that_runs_through_a_rewind_is_refused_until_the_rewind_is_finished(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It compared the two long ago, so it would name bad rows that the quarantine, still ahead, never adds."""
    path = str(tmp_path / "table")
    kept = _tables(path)
    for begin in (0, 10, 20):
        _commit(path, begin, kept)
    DeltaTable(path).restore(1)
    with monkeypatch.context() as patch:
        patch.setattr("spark_sink.sink.rewind.delta_rewind._rewind_quarantine", _crash)
        with pytest.raises(KeyboardInterrupt):
            rewind(path, apply=True)
    with pytest.raises(TableError, match="set the positions back while this process was running"):
        _commit(path, 10, kept)
    with pytest.raises(TableError, match=r"it has records of t/[01] up to offset 30"):
        _commit(path, 10, kept)
    rewind(path, apply=True)
    with pytest.raises(TableError, match="quarantine: `azimuth rewind` set the positions back"):
        _commit(path, 10, kept)
    for begin in (10, 20):
        _commit(path, begin, kept)
    assert sorted(landed_offsets(path) + landed_offsets(quarantine_of(path))) == sorted([*range(30)] * 2)


@pytest.mark.parametrize("writer", ["an agent", "another program"])
@pytest.mark.parametrize("step", ["_add_named", "bring_back", "_set_positions"])
def test_a_commit_during_a_rewind_makes_it_fail(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, step: str, writer: str
) -> None:
    """The rows were read before it: the rewind would set the position below rows of an agent, or leave a hole."""
    path = str(tmp_path / "table")
    kept = _tables(path)
    for begin in (0, 10, 20):
        _commit(path, begin, kept)
    DeltaTable(path).delete('"offset" >= 20')
    real = getattr(delta_rewind, step)

    def meanwhile(*given: object) -> None:
        monkeypatch.undo()
        if writer == "an agent":
            _commit(path, 30, kept)
        else:
            DeltaTable(path).delete('"offset" >= 10')
        real(*given)

    monkeypatch.setattr(delta_rewind, step, meanwhile)
    end = 40 if writer == "an agent" else 30
    with pytest.raises(TableError, match=r"the positions were not set: .*Stop the agents, and run the command again"):
        rewind(path, apply=True)
    assert positions(path, "g") == {("t", 0): end, ("t", 1): end}
    assert landed_offsets(quarantine_of(path)) == sorted([*range(5, end, 10)] * 2)


def _crash(*_: object) -> None:
    raise KeyboardInterrupt


def test_a_log_that_went_back_is_refused_by_a_running_writer(tmp_path: Path) -> None:
    """An older copy was put in the table's place."""
    path = str(tmp_path / "table")
    kept = _tables(path)
    _commit(path, 0, kept)
    shutil.copytree(path, tmp_path / "copy")
    for begin in (10, 20):
        _commit(path, begin, kept)
    shutil.rmtree(path)
    (tmp_path / "copy").rename(path)
    with pytest.raises(TableError, match="the log went back from version 2 to 1"):
        _commit(path, 30, kept)


def test_the_command_says_what_it_would_do_and_does_it_when_told(tmp_path: Path) -> None:
    """A dry run first."""
    path = str(tmp_path / "table")
    for begin in (0, 10):
        _commit(path, begin)
    DeltaTable(path).restore(1)
    if not any(command.name == "rewind" for command in app.registered_commands):
        register(app)
    run = CliRunner().invoke
    for _ in range(2):
        shown = run(app, ["rewind", path])
        assert "t/0: 20 -> 10" in shown.output
        assert "2 positions are ahead of the rows" in shown.output
    assert "2 positions were set back" in run(app, ["rewind", path, "--apply"]).output
    assert "no position is ahead of the rows; --apply is needed only after" in run(app, ["rewind", path]).output
    assert run(app, ["rewind", path, "--apply"]).output == f"{path}: no position was set back\nstart the agents again\n"
    assert run(app, ["rewind", path, "--json"]).output == "[]\n"


@pytest.mark.parametrize("group", [None, "g"])
def test_a_quarantine_without_its_table_is_emptied(tmp_path: Path, group: str | None) -> None:
    """The table was removed and recreated: no group has a position in it, and agents refuse the old quarantine."""
    path = str(tmp_path / "table")
    _commit(path, 0)
    shutil.rmtree(path)
    with pytest.raises(TableError, match=f"`azimuth rewind {path} --apply` takes out the records"):
        _commit(path, 0)
    assert rewind(path, group, apply=True) == []
    assert landed_offsets(quarantine_of(path)) == []
    _commit(path, 0)
    assert landed_offsets(quarantine_of(path)) == [5, 5]
    assert verify(path).ok
