"""Spark reads the Iceberg tables that were written here, with its own catalog and readers."""

from collections import Counter
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pyarrow as pa
import pytest

from spark_sink.lake.iceberg.iceberg_table import IcebergTable
from spark_sink.lake.iceberg.partition_terms import parse_terms
from spark_sink.lake.table_settings import TableSettings
from spark_sink.ranges.batch_offset import Offset, Range, TopicPartition
from spark_sink.sink.commit_by_compare_and_swap import Batch, commit
from tests.integration.spark_sink.tables_by_spark import SparkReader
from tests.table_kinds import ADDRESS, SCHEMA, rows_of, warehouse

pytestmark = [pytest.mark.integration, pytest.mark.slow, pytest.mark.matrix]

A = TopicPartition("a", 0)
FIRST = SCHEMA.append(pa.field("timestamp", pa.timestamp("us", tz="UTC")))
SECOND = FIRST.append(pa.field("gate", pa.string()))
BEGIN = datetime(2026, 1, 31, 23, tzinfo=UTC)
BATCHES, ROWS = 40, 2


def _write(table: IcebergTable, begin: int, columns: pa.Schema) -> None:
    """Commit a batch of one row an hour."""
    offsets = range(begin, begin + ROWS)
    times = pa.array([BEGIN + timedelta(hours=at) for at in offsets], FIRST.field("timestamp").type)
    more = [pa.array([f"g{at}" for at in offsets])] * ("gate" in columns.names)
    landing = table.landing(columns)
    landing.write(pa.RecordBatch.from_arrays([*rows_of(A, offsets).columns, times, *more], schema=columns))
    files = landing.close()
    commit(table, Batch(offset=Offset.of([Range("a", 0, begin, begin + ROWS)]), files=files, schema=columns))


def test_spark_reads_what_was_committed_compacted_and_evolved(tmp_path: Path) -> None:
    """Each row once, by partitions of all kinds; rows of before a column was added have null there."""
    spark = SparkReader(tmp_path)
    terms = parse_terms("topic, bucket(2, partition), day(timestamp)")
    table = IcebergTable(ADDRESS, "g", warehouse(tmp_path), TableSettings(terms=terms, merge_schema=True))
    for number in range(BATCHES):
        _write(table, number * ROWS, SECOND if number >= BATCHES // 2 else FIRST)
        table.compact(16)
    name = ADDRESS.removeprefix("iceberg://")
    found = spark.query(
        tmp_path / "warehouse",
        f"select topic, partition, offset, cast(value as string) as value, timestamp, gate from {name}",  # noqa: S608 -- ours
        f"select count(*) as at_night from {name} where timestamp < '2026-02-01T00:00:00Z'",  # noqa: S608 -- ours
        f"select operation from {name}.snapshots where operation = 'replace' limit 1",  # noqa: S608 -- ours
        f"select max(file_count) as files from {name}.partitions",  # noqa: S608 -- ours
    )
    rows, (at_night, replaced, files) = found[:-3], found[-3:]
    assert Counter(row["offset"] for row in rows) == Counter(range(BATCHES * ROWS))
    for row in rows:
        time = BEGIN + timedelta(hours=row["offset"])
        gate = f"g{row['offset']}" if row["offset"] >= BATCHES * ROWS // 2 else None
        assert (row["topic"], row["partition"], row["value"], row.get("gate")) == ("a", 0, "v", gate)
        assert datetime.fromisoformat(row["timestamp"]) == time
    assert (at_night["at_night"], replaced["operation"]) == (1, "replace")
    assert files["files"] < BATCHES // 2, "small files were joined"
