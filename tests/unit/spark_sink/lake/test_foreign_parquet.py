"""Times that Spark stored as INT96 stay the same in every file that we write from them."""

from datetime import UTC, datetime
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from deltalake import DeltaTable, write_deltalake

from spark_sink.formats.variant_type import VARIANT
from spark_sink.lake.compaction import Compaction
from spark_sink.lake.delta_log_reader import TransactionLog
from spark_sink.lake.double_row_removal import repair
from spark_sink.lake.foreign_parquet import with_times_of
from spark_sink.source.union_read.stored_tables import open_tables
from tests.int96_files import rewrite_as_spark

UTC_TIME, LOCAL_TIME = pa.timestamp("us", tz="UTC"), pa.timestamp("us")
# Nanoseconds in 64 bits begin in 1677 and end in 2262.
TIMES = [datetime(1, 1, 1), datetime(2026, 1, 2, 3, 4, 5, 678901), datetime(9999, 12, 31, 23, 59, 59, 999999)]  # noqa: DTZ001 -- a time without a zone
SCHEMA = pa.schema(
    [
        ("topic", pa.string()),
        ("partition", pa.int32()),
        ("offset", pa.int64()),
        ("timestamp", UTC_TIME),
        ("local", LOCAL_TIME),
        (
            "nested",
            pa.struct([("at", UTC_TIME), ("all", pa.list_(UTC_TIME)), ("by", pa.map_(pa.string(), LOCAL_TIME))]),
        ),
    ]
)


def _rows(first: int) -> pa.Table:
    def row(at: int, time: datetime) -> dict[str, object]:
        zoned = time.replace(tzinfo=UTC)
        nested = {"at": zoned, "all": [zoned, None], "by": [("k", time)]}
        key = {"topic": "t", "partition": 0, "offset": first + at}
        return {**key, "timestamp": zoned, "local": time, "nested": nested if at else None}

    return pa.Table.from_pylist([row(at, time) for at, time in enumerate(TIMES)], schema=SCHEMA)


@pytest.fixture
def table(tmp_path: Path) -> str:
    """Two files with the offsets 0 to 2 and 3 to 5, as Spark rewrote them."""
    path = str(tmp_path / "table")
    for first in (0, 3):
        write_deltalake(path, _rows(first), mode="append")
    rewrite_as_spark(path)
    return path


def _stored(path: str) -> list[dict[str, object]]:
    """The rows of all files, with times as text; the files were not read by the code under test."""
    found = [
        row
        for uri in DeltaTable(path).file_uris()
        for row in pq.read_table(Path(path) / Path(uri).name, coerce_int96_timestamp_unit="us").cast(SCHEMA).to_pylist()
    ]
    return sorted(found, key=lambda one: one["offset"])


def _kinds(path: str) -> list[pa.Schema]:
    return [pq.read_schema(Path(path) / Path(uri).name) for uri in DeltaTable(path).file_uris()]


def _compact(path: str) -> bool:
    made = Compaction(path, TransactionLog(path))
    made._compacted = 0  # as if it had been there when the last time was
    return made.run(DeltaTable(path), 1)


def test_compaction_writes_the_times_and_the_types_of_the_table(table: str) -> None:
    """Read in nanoseconds, the year 9999 becomes 1816, and the column has no zone and no bounds."""
    write_deltalake(table, _rows(6), mode="append")
    assert _compact(table)
    (kind,) = _kinds(table)
    (found,) = pa.table(DeltaTable(table).get_add_actions(flatten=True)).to_pylist()
    assert kind.field("timestamp").type == UTC_TIME
    assert kind.field("local").type == LOCAL_TIME
    assert kind.field("nested").type.field("at").type == UTC_TIME
    assert kind.field("nested").type.field("all").type.value_type == UTC_TIME
    assert _stored(table) == pa.concat_tables([_rows(0), _rows(3), _rows(6)]).to_pylist()
    assert (found["min.timestamp"], found["max.timestamp"]) == (
        TIMES[0].replace(tzinfo=UTC),
        TIMES[2].replace(tzinfo=UTC),
    )


