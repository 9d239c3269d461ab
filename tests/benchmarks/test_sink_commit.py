"""The cost of a commit as a table ages, compared with appends of the same rows by deltalake's own writer."""

import statistics
import time
from importlib.metadata import version
from pathlib import Path

import pyarrow as pa
import pytest
from deltalake import DeltaTable, write_deltalake

from spark_sink.fetch.raw_columns import arrow_schema
from spark_sink.lake.parquet_landing import normal_schema
from spark_sink.ranges.batch_offset import Offset, Range
from spark_sink.sink.query_tables import Tables
from spark_sink.sink.rows_by_table import Sorting
from spark_sink.sink.sink_options import SinkOptions
from tests.benchmarks.lake_report import save

pytestmark = pytest.mark.benchmark

PARTITIONS, ROWS, COMMITS, WINDOW = 100, 10, 600, 100
SCHEMA = normal_schema(arrow_schema(headers=False))


def _rows(number: int) -> pa.RecordBatch:
    begin = number * ROWS
    rows = [
        {"topic": "t", "partition": partition, "offset": offset, "value": b"v" * 100}
        for partition in range(PARTITIONS)
        for offset in range(begin, begin + ROWS)
    ]
    return pa.RecordBatch.from_pylist(rows, schema=SCHEMA)


def _sink(path: Path, every: int) -> tuple[Tables, SinkOptions]:
    options = SinkOptions.parse(
        {"path": str(path), "kafka.group.id": "g", "checkpointLocation": "c", "compactEvery": str(every)}
    )
    return Tables(options), options


def _commit(tables: Tables, options: SinkOptions, number: int) -> float:
    begun = time.perf_counter()
    sorting = Sorting(options, SCHEMA, "run")
    sorting.write(_rows(number))
    offset = Offset.of(Range("t", one, number * ROWS, number * ROWS + ROWS) for one in range(PARTITIONS))
    tables.commit(offset, sorting.close(), SCHEMA, number)
    return time.perf_counter() - begun


def _append(path: Path, number: int) -> float:
    begun = time.perf_counter()
    write_deltalake(str(path), pa.Table.from_batches([_rows(number)]), mode="append")
    return time.perf_counter() - begun


def test_a_commit_costs_the_same_as_the_table_ages(tmp_path: Path) -> None:
    """Interleaved: the sink with compaction, without, and appends by deltalake, which keep no positions."""
    joined, loose = _sink(tmp_path / "joined", 100), _sink(tmp_path / "loose", 0)
    taken: dict[str, list[float]] = {"sink": [], "sink without compaction": [], "write_deltalake": []}
    for number in range(COMMITS):
        taken["sink"].append(_commit(*joined, number))
        taken["sink without compaction"].append(_commit(*loose, number))
        taken["write_deltalake"].append(_append(tmp_path / "peer", number))
    result = {
        "deltalake": version("deltalake"),
        "commits": COMMITS,
        "partitions": PARTITIONS,
        "rows_per_commit": PARTITIONS * ROWS,
        "files_at_the_end": {name: len(DeltaTable(str(tmp_path / name)).file_uris()) for name in ("joined", "loose")},
        "median_ms": {
            name: {
                f"first {WINDOW}": round(statistics.median(times[:WINDOW]) * 1000, 2),
                f"last {WINDOW}": round(statistics.median(times[-WINDOW:]) * 1000, 2),
                "longest": round(max(times) * 1000, 2),
            }
            for name, times in taken.items()
        },
    }
    save("commit to an aged Delta table", result)
