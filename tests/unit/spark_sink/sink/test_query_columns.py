"""Columns of a query that no file can have."""

import pytest
from pyspark.sql.types import (
    ArrayType,
    CalendarIntervalType,
    DataType,
    IntegerType,
    LongType,
    MapType,
    NullType,
    StringType,
    StructField,
    StructType,
    TimestampType,
)

from spark_sink.errors import SchemaError
from spark_sink.sink.query_columns import query_columns

KEYS = [
    StructField("topic", StringType()),
    StructField("partition", IntegerType()),
    StructField("offset", LongType()),
]


@pytest.mark.parametrize(
    "kind",
    [
        NullType(),
        StructType([StructField("a", NullType())]),
        ArrayType(NullType(), containsNull=False),
        MapType(StringType(), NullType(), valueContainsNull=False),
        StructType(),
        StructType([StructField("a", ArrayType(StructType()))]),
        CalendarIntervalType(),
    ],
    ids=DataType.simpleString,
)
def test_a_type_that_no_file_can_have_is_refused_with_its_column(kind: DataType) -> None:
    """`array()` of SQL, for example: without this the driver or a task fails with an error of Arrow.

    A column that is void, as Spark's `lit(None)`, would make a Delta table that no batch with values fits.
    """
    with pytest.raises(SchemaError, match=r"column 'c' is .*, which the files of a table cannot have .*; cast it"):
        query_columns(StructType([*KEYS, StructField("c", kind)]))


@pytest.mark.parametrize(
    "kind",
    [
        ArrayType(IntegerType(), containsNull=False),
        MapType(StringType(), ArrayType(IntegerType())),
        StructType([StructField("a", StructType([StructField("b", TimestampType())]))]),
    ],
    ids=DataType.simpleString,
)
def test_other_types_are_taken(kind: DataType) -> None:
    """Also with types inside."""
    assert query_columns(StructType([*KEYS, StructField("c", kind)])).names == ["topic", "partition", "offset", "c"]


@pytest.mark.parametrize("twins", [("c", "c"), ("c", "C"), ("id", "topic"), ("OFFSET", "id")], ids=",".join)
def test_two_columns_of_one_name_are_refused(twins: tuple[str, str]) -> None:
    """A join leaves them: without this, Arrow says of one that identifies the record that it does not exist."""
    columns = StructType([*KEYS, *(StructField(name, LongType()) for name in twins)])
    with pytest.raises(SchemaError, match=r"two columns of the name '(c|topic|offset)'.*: rename or drop one"):
        query_columns(columns)