def test_repair_compares_and_writes_the_times_of_the_table(table: str) -> None:
    """One copy of a row is INT96 and the other is not."""
    write_deltalake(table, _rows(2).slice(0, 2), mode="append")  # offset 2 differs: the year 1 instead of 9999
    write_deltalake(table, _rows(3).slice(1, 2), mode="append")
    (done,) = repair(table)
    assert (done.rows, done.different) == (2, 2)
    offsets = [row["offset"] for row in _stored(table)]
    assert offsets == [0, 1, 2, 2, 3, 3, 4, 5]
    assert [row for row in _stored(table) if row["offset"] in {0, 1, 4, 5}] == [
        row for row in [*_rows(0).to_pylist(), *_rows(3).to_pylist()] if row["offset"] in {0, 1, 4, 5}
    ]


def test_a_repaired_file_has_the_types_of_the_table(table: str) -> None:
    """The file that loses rows is the one of Spark."""
    write_deltalake(table, pa.concat_tables([_rows(6), _rows(0).slice(1, 1), _rows(9)]), mode="append")
    (done,) = repair(table)
    assert done.rows == 1
    assert {str(kind.field("timestamp").type) for kind in _kinds(table)} == {"timestamp[us, tz=UTC]", "timestamp[ns]"}
    assert _stored(table) == pa.concat_tables([_rows(first) for first in (0, 3, 6, 9)]).to_pylist()


def test_a_union_reads_the_times_of_the_table(table: str) -> None:
    """Its rows go to a query in the table's types."""
    (found,) = open_tables(table, {})
    expected = pa.concat_tables([_rows(0), _rows(3)]).select(["offset", "timestamp", "local"])
    rows = pa.Table.from_batches(found.rows(["offset", "timestamp", "local"]))
    assert rows.sort_by("offset").to_pylist() == expected.to_pylist()
    assert found.dataset is not None
    assert found.dataset().to_table(columns=["offset", "timestamp", "local"]).sort_by("offset").equals(expected)


def test_only_times_take_the_type_of_the_table() -> None:
    """A time in nanoseconds has digits that a cast would lose, and a text means the same in each of its types."""
    nanos = pa.timestamp("ns")
    found = pa.schema(
        [
            pa.field("a", pa.timestamp("ms"), nullable=False),
            ("b", nanos),
            ("c", LOCAL_TIME),
            ("unknown", LOCAL_TIME),
            ("text", pa.large_string()),
            ("nested", pa.struct([("at", LOCAL_TIME), ("unknown", LOCAL_TIME)])),
            ("several", pa.list_(pa.field("item", LOCAL_TIME))),
            ("by", pa.map_(LOCAL_TIME, nanos)),
            ("v", VARIANT),
            ("other", pa.list_(LOCAL_TIME)),
        ],
        {"made": "by Spark"},
    )
    table = pa.schema(
        [
            ("a", UTC_TIME),
            ("b", UTC_TIME),
            ("c", pa.string()),
            ("text", pa.string()),
            ("nested", pa.struct([("at", UTC_TIME)])),
            ("several", pa.list_(pa.field("element", UTC_TIME))),
            ("by", pa.map_(UTC_TIME, UTC_TIME)),
            ("v", VARIANT),
            ("other", pa.string()),
        ]
    )
    changed = {
        "a": pa.field("a", UTC_TIME, nullable=False),
        "nested": pa.field("nested", pa.struct([("at", UTC_TIME), ("unknown", LOCAL_TIME)])),
        "several": pa.field("several", pa.list_(pa.field("item", UTC_TIME))),
        "by": pa.field("by", pa.map_(UTC_TIME, nanos)),
    }
    expected = pa.schema([changed.get(one.name, one) for one in found], found.metadata)
    assert with_times_of(table, found).equals(expected, check_metadata=True)
