"""Direct landing: files are described, and the description is all that the sink gets."""

from pathlib import Path

import pyarrow as pa
import pytest
from pyspark.sql.types import (
    DoubleType,
    IntegerType,
    LongType,
    StringType,
    StructField,
    StructType,
    TimestampType,
)

from spark_sink.errors import OptionError, SchemaError
from spark_sink.lake.holes_and_doubles import verify
from spark_sink.ranges.batch_offset import Offset, Range
from spark_sink.sink.direct_landing import CountedBatches, describe, empty_rows, land, parse, table_schema
from spark_sink.sink.query_tables import Tables
from spark_sink.sink.sink_options import SinkOptions


def _rows(schema: pa.Schema, begin: int, end: int) -> pa.RecordBatch:
    rows = [
        {"topic": topic, "partition": 1, "offset": one, "value": b"v"} for topic in "ab" for one in range(begin, end)
    ]
    return pa.RecordBatch.from_pylist(rows, schema=schema)


def test_landed_files_are_committed_like_rows(tmp_path: Path) -> None:
    """The tasks land, the text travels, the commit sees the same files; a replay changes nothing."""
    options = {"path": f"{tmp_path}/{{topic}}", "kafka.group.id": "g", "checkpointLocation": str(tmp_path / "c")}
    schema = table_schema(options)
    tables = Tables(SinkOptions.parse(options))
    for begin, end in ((0, 5), (0, 5), (3, 9)):
        (text,) = land([_rows(schema, begin, end)], options, schema, "run").column(0).to_pylist()
        offset = Offset.of(Range(topic, 1, begin, end) for topic in "ab")
        tables.commit(offset, parse(text, schema), schema, 1)
    for topic in "ab":
        report = verify(str(tmp_path / topic))
        assert (report.rows, report.ok) == (9, True)


def test_a_task_without_rows_describes_no_file(tmp_path: Path) -> None:
    """An empty range, or one that compaction has emptied."""
    options = {"path": str(tmp_path), "kafka.group.id": "g", "checkpointLocation": "c"}
    schema = table_schema(options)
    (text,) = land([], options, schema, "run").column(0).to_pylist()
    assert parse(text, schema) == {}


@pytest.mark.parametrize("records", [0, 1, 2, 100_001, 250_000])
def test_a_task_has_a_row_for_each_record(records: int) -> None:
    """The description is one of them, also of a task without records, whose ranges the commit needs."""
    assert sum(batch.num_rows for batch in empty_rows(records)) == max(0, records - 1)
    assert all(batch.column(0).null_count == batch.num_rows for batch in empty_rows(records))


def test_counted_batches_are_those_that_were_taken() -> None:
    """The files are written from them, so the number is known at the end only."""
    schema = table_schema({})
    counted = CountedBatches([_rows(schema, 0, 3), _rows(schema, 3, 4)])
    assert [batch.num_rows for batch in counted] == [6, 2]
    assert counted.rows == 8


def test_other_columns_than_the_sink_expects_are_refused() -> None:
    """The two sides were given different options; the table would become unreadable."""
    with pytest.raises(SchemaError, match="give source and sink the same options"):
        parse(describe({}, table_schema({"includeHeaders": "true"})), table_schema({}))


def test_decoded_columns_come_from_the_schema_that_both_sides_are_given() -> None:
    """As Spark writes it; the time zone of a session makes no other table."""
    decoded = StructType(
        [
            StructField("topic", StringType()),
            StructField("partition", IntegerType()),
            StructField("offset", LongType()),
            StructField("timestamp", TimestampType()),
            StructField("delay", DoubleType()),
        ]
    )
    assert table_schema({"columns": decoded.json()}) == pa.schema(
        [
            ("topic", pa.string()),
            ("partition", pa.int32()),
            ("offset", pa.int64()),
            ("timestamp", pa.timestamp("us", tz="UTC")),
            ("delay", pa.float64()),
        ]
    )
    with pytest.raises(OptionError, match="is not a schema"):
        table_schema({"columns": "delay double"})
