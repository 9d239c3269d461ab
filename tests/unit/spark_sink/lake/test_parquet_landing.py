"""Data files, and their statistics, with which readers skip files."""

import json
import subprocess
import sys
from pathlib import Path

import pyarrow as pa
import pytest
from deltalake import DeltaTable

from spark_sink.fetch.raw_columns import arrow_schema
from spark_sink.lake.delta_table import DeltaLakeTable
from spark_sink.lake.parquet_landing import Landing
from spark_sink.lake.table_storage import filesystem
from spark_sink.ranges.batch_offset import Offset, Range
from spark_sink.sink.commit_by_compare_and_swap import Batch, commit

SCHEMA = arrow_schema(headers=False)
SECOND = 1_700_000_000_000_000
YEAR_10000 = 253_402_300_800_000_000


def land(path: Path, times: list[int | None]) -> str:
    """Commit a row for each time; returns the statistics of its file."""
    landing = Landing(filesystem(str(path), make=True), SCHEMA)
    rows = [{"topic": "t", "partition": 0, "offset": offset, "timestamp": at} for offset, at in enumerate(times)]
    landing.write(pa.RecordBatch.from_pylist(rows, schema=SCHEMA))
    files = landing.close()
    offset = Offset.of([Range("t", 0, 0, len(times))])
    commit(DeltaLakeTable(str(path), "g"), Batch(offset=offset, files=files, schema=SCHEMA, number=1, agent="a"))
    return files[0].stats


@pytest.mark.parametrize(
    ("times", "bounds"),
    [
        ([SECOND, SECOND + 5], ("2023-11-14T22:13:20.000000Z", "2023-11-14T22:13:20.000005Z")),
        ([SECOND, None], ("2023-11-14T22:13:20.000000Z", "2023-11-14T22:13:20.000000Z")),
        ([None, None], (None, None)),
        ([SECOND, YEAR_10000], ("2023-11-14T22:13:20.000000Z", "9999-12-31T23:59:59.999999Z")),
    ],
    ids=["times", "one missing", "none", "too late to be written"],
)
def test_statistics_are_what_readers_of_delta_expect(
    tmp_path: Path, times: list[int | None], bounds: tuple[str | None, str | None]
) -> None:
    """One value of another type, and delta-rs passes over the whole: it would count no row in the table."""
    stats = json.loads(land(tmp_path, times))
    assert stats["nullCount"] == {"topic": 0, "partition": 0, "offset": 0, "timestamp": times.count(None)}
    assert (stats["minValues"].get("timestamp"), stats["maxValues"].get("timestamp")) == bounds
    assert DeltaTable(str(tmp_path)).count() == len(times)


def test_a_filter_on_a_decoded_column_finds_its_rows(tmp_path: Path) -> None:
    """Files have bounds only of identifying columns; for others delta-rs' datasets would return no rows."""
    schema = pa.schema([*list(SCHEMA)[:4], pa.field("delay", pa.int64())])
    landing = Landing(filesystem(str(tmp_path), make=True), schema)
    keys = {"topic": "t", "partition": 0, "timestamp": SECOND}
    landing.write(pa.RecordBatch.from_pylist([{**keys, "offset": n, "delay": n} for n in range(3)], schema=schema))
    batch = Batch(offset=Offset.of([Range("t", 0, 0, 3)]), files=landing.close(), schema=schema, number=1, agent="a")
    commit(DeltaLakeTable(str(tmp_path), "g"), batch)
    found = DeltaTable(str(tmp_path)).to_pyarrow_table(filters=[("delay", ">=", 1)])
    assert found["delay"].to_pylist() == [1, 2]


_MANY = """
import resource, sys
import pyarrow as pa
from spark_sink.lake.parquet_landing import Landing, Layout
from spark_sink.lake.table_storage import filesystem
resource.setrlimit(resource.RLIMIT_NOFILE, (128, 128))
schema = pa.schema([("topic", pa.string()), ("partition", pa.int32()), ("offset", pa.int64()), ("day", pa.string())])
landing = Landing(filesystem(sys.argv[1], make=True), schema, Layout(partition_columns=("day",)))
for day in range(400):
    row = {"topic": "t", "partition": 0, "offset": day, "day": str(day)}
    landing.write(pa.RecordBatch.from_pylist([row], schema=schema))
print(sum(file.rows for file in landing.close()))
"""


def test_a_batch_may_have_more_partitions_than_a_process_may_open_files(tmp_path: Path) -> None:
    """A backfill of many days opened a file for each at once, failed, and was repeated for ever."""
    done = subprocess.run(
        [sys.executable, "-c", _MANY, str(tmp_path)], capture_output=True, text=True, check=False, timeout=120
    )
    assert (done.returncode, done.stdout) == (0, "400\n"), done.stderr
