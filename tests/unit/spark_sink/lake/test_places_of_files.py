"""Errors of a task's file in an object store name the table: a task's message is all that its log has."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow.fs as pa_fs
import pytest

from spark_sink.errors import TableError
from spark_sink.lake.adopted_files import describe_written
from spark_sink.lake.delta_table import DeltaLakeTable
from spark_sink.lake.parquet_landing import Landing
from spark_sink.lake.quarantine_reader import file_records
from spark_sink.lake.table_contract import DataFile
from spark_sink.lake.table_storage import _ObjectStore, address_of, filesystem
from spark_sink.ranges.batch_offset import TopicPartition
from spark_sink.sink.spark_written_files import rows_in
from tests.table_kinds import SCHEMA, rows_of

TABLE = "memory:///lake/table"  # delta-rs' own store in memory, one for each client
GONE = DataFile(path="part-1.parquet", size_bytes=1, spans={}, stats="{}", written_ms=0)


def _land(files: pa_fs.FileSystem) -> None:
    landing = Landing(files, SCHEMA)
    landing.write(rows_of(TopicPartition("a", 0), range(3)))
    landing.close()


READS: dict[str, Callable[[], object]] = {
    "a file that another writer made": lambda: describe_written(filesystem(TABLE), GONE.path, SCHEMA.names),
    "a file of Spark's": lambda: rows_in(filesystem(TABLE), GONE.path),
    "a file of the quarantine": lambda: list(file_records(TABLE, GONE, None)),
    "a file to copy": lambda: DeltaLakeTable(TABLE, "g").filtered(GONE, {}),
}


@pytest.mark.parametrize("read", READS)
def test_a_file_that_cannot_be_read_is_named_with_its_table(read: str) -> None:
    """Its path in the table is a random name."""
    with pytest.raises(TableError, match=rf"^{TABLE}/part-1.parquet: "):
        READS[read]()


def test_a_file_that_cannot_be_written_is_named_with_its_table(monkeypatch: pytest.MonkeyPatch) -> None:
    """The store's own error may have neither."""

    def refuse(*_: Any) -> None:
        raise OSError("reset by peer")

    monkeypatch.setattr(_ObjectStore, "open_output_stream", refuse)
    with pytest.raises(TableError, match=rf"^{TABLE}/part-.*\.parquet: the table's storage refused: reset by peer"):
        _land(filesystem(TABLE))


def test_a_file_of_another_size_is_named_with_its_table(monkeypatch: pytest.MonkeyPatch) -> None:
    """A proxy that cuts what it passes on."""

    def shorter(_: Any, paths: list[str]) -> list[pa_fs.FileInfo]:
        return [pa_fs.FileInfo(one, pa_fs.FileType.File, size=7) for one in paths]

    monkeypatch.setattr(_ObjectStore, "get_file_info", shorter)
    with pytest.raises(TableError, match=rf"^{TABLE}/part-.*\.parquet: \d+ bytes were written, and 7 are stored"):
        _land(filesystem(TABLE))


def test_the_address_of_a_file_on_this_machine_is_its_path(tmp_path: Path) -> None:
    """Also below a folder of any other file system of pyarrow's; a file system without an address has only paths."""
    assert address_of(filesystem(str(tmp_path)), "a/b.parquet") == f"{tmp_path}/a/b.parquet"
    assert address_of(pa_fs.LocalFileSystem(), "/a/b.parquet") == "/a/b.parquet"
