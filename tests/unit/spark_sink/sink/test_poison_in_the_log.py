"""Values that reach the log of a table: none of them may end the reading and writing of the table."""

import json
from collections.abc import Sequence
from datetime import date
from pathlib import Path

import pyarrow as pa
import pytest
from deltalake import DeltaTable

from spark_sink.errors import SchemaError
from spark_sink.fetch.raw_columns import TIMESTAMP
from spark_sink.formats import decode_batch
from spark_sink.formats.bad_values_quarantined import COLUMN
from spark_sink.formats.calendar_dates import FIRST, LAST
from spark_sink.formats.decoder import Decoded
from spark_sink.formats.quarantine_addresses import quarantine_of
from spark_sink.formats.unknown_policy import NullPolicy, Policy
from spark_sink.lake.delta_table import DeltaLakeTable
from spark_sink.lake.holes_and_doubles import verify
from spark_sink.lake.parquet_landing import normal_schema
from spark_sink.ranges.batch_offset import Offset, Range
from spark_sink.sink.quarantine.quarantine_replay import replay
from spark_sink.sink.query_tables import Tables
from spark_sink.sink.rewind.delta_rewind import rewind
from spark_sink.sink.rows_by_table import Sorting
from spark_sink.sink.sink_options import SinkOptions
from tests.raw_rows import SCHEMA

FAR = 253_402_300_799_000  # the last second of the year 9999, ms since 1970


def _commit(path: Path, begin: int, values: list[dict[str, object]], schema: pa.Schema, **more: str) -> None:
    options = SinkOptions.parse({"path": str(path), "kafka.group.id": "g", "checkpointLocation": "c", **more})
    sorting = Sorting(options, normal_schema(schema), "run")
    rows = [{"topic": "t", "partition": 0, "offset": begin + n, **one} for n, one in enumerate(values)]
    sorting.write(pa.RecordBatch.from_pylist(rows, schema=schema))
    offset = Offset.of([Range("t", 0, begin, begin + len(values))])
    Tables(options).commit(offset, sorting.close(), normal_schema(schema), 0)


def _compact(path: Path) -> None:
    table = DeltaLakeTable(str(path), "g")
    for every in (100, 1):  # a process waits for the next round after its start
        table.refresh()
        table.compact(every)


@pytest.mark.parametrize("mark", ["\N{LINE SEPARATOR}", "\N{PARAGRAPH SEPARATOR}", "\x85"])
def test_characters_that_end_lines_elsewhere_do_not_cut_the_log(tmp_path: Path, mark: str) -> None:
    """JSON leaves them as they are: in partition values, and in statistics of other writers."""
    path = tmp_path / "table"
    schema = SCHEMA.append(pa.field("text", pa.string()))
    for begin in (0, 2, 4):
        rows: list[dict[str, object]] = [{"text": f"a{mark}b"}, {"text": f"c{mark}"}]
        _commit(path, begin, rows, schema, partitionBy="text", compactEvery="0")
    _compact(path)
    DeltaTable(str(path)).optimize.compact()
    assert mark in "".join(one.read_text() for one in (path / "_delta_log").glob("*.json"))
    _commit(path, 6, [{"text": "d"}], schema, partitionBy="text", compactEvery="0")
    assert verify(str(path)).ok
    assert rewind(str(path)) == []
    found = DeltaTable(str(path)).to_pyarrow_table(columns=["text"])["text"].to_pylist()
    assert sorted(found) == sorted([f"a{mark}b", f"c{mark}"] * 3 + ["d"])


