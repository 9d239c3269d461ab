"""A batch write in foreachBatch commits its batch once, however often Spark calls the function."""

from pathlib import Path

import pyarrow as pa
import pytest
from deltalake import DeltaTable
from pyspark.sql.types import LongType, StringType, StructField, StructType

from spark_sink import DeltaExactlyOnceSink, positions
from spark_sink.errors import OptionError
from spark_sink.fetch.raw_columns import arrow_schema
from spark_sink.lake.verification import verify
from spark_sink.ranges.batch_offset import Offset, Range
from spark_sink.sink.delta_sink import BatchWriter, SinkWriter
from spark_sink.sink.sink_options import SinkOptions

SCHEMA = arrow_schema(headers=False)


def write(root: Path, table: str, batch: int, begin: int, end: int) -> None:
    """Write a batch as Spark does, in a writer of its own."""
    (root / "c/offsets").mkdir(parents=True, exist_ok=True)
    offset = Offset.of([Range("t", 0, begin, end)])
    (root / f"c/offsets/{batch}").write_text(f"v1\n{{}}\n{offset.json()}\n")
    given = {"path": str(root / table), "kafka.group.id": "g", "checkpointLocation": str(root / "c")}
    writer = BatchWriter(SinkWriter(SinkOptions.parse({**given, "batchId": str(batch)}), SCHEMA), batch)
    rows = [{"topic": "t", "partition": 0, "offset": one, "value": b"v"} for one in range(begin, end)]
    writer.commit([writer.write(iter([pa.RecordBatch.from_pylist(rows, schema=SCHEMA)]))])


def test_a_repeated_batch_adds_nothing_to_any_of_its_tables(tmp_path: Path) -> None:
    """Spark calls the function again if it died after the first of two writes."""
    for tables, batch in (("xy", 0), ("x", 1), ("xy", 1), ("yx", 1), ("xy", 2)):
        for table in tables:
            write(tmp_path, table, batch, 3 * batch, 3 * batch + 3)
    for table in "xy":
        found = verify(str(tmp_path / table))
        assert (found.rows, found.ok) == (9, True)
        assert positions(str(tmp_path / table), "g") == {("t", 0): 9}
        assert DeltaTable(str(tmp_path / table)).to_pyarrow_table().num_rows == 9


def test_a_batch_write_without_a_batch_is_refused() -> None:
    """Without the offsets of a batch nothing shows which rows a table has already."""
    schema = StructType([StructField("topic", StringType()), StructField("offset", LongType())])
    given = {"path": "t", "kafka.group.id": "g", "checkpointLocation": "c"}
    with pytest.raises(OptionError, match="in foreachBatch set the option 'batchId'"):
        DeltaExactlyOnceSink(given).writer(schema, overwrite=False)
    with pytest.raises(OptionError, match="'batchId': 'x', need the number"):
        DeltaExactlyOnceSink({**given, "batchId": "x"}).writer(schema, overwrite=False)
    with pytest.raises(OptionError, match="'append' only"):
        DeltaExactlyOnceSink({**given, "batchId": "1"}).writer(schema, overwrite=True)
    with pytest.raises(OptionError, match="'batchId' is for foreachBatch"):
        DeltaExactlyOnceSink({**given, "batchId": "1"}).streamWriter(schema, overwrite=False)
