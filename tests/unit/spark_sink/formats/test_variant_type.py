"""A column of Spark's variant type in a Delta table: made, filled, joined, added."""

from pathlib import Path

import pyarrow as pa
import pytest
from deltalake import DeltaTable
from deltalake.schema import VariantType
from pyspark.sql.types import VariantVal

from spark_sink import positions
from spark_sink.errors import SchemaError
from spark_sink.formats.variant_type import VARIANT
from spark_sink.lake.holes_and_doubles import verify
from spark_sink.lake.parquet_landing import normal_schema
from spark_sink.ranges.batch_offset import Offset, Range
from spark_sink.sink.query_tables import Tables
from spark_sink.sink.rows_by_table import Sorting
from spark_sink.sink.sink_options import SinkOptions

KEYS = [pa.field("topic", pa.string()), pa.field("partition", pa.int32()), pa.field("offset", pa.int64())]
SCHEMA = normal_schema(pa.schema([*KEYS, pa.field("value", VARIANT)]))


def _land(root: Path, begin: int, end: int, schema: pa.Schema = SCHEMA, **more: str) -> None:
    shared = {"path": str(root / "table"), "kafka.group.id": "g", "checkpointLocation": str(root / "checkpoint")}
    options = SinkOptions.parse({**shared, **more})
    rows = []
    for offset in range(begin, end):
        found = VariantVal.parseJson(f'{{"offset": {offset}}}')
        value = {"value": found.value, "metadata": found.metadata}
        rows.append({"topic": "t", "partition": 0, "offset": offset, "value": value if offset % 5 else None})
    sorting = Sorting(options, schema, "run")
    sorting.write(pa.RecordBatch.from_pylist([{name: row.get(name) for name in schema.names} for row in rows], schema))
    Tables(options).commit(Offset.of([Range("t", 0, begin, end)]), sorting.close(), schema, 0)


def _values(root: Path) -> dict[int, object]:
    rows = DeltaTable(str(root / "table")).to_pyarrow_table().to_pylist()
    return {
        row["offset"]: VariantVal(row["value"]["value"], row["value"]["metadata"]).toPython() if row["value"] else None
        for row in rows
    }


def test_variants_land_in_a_column_of_that_type(tmp_path: Path) -> None:
    """Also where rows are left out because the table has them, and after small files were joined."""
    for begin, end in ((0, 10), (5, 20), (0, 20)):
        _land(tmp_path, begin, end)
    handle = DeltaTable(str(tmp_path / "table"))
    kind = next(one.type for one in handle.schema().fields if one.name == "value")
    assert isinstance(kind, VariantType)
    expected = {offset: {"offset": offset} if offset % 5 else None for offset in range(20)}
    assert _values(tmp_path) == expected
    handle.optimize.compact()
    assert _values(tmp_path) == expected
    assert verify(str(tmp_path / "table")).ok
    assert positions(str(tmp_path / "table"), "g") == {("t", 0): 20}


@pytest.mark.parametrize("merge", ["true", "false"])
def test_a_variant_may_be_added_to_a_table_that_can_hold_one(tmp_path: Path, merge: str) -> None:
    """Only on request, as any other column."""
    _land(tmp_path, 0, 5, pa.schema(KEYS))
    if merge == "false":
        with pytest.raises(Exception, match="mergeSchema"):
            _land(tmp_path, 5, 10)
        return
    _land(tmp_path, 5, 10, mergeSchema=merge)
    assert verify(str(tmp_path / "table")).ok


DEEP = pa.int64()
for _ in range(60):
    DEEP = pa.struct([("a", DEEP)])


@pytest.mark.parametrize(
    ("kind", "sentence"),
    [
        (pa.list_(VARIANT), "column 'c' has a variant inside of another type"),
        (pa.map_(pa.string(), pa.struct([("a", VARIANT)])), "column 'c' has a variant inside of another type"),
        (DEEP, "a Delta table cannot have the column 'c': .*; cast it"),
        (pa.duration("us"), "a Delta table cannot have the column 'c': .*; cast it"),
    ],
    ids=["list", "map", "deep", "interval"],
)
def test_no_table_is_made_or_changed_that_takes_no_batch(tmp_path: Path, kind: pa.DataType, sentence: str) -> None:
    """delta-rs writes such a column into the log; a corrected query could not write to the table, or not read it."""
    odd = normal_schema(pa.schema([*SCHEMA, pa.field("c", kind)]))
    with pytest.raises(SchemaError, match=sentence):
        _land(tmp_path, 0, 5, odd)
    _land(tmp_path, 0, 5)
    with pytest.raises(SchemaError, match=sentence):
        _land(tmp_path, 5, 10, odd, mergeSchema="true")
    _land(tmp_path, 5, 10)
    assert verify(str(tmp_path / "table")).rows == 10
