"""Records get the columns and the types of their table, or are refused."""

import pyarrow as pa
import pytest

from spark_sink.errors import SchemaError
from spark_sink.source.union_read.tail_rows import fitted

SCHEMA = pa.schema([("n", pa.int64()), ("text", pa.string())])


def test_columns_are_put_in_order_and_others_left_out() -> None:
    """The result of a union has the columns of the table."""
    rows = pa.table({"more": [1], "text": ["a"], "n": pa.array([1], pa.int32())})
    assert fitted(rows, SCHEMA) == pa.table({"n": [1], "text": ["a"]}, schema=SCHEMA)


def test_fields_inside_columns_are_those_of_the_table() -> None:
    """A registry's newest schema may be ahead of the table, and a schema that is given may be behind."""
    inner = pa.struct([("x", pa.int64()), ("y", pa.string())])
    table = pa.schema([("s", inner), ("l", pa.list_(inner)), ("m", pa.map_(pa.string(), inner))])
    kind = pa.struct([("z", pa.int64()), ("x", pa.int64())])
    schema = pa.schema([("s", kind), ("l", pa.list_(kind)), ("m", pa.map_(pa.string(), kind))])
    value = {"z": 3, "x": 1}
    rows = pa.Table.from_pylist([{"s": value, "l": [value], "m": [("k", value)]}], schema=schema)
    seen = {"x": 1, "y": None}
    assert fitted(rows, table).to_pylist() == [{"s": seen, "l": [seen], "m": [("k", seen)]}]


def test_a_column_that_records_do_not_give_is_named() -> None:
    """A query with SQL may compute columns, which would be null for the records of Kafka alone."""
    with pytest.raises(SchemaError, match=r"the table has the column 'text', which its records do not give \(n\)"):
        fitted(pa.table({"n": [1]}), SCHEMA)


def test_a_value_that_does_not_fit_is_refused() -> None:
    """A transform may return other types than the table has."""
    with pytest.raises(SchemaError, match="do not fit the columns of the table"):
        fitted(pa.table({"n": ["x"], "text": ["a"]}), SCHEMA)