def test_a_record_with_a_date_that_no_partition_can_have_is_bad(tmp_path: Path) -> None:
    """delta-rs cannot open a table with such a partition, so one record would stop all agents."""
    path = tmp_path / "table"
    days = pa.array([FIRST - 1, FIRST, LAST, LAST + 1, None], pa.int32()).cast(pa.date32())
    places = {"topic": ["t"] * 5, "partition": pa.array([0] * 5, pa.int32()), "offset": range(5)}
    raw = pa.RecordBatch.from_pydict(
        {**places, "timestamp": pa.nulls(5, TIMESTAMP), "key": pa.nulls(5, pa.binary()), "value": [b"v"] * 5}
    )
    rows = decode_batch(raw, _Days(days))
    assert [one and one["error_class"] for one in rows.column(COLUMN).to_pylist()] == [
        "DateOutOfRange",
        None,
        None,
        "DateOutOfRange",
        None,
    ]
    assert rows.column("day").to_pylist() == [None, date.min, date.max, None, None]
    schema = SCHEMA.append(pa.field("day", pa.date32()))
    for begin, day in ((0, date.min), (1, date.max)):
        _commit(path, begin, [{"day": day}], schema, partitionBy="day")
    assert verify(str(path)).ok
    late = pa.array([LAST + 1], pa.int32()).cast(pa.date32())
    row = pa.RecordBatch.from_arrays(
        [pa.array(["t"]), pa.array([0], pa.int32()), pa.array([2]), pa.nulls(1, pa.binary()), late],
        schema=schema.remove(schema.get_field_index(COLUMN)),
    )
    options = SinkOptions.parse(
        {"path": str(path), "kafka.group.id": "g", "checkpointLocation": "c", "partitionBy": "day"}
    )
    with pytest.raises(SchemaError, match="a date outside the years 1 to 9999"):
        Sorting(options, normal_schema(row.schema), "run").write(row)


class _Days:
    """Decodes whatever it gets into given dates, as Avro's numbers of days may be any."""

    columns = pa.schema([("day", pa.date32())])
    unknown: Policy = "ignore"
    nulls: NullPolicy = "quarantine"

    def __init__(self, days: pa.Array) -> None:
        self._days = days

    def decode(self, values: Sequence[bytes | None]) -> Decoded:
        assert len(values) == len(self._days)
        return Decoded([self._days])


def test_no_retention_removes_positions_and_marks(tmp_path: Path) -> None:
    """Spark leaves application transactions without a time, or with an old one, out of a checkpoint."""
    path = tmp_path / "table"
    bad: dict[str, object] = {"value": b"v", COLUMN: {"error_class": "Bad", "value": b"v"}}
    for begin in (0, 2, 4):
        _commit(path, begin, [{"value": b"v"}, bad], SCHEMA, compactEvery="1")
    _compact(path)
    replay(str(path), "g", lambda rows: rows.slice(0, 1))
    DeltaTable(str(path)).restore(2)
    rewind(str(path), apply=True)
    found = [
        json.loads(line)["txn"]
        for uri in (str(path), quarantine_of(str(path)))
        for entry in (Path(uri) / "_delta_log").glob("*.json")
        for line in entry.read_text().split("\n")
        if '"txn"' in line
    ]
    kinds = {one["appId"].rpartition("/")[2] for one in found}
    assert {"0", "begin", "quarantined", "replay", "rewound", "compaction"} <= kinds
    assert {one.get("lastUpdated") for one in found} == {FAR}


def test_a_column_of_a_repair_that_the_table_lacks_is_refused(tmp_path: Path) -> None:
    """A misspelt name would leave the column null, and the record would count as repaired."""
    path = tmp_path / "table"
    schema = SCHEMA.append(pa.field("delay", pa.int64()))
    bad: dict[str, object] = {"value": b"v", COLUMN: {"error_class": "Bad", "value": b"v"}}
    _commit(path, 0, [{"delay": 1}, bad], schema)
    with pytest.raises(SchemaError, match="returned the column 'Delay', which the table lacks; it has topic,"):
        replay(str(path), "g", lambda rows: rows.append_column("Delay", pa.array([2] * rows.num_rows)))
    with pytest.raises(SchemaError, match="the repair returned NoneType; it must return"):
        replay(str(path), "g", lambda _: None)
    assert replay(str(path), "g", lambda rows: rows.append_column("delay", pa.array([2] * rows.num_rows))).rows == 1
