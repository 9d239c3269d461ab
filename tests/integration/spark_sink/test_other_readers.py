"""Other engines read the tables that a query has written: Polars, DuckDB and Spark, in both formats."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, Final

import duckdb
import polars as pl
import pyarrow as pa
import pytest
from deltalake import DeltaTable

from spark_sink.formats.bad_values_quarantined import COLUMN, REASON
from spark_sink.ranges.batch_offset import Offset, Range
from spark_sink.sink.query_tables import Tables
from spark_sink.sink.rows_by_table import Sorting
from spark_sink.sink.sink_options import SinkOptions
from tests.integration.spark_sink.tables_by_spark import SparkReader
from tests.table_kinds import ADDRESS, peer, warehouse

pytestmark = pytest.mark.integration

FIRST: Final = pa.schema(
    [
        ("topic", pa.string()),
        ("partition", pa.int32()),
        ("offset", pa.int64()),
        ("timestamp", pa.timestamp("us", tz="UTC")),
        ("value", pa.binary()),
        ("place", pa.struct([("x", pa.int64())])),
        ("stops", pa.list_(pa.struct([("x", pa.int64())]))),
    ]
)
_STOP: Final = pa.struct([("gate", pa.string()), ("x", pa.int64())])
SECOND: Final = pa.schema(
    [*FIRST.remove(6).remove(5), ("place", _STOP), ("stops", pa.list_(_STOP)), ("gate", pa.string())]
)
BEGIN: Final = datetime(2026, 1, 31, 23, tzinfo=UTC)
BATCHES, ROWS, COMPACT_EVERY = 40, 2, 8

Row = tuple[Any, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Lake:
    """A table of one format.

    Attributes:
        root: folder with the table, or with the warehouse.
        options: of the sink.
        files: how many data files it has.
    """

    root: Path
    options: Mapping[str, str]
    files: Callable[[], int]


def _delta(root: Path) -> Lake:
    path = str(root / "table")
    return Lake(
        root=root,
        options={"path": path, "partitionBy": "topic"},
        files=lambda: len(DeltaTable(path).file_uris()),
    )


def _iceberg(root: Path) -> Lake:
    terms = {"partitionBy": "topic, bucket(2, partition), day(timestamp)"}
    return Lake(
        root=root,
        options={"path": ADDRESS, **warehouse(root), **terms},
        files=lambda: len(list(peer(root).scan().plan_files())),
    )


@pytest.fixture(scope="module", params=[_delta, _iceberg], ids=["delta", "iceberg"])
def lake(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Lake:
    """A table with partitions, compacted again and again; half of its rows are older than newer columns."""
    made: Lake = request.param(tmp_path_factory.mktemp("lake"))
    more = {"mergeSchema": "true", "compactEvery": str(COMPACT_EVERY), "kafka.group.id": "g", "checkpointLocation": "c"}
    options = SinkOptions.parse({**made.options, **more})
    tables = Tables(options)
    for number in range(BATCHES):
        if number == BATCHES // 2:
            tables = Tables(options)  # a restart, with another schema
        _commit(tables, options, number)
    assert made.files() < BATCHES, "a batch has two files or more, and small ones were joined"
    return made


def _commit(tables: Tables, options: SinkOptions, number: int) -> None:
    """Commit a batch of one row an hour, from topics by turns."""
    columns = SECOND if number >= BATCHES // 2 else FIRST
    rows = [dict(zip(SECOND.names, row, strict=True)) for row in _rows() if row[2] // ROWS == number]
    landed = columns.append(pa.field(COLUMN, REASON))
    sorting = Sorting(options, landed, "run")
    sorting.write(pa.RecordBatch.from_pylist(rows, schema=landed))
    ranges = [Range(topic, 0, number * ROWS, (number + 1) * ROWS) for topic in ("a", "b")]
    tables.commit(Offset.of(ranges), sorting.close(), columns, number)


def _rows() -> list[Row]:
    """Return the rows as they were produced; those of before the column and the fields have null in them."""
    return [_row(topic, at) for topic in ("a", "b") for at in range(BATCHES * ROWS)]


def _row(topic: str, at: int) -> Row:
    gate = f"g{at}" if at >= BATCHES * ROWS // 2 else None
    stop = {"x": at, "gate": gate}
    return topic, 0, at, BEGIN + timedelta(hours=at), b"%d" % at, stop if at % 3 else None, [stop], gate


@pytest.fixture(scope="module")
def spark(tmp_path_factory: pytest.TempPathFactory) -> SparkReader:
    """A Spark with the formats' own runtimes."""
    return SparkReader(tmp_path_factory.mktemp("spark"))


