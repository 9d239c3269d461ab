"""The rows of an Iceberg table are read in parts, so a table may be larger than the memory."""

from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pytest
from pyiceberg.io import pyarrow as arrow_files
from pyiceberg.table import FileScanTask

from spark_sink.errors import TableError
from spark_sink.lake.iceberg import stored_rows
from spark_sink.lake.iceberg.file_scan import _FileScan
from spark_sink.lake.iceberg.stored_rows import StoredTable, open_stored, open_to_read_later
from tests.iceberg_batches import Writer
from tests.table_kinds import ADDRESS, warehouse


@pytest.mark.parametrize(
    ("most", "groups"), [(1 << 20, [1, 8, 8, 3]), (1, [1] * 20)], ids=["small files", "large files"]
)
def test_few_files_are_in_memory_at_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, most: int, groups: list[int]
) -> None:
    """The library reads all files that it gets, and keeps their rows until they are taken; one is enough for a row."""
    writer = Writer(tmp_path)
    for at in range(20):
        writer.write(at, at + 1)
    monkeypatch.setattr(stored_rows, "_BYTES_AT_ONCE", most)
    read, given = _FileScan.to_record_batches, list[int]()

    def counted(scan: _FileScan, tasks: list[FileScanTask]) -> Iterator[pa.RecordBatch]:
        given.append(len(tasks))
        return read(scan, tasks)

    monkeypatch.setattr(_FileScan, "to_record_batches", counted)
    stored = open_stored(ADDRESS, warehouse(tmp_path))
    assert stored is not None
    rows = pa.Table.from_batches(stored.rows(["offset"]))
    assert sorted(rows["offset"].to_pylist()) == list(range(20))
    assert given == groups


def test_a_row_is_there_before_its_file_is_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A file of millions of rows would be in memory whole, and its first row would come as late as its last."""
    properties = {"write.parquet.row-group-limit": "10"}
    writer = Writer(tmp_path)
    writer.write(0, 1)
    written = open_stored(ADDRESS, warehouse(tmp_path))
    assert written is not None
    rows = pa.Table.from_batches(written.rows(written.table.schema().column_names))
    with written.table.transaction() as changes:
        changes.set_properties(properties)
    written.table.overwrite(pa.concat_tables([rows] * 100))
    project, made = arrow_files._to_requested_schema, list[int]()  # what makes each batch of the file's

    def counted(*args: object, **options: object) -> pa.RecordBatch:
        batch = project(*args, **options)  # type: ignore[arg-type]  # passed on
        made.append(batch.num_rows)
        return batch

    monkeypatch.setattr(arrow_files, "_to_requested_schema", counted)
    batches = written.rows(["offset"])
    next(batches)
    assert made == [10]
    assert 10 + sum(batch.num_rows for batch in batches) == 100


@pytest.mark.parametrize("times", [1, 99], ids=["once", "each time"])
def test_a_snapshot_that_expires_while_it_is_opened_is_opened_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, times: int
) -> None:
    """With `compactEvery=1` one commit is enough for that; the newest snapshot is as good."""
    writer = Writer(tmp_path)
    writer.write(0, 1)
    ends = iter(range(2, 2 + times))

    def opened(address: str, storage: dict[str, str]) -> StoredTable | None:
        found = open_stored(address, storage)
        if end := next(ends, 0):
            writer.write(end - 1, end)
            assert found is not None
            snapshot = found.table.current_snapshot()
            assert snapshot is not None
            found.table.io.delete(snapshot.manifest_list)
        return found

    monkeypatch.setattr(stored_rows, "open_stored", opened)
    if times > 1:
        with pytest.raises(TableError, match=r"^lake.raw.events: its snapshots expired 5 times .*compactEvery"):
            open_to_read_later(ADDRESS, warehouse(tmp_path))
        return
    stored = open_to_read_later(ADDRESS, warehouse(tmp_path))
    assert stored is not None
    assert pa.Table.from_batches(stored.rows(["offset"]))["offset"].to_pylist() == [1, 0]


@pytest.mark.parametrize(("written", "place"), [(1, r"part-\w+\.parquet"), (4, r"one of the 2 files read with it")])
def test_a_file_that_is_cut_once_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, written: int, place: str
) -> None:
    """Arrow's error has no name, and a second reading finds every file whole."""
    writer = Writer(tmp_path)
    for at in range(written):
        writer.write(at, at + 1)
    read, groups = _FileScan.to_record_batches, iter(range(written))

    def cut(scan: _FileScan, tasks: list[FileScanTask]) -> Iterator[pa.RecordBatch]:
        if next(groups, None) == min(1, written - 1):  # the first group has one file, the second the others
            raise pa.ArrowInvalid("Parquet magic bytes not found in footer")
        return read(scan, tasks)

    monkeypatch.setattr(_FileScan, "to_record_batches", cut)
    stored = open_stored(ADDRESS, warehouse(tmp_path))
    assert stored is not None
    with pytest.raises(TableError, match=rf"^lake.raw.events: cannot be read: file:.*{place}: ArrowInvalid: Parquet"):
        list(stored.rows(["offset"]))
