"""The rows of an Iceberg table are read in parts, so a table may be larger than the memory."""

from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pytest
from pyiceberg.io.pyarrow import ArrowScan
from pyiceberg.table import FileScanTask

from spark_sink.lake.iceberg import stored_rows
from spark_sink.lake.iceberg.stored_rows import open_stored
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
    read, given = ArrowScan.to_record_batches, list[int]()

    def counted(scan: ArrowScan, tasks: list[FileScanTask]) -> Iterator[pa.RecordBatch]:
        given.append(len(tasks))
        return read(scan, tasks)

    monkeypatch.setattr(ArrowScan, "to_record_batches", counted)
    stored = open_stored(ADDRESS, warehouse(tmp_path))
    assert stored is not None
    rows = pa.Table.from_batches(stored.rows(["offset"]))
    assert sorted(rows["offset"].to_pylist()) == list(range(20))
    assert given == groups
