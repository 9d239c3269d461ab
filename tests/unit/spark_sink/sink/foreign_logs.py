"""Batches of ten offsets into a table, and log entries that other writers would append."""

import json
from collections.abc import Callable
from pathlib import Path

import pyarrow as pa

from spark_sink.formats.bad_values_quarantined import COLUMN, REASON
from spark_sink.lake.parquet_landing import normal_schema
from spark_sink.ranges.batch_offset import Offset, Range
from spark_sink.sink.query_tables import Tables
from spark_sink.sink.rows_by_table import Sorting
from spark_sink.sink.sink_options import SinkOptions

KEYS = [("topic", pa.string()), ("partition", pa.int32()), ("offset", pa.int64()), ("value", pa.binary())]
SCHEMA = pa.schema([*KEYS, (COLUMN, REASON)])
FOREIGN = {"commitInfo": {"timestamp": 1, "operation": "STREAMING UPDATE", "engineInfo": "Apache-Spark/4.0"}}


def commit(path: Path, begin: int, tables: Tables | None = None) -> Tables:
    """Ten offsets, of which the sixth is bad; by a new process, or by one that goes on."""
    options = SinkOptions.parse(
        {"path": str(path), "kafka.group.id": "g", "checkpointLocation": "c", "compactEvery": "0"}
    )
    sorting = Sorting(options, normal_schema(SCHEMA), "run")
    bad = {COLUMN: {"error_class": "Bad", "error_text": "x", "value": b"v"}}
    rows = [
        {"topic": "t", "partition": 0, "offset": one, "value": b"v"} | (bad if one % 10 == 5 else {})
        for one in range(begin, begin + 10)
    ]
    sorting.write(pa.RecordBatch.from_pylist(rows, schema=SCHEMA))
    offset = Offset.of([Range("t", 0, begin, begin + 10)])
    tables = tables or Tables(options)
    tables.commit(offset, sorting.close(), normal_schema(SCHEMA), 0)
    return tables


def log_folder(table: Path) -> Path:
    """The folder of the log."""
    return table / "_delta_log"


def commits(table: Path) -> list[Path]:
    """The entries of the log."""
    return sorted(file for file in log_folder(table).glob("*.json") if file.stem.isdigit())


def append(*actions: object) -> Callable[[Path], None]:
    """Append an entry."""

    def run(table: Path) -> None:
        entry = log_folder(table) / f"{int(commits(table)[-1].stem) + 1:020}.json"
        entry.write_text("\n".join(json.dumps(one) for one in actions) + "\n")

    return run


def protocol(reader: int, writer: int, **features: list[str]) -> Callable[[Path], None]:
    """Append an entry that changes the protocol."""
    return append(FOREIGN, {"protocol": {"minReaderVersion": reader, "minWriterVersion": writer, **features}})
