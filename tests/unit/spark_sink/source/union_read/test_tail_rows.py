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


def test_a_column_that_records_do_not_give_is_named() -> None:
    """A query with SQL may compute columns, which would be null for the records of Kafka alone."""
    with pytest.raises(SchemaError, match=r"the table has the column 'text', which its records do not give \(n\)"):
        fitted(pa.table({"n": [1]}), SCHEMA)


def test_a_value_that_does_not_fit_is_refused() -> None:
    """A transform may return other types than the table has."""
    with pytest.raises(SchemaError, match="do not fit the columns of the table"):
        fitted(pa.table({"n": ["x"], "text": ["a"]}), SCHEMA)