def test_polars_reads_each_row_once(lake: Lake, monkeypatch: pytest.MonkeyPatch) -> None:
    """As a whole, and with a filter that it pushes down to partitions and files."""
    monkeypatch.setenv("POLARS_ICEBERG_PLANNER", "pyiceberg")  # its own one is another package
    path = lake.options["path"]
    frame = pl.scan_iceberg(peer(lake.root)) if path == ADDRESS else pl.scan_delta(path)
    assert sorted(frame.select(SECOND.names).collect().rows()) == sorted(_rows())
    late = (pl.col("timestamp") >= BEGIN + timedelta(days=1)) & (pl.col("topic") == "a") & (pl.col("partition") == 0)
    found = frame.filter(late).select(SECOND.names).collect().rows()
    assert sorted(found) == [row for row in _rows() if row[0] == "a" and row[3] >= BEGIN + timedelta(days=1)]
    if path != ADDRESS:
        assert sorted(pl.read_delta(path).select(SECOND.names).rows()) == sorted(_rows())


def test_duckdb_reads_each_row_once(lake: Lake) -> None:
    """By the library of each format: DuckDB's own extensions are a download."""
    if lake.options["path"] == ADDRESS:
        connection = peer(lake.root).scan().to_duckdb("flights")
    else:
        connection = duckdb.connect()
        connection.register("flights", DeltaTable(lake.options["path"]).to_pyarrow_dataset())
    connection.execute("SET TimeZone = 'UTC'")
    names = ", ".join(f'"{name}"' for name in SECOND.names)
    found = connection.execute(f"SELECT {names} FROM flights").fetchall()  # noqa: S608 -- ours
    assert sorted(found) == sorted(_rows())
    [(count, gates)] = connection.execute("SELECT count(*), count(gate) FROM flights WHERE topic = 'b'").fetchall()
    assert (count, gates) == (BATCHES * ROWS, BATCHES * ROWS // 2)


@pytest.mark.slow
@pytest.mark.matrix
def test_spark_reads_each_row_once(lake: Lake, spark: SparkReader) -> None:
    """As a whole, and with a filter on two partition columns."""
    path = lake.options["path"]
    name = path.removeprefix("iceberg://") if path == ADDRESS else f"delta.`{path}`"
    columns = "topic, partition, offset, timestamp, cast(value as string) as value, place, stops, gate"
    found = spark.query(
        lake.root / "warehouse",
        f"select {columns} from {name}",  # noqa: S608 -- ours
        f"select count(*) as rows from {name} where topic = 'a' and timestamp < '2026-02-01T00:00:00Z'",  # noqa: S608 -- ours
    )
    *rows, night = found
    as_produced = [
        (
            *(row["topic"], row["partition"], row["offset"], _time(row["timestamp"]), row["value"].encode()),
            _stop(row.get("place")),
            [_stop(one) for one in row["stops"]],
            row.get("gate"),
        )
        for row in rows
    ]
    assert sorted(as_produced) == sorted(_rows())
    assert night["rows"] == 1


def _stop(value: dict[str, Any] | None) -> dict[str, Any] | None:
    """Return a struct with its nulls, which Spark's JSON leaves out."""
    return None if value is None else {"gate": None, **value}


def _time(text: str) -> datetime:
    return datetime.fromisoformat(text)
