"""Compaction is a commit like every other: it changes the files that it saw, or nothing."""

import time
from collections.abc import Callable, Iterator
from pathlib import Path
from types import SimpleNamespace

import pyarrow as pa
import pytest
from deltalake import DeltaTable, write_deltalake

from spark_sink.lake import vacuumed_files
from spark_sink.lake.compaction import Compaction
from spark_sink.lake.delta_log_reader import TransactionLog
from spark_sink.lake.delta_table import DeltaLakeTable
from spark_sink.lake.file_rewrite import Rewrite
from tests.landed_offsets import landed_offsets
from tests.unit.spark_sink.lake.deletion_vectors import delete_by_vector
from tests.unit.spark_sink.sink.foreign_logs import commits

SCHEMA = pa.schema([("topic", pa.string()), ("partition", pa.int32()), ("offset", pa.int64()), ("value", pa.binary())])


def _append(path: str, first: int, more: str | None = None) -> None:
    columns = [["t"] * 5, [first % 2] * 5, list(range(first, first + 5)), [b"v"] * 5]
    arrays = [pa.array(one, field.type) for one, field in zip(columns, SCHEMA, strict=True)]
    table = pa.Table.from_arrays(arrays, schema=SCHEMA)
    if more is not None:
        table = table.append_column("more", pa.array([more] * 5))
    write_deltalake(path, table, mode="append", schema_mode="merge" if more is not None else None)


@pytest.fixture
def table(tmp_path: Path) -> str:
    """Eight files of five rows."""
    path = str(tmp_path / "table")
    for number in range(8):
        _append(path, number * 5)
    return path


def _compaction(path: str) -> tuple[Compaction, DeltaTable]:
    made = Compaction(path, TransactionLog(path))
    made._compacted = 0  # as if it had been there when the last time was
    return made, DeltaTable(path)


def _interrupt(monkeypatch: pytest.MonkeyPatch, meanwhile: Callable[[], object]) -> None:
    """Let something happen once, after the rows were read and before the commit: the process was stopped there."""
    commit, pending = Compaction._commit, [meanwhile]

    def slow(self: Compaction, handle: DeltaTable, rewrites: list[Rewrite], number: int) -> bool:
        if pending:
            pending.pop()()
        return commit(self, handle, rewrites, number)

    monkeypatch.setattr(Compaction, "_commit", slow)


def test_small_files_become_one_with_the_same_rows(table: str) -> None:
    """Statistics are kept, and no row changes."""
    made, handle = _compaction(table)
    assert made.run(handle, 2)
    found = pa.table(DeltaTable(table).get_add_actions(flatten=True)).to_pylist()
    assert [(one["num_records"], one["min.offset"], one["max.offset"]) for one in found] == [(40, 0, 39)]
    assert landed_offsets(table) == list(range(40))
    assert '"dataChange":true' not in max((Path(table) / "_delta_log").glob("*.json")).read_text()


CHANGES: dict[str, Callable[[str], object]] = {
    "OPTIMIZE": lambda path: DeltaTable(path).optimize.compact(),
    "a compaction of ours": lambda path: _late(path).run(DeltaTable(path), 1),
    "DELETE": lambda path: DeltaTable(path).delete("offset = 7"),
    "RESTORE": lambda path: DeltaTable(path).restore(3),
    "overwrite": lambda path: write_deltalake(path, SCHEMA.empty_table(), mode="overwrite"),
}


def _late(path: str) -> Compaction:
    """A writer that ignores the expired claim of the other."""
    made, _ = _compaction(path)
    made._claim = lambda *_: True  # type: ignore[method-assign]  # as it is many commits later
    return made


@pytest.mark.parametrize("change", CHANGES)
def test_a_compactor_that_goes_on_late_changes_nothing(
    table: str, monkeypatch: pytest.MonkeyPatch, change: str
) -> None:
    """It was stopped after it had read the rows, and its files are not the table's any more."""
    made, handle = _compaction(table)
    expected: list[list[int]] = []

    def meanwhile() -> None:
        CHANGES[change](table)
        expected.append(landed_offsets(table))

    _interrupt(monkeypatch, meanwhile)
    assert not made.run(handle, 2)
    assert landed_offsets(table) == expected[0]


