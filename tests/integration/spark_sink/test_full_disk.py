"""A table whose disk is full: one sentence, nothing half-written, and on with the same batch when there is room."""

import os
import re
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pytest

from spark_sink.errors import TableError
from spark_sink.fetch.raw_columns import arrow_schema
from spark_sink.lake.delta_table import DeltaLakeTable
from spark_sink.lake.holes_and_doubles import verify
from spark_sink.lake.parquet_landing import Landing
from spark_sink.lake.table_storage import filesystem
from spark_sink.ranges.batch_offset import Offset, Range
from spark_sink.sink.commit_by_compare_and_swap import Batch, commit
from tests.integration.spark_sink.small_disk import small_disk

pytestmark = pytest.mark.integration

SCHEMA = arrow_schema(headers=False)
RECORDS = 40


@pytest.fixture
def disk(tmp_path: Path) -> Iterator[Path]:
    """A file system of 512 kB."""
    with small_disk(tmp_path, size_kb=512) as found:
        yield found


def _bring(table: DeltaLakeTable, path: Path, begin: int) -> None:
    rows = [
        {"topic": "t", "partition": 0, "offset": one, "value": os.urandom(1000)}
        for one in range(begin, begin + RECORDS)
    ]
    landing = Landing(filesystem(str(path), make=True), SCHEMA)
    landing.write(pa.RecordBatch.from_pylist(rows, schema=SCHEMA))
    offset = Offset.of([Range("t", 0, begin, begin + RECORDS)])
    commit(table, Batch(offset=offset, files=landing.close(), schema=SCHEMA), sleep=lambda _: None)


def _fill(table: DeltaLakeTable, path: Path, brought: list[int]) -> None:
    for begin in range(0, 100 * RECORDS, RECORDS):
        _bring(table, path, begin)
        brought.append(begin)


def test_a_full_disk_stops_with_a_sentence_and_loses_nothing(disk: Path) -> None:
    """Wherever it runs full: in a data file, in the log, or in a checkpoint of the log."""
    table = DeltaLakeTable(str(disk / "table"), "g")
    brought: list[int] = []
    with pytest.raises(TableError, match=f"^{re.escape(str(disk))}/table.*No space left on device") as error:
        _fill(table, disk / "table", brought)
    begin = len(brought) * RECORDS
    assert "\n" not in str(error.value)
    report = verify(str(disk / "table"))
    assert (report.rows, report.ok) == (begin, True)
    subprocess.run(["/bin/mount", "-o", "remount,size=2m", str(disk)], check=True)
    for _ in range(3):
        _bring(table, disk / "table", begin)
        begin += RECORDS
    report = verify(str(disk / "table"))
    assert (report.rows, report.ok) == (begin, True)