def test_a_compactor_that_goes_on_late_brings_no_deleted_row_back(table: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """A deletion vector leaves the file's path as it is: the file was read before with all rows, and is still there."""
    made, handle = _compaction(table)
    entries: list[int] = []

    def meanwhile() -> None:
        delete_by_vector(table)
        entries.append(len(commits(Path(table))))

    _interrupt(monkeypatch, meanwhile)
    assert not made.run(handle, 2)
    assert [len(commits(Path(table)))] == entries


def test_a_compactor_whose_files_vacuum_removed_changes_nothing(table: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """It was stopped for longer than VACUUM's retention, with all of the small files still in the table."""
    made, handle = _compaction(table)

    def meanwhile() -> None:
        DeltaTable(table).vacuum(retention_hours=0, enforce_retention_duration=False, dry_run=False, full=True)
        now = time.time()
        monkeypatch.setattr(vacuumed_files, "time", SimpleNamespace(time=lambda: now + 8 * 24 * 3600))

    _interrupt(monkeypatch, meanwhile)
    assert not made.run(handle, 2)
    assert landed_offsets(table) == list(range(40))


def test_appends_meanwhile_do_not_stop_it(table: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Agents continue to commit; their files do not change."""
    made, handle = _compaction(table)

    def meanwhile() -> None:
        for first in (40, 45, 50):
            _append(table, first)

    _interrupt(monkeypatch, meanwhile)
    assert made.run(handle, 2)
    assert landed_offsets(table) == list(range(55))
    assert len(DeltaTable(table).file_uris()) == 4


def test_files_of_different_columns_stay_apart(tmp_path: Path) -> None:
    """A column that was added later is not made up for older rows."""
    path = str(tmp_path / "table")
    for number in range(4):
        _append(path, number * 5, "x" if number > 1 else None)
    made, handle = _compaction(path)
    assert made.run(handle, 2)
    rows = DeltaTable(path).to_pyarrow_table()
    assert (rows.num_rows, rows["more"].null_count, len(DeltaTable(path).file_uris())) == (20, 10, 2)


def test_partitions_stay_apart(tmp_path: Path) -> None:
    """Their values are in the log, not in the files."""
    path = str(tmp_path / "table")
    table = pa.table({"topic": ["a", "b"], "partition": pa.array([0, 1], pa.int32()), "offset": [1, 2]})
    for _ in range(3):
        write_deltalake(path, table, mode="append", partition_by=["topic", "partition"])
    before = sorted(DeltaTable(path).to_pyarrow_table().to_pylist(), key=str)
    made, handle = _compaction(path)
    assert made.run(handle, 2)
    assert sorted(DeltaTable(path).to_pyarrow_table().to_pylist(), key=str) == before
    assert len(DeltaTable(path).file_uris()) == 2


def test_a_table_with_a_feature_that_is_not_known_is_left_alone(table: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Deletion vectors say which rows of a file are gone; joining the files would bring them back."""
    protocol = DeltaTable.protocol

    def featured(self: DeltaTable) -> object:
        return protocol(self)._replace(reader_features=["deletionVectors"], writer_features=["deletionVectors"])

    monkeypatch.setattr(DeltaTable, "protocol", featured)
    made, handle = _compaction(table)
    assert not made.run(handle, 2)
    assert len(DeltaTable(table).file_uris()) == 8


def test_an_error_of_ours_does_not_fail_the_batch_before(table: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """The rows are committed; small files can wait."""
    log = Path(table) / "_delta_log"

    def unreadable(self: TransactionLog, version: int | None = None) -> Iterator[None]:
        del self, version
        from spark_sink.errors import TableError  # noqa: PLC0415 -- raised here only

        raise TableError(f"{log}: the table's log cannot be read")

    handle = DeltaLakeTable(table, "g")
    handle.refresh()
    handle._compaction._compacted = 0
    monkeypatch.setattr(TransactionLog, "refresh", unreadable)
    assert not handle.compact(2)
