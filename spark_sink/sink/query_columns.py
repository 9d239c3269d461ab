"""The columns of a query, as Arrow has them."""

from collections.abc import Iterator

import pyarrow as pa
from pyspark.errors import PySparkException
from pyspark.sql.pandas.types import to_arrow_schema
from pyspark.sql.types import ArrayType, DataType, MapType, NullType, StructField, StructType

from spark_sink.errors import SchemaError
from spark_sink.lake.parquet_landing import normal_schema


def query_columns(schema: StructType) -> pa.Schema:
    """Return the columns of a query's rows in the form of a table.

    Raises:
        SchemaError: a column that identifies the record is missing, two columns have one name, or a column has a type
            that no file can have.
    """
    spelled: dict[str, str] = {}
    for name in schema.names:
        if (other := spelled.get(name.lower())) is not None:
            differ = "" if other == name else f" and {name!r}, which differ in case only"
            raise SchemaError(
                f"the query has two columns of the name {other!r}{differ}, and a table can have one: rename or drop one"
            )
        spelled[name.lower()] = name
    return normal_schema(pa.schema([_arrow_field(one) for one in schema]))


def _arrow_field(column: StructField) -> pa.Field:
    types = list(_types(column.dataType))
    example = ""
    try:
        if any(isinstance(one, NullType) for one in types):
            # Delta would take it, and refuse each later batch in which the column has a type.
            reason, example = "a null without a type", ", as CAST(NULL AS STRING) in SQL"
        elif any(isinstance(one, StructType) and not one.fields for one in types):
            reason = "a struct without fields"
        else:
            return to_arrow_schema(StructType([column]), timezone="UTC").field(0)
    except (PySparkException, ValueError) as error:  # an interval
        reason = str(error)
    raise SchemaError(
        f"column {column.name!r} is {column.dataType.simpleString()}, which the files of a table cannot have "
        f"({reason}); cast it{example}"
    )


def _types(kind: DataType) -> Iterator[DataType]:
    """Yield a type and the types inside it."""
    yield kind
    inner: list[DataType] = []
    if isinstance(kind, StructType):
        inner = [one.dataType for one in kind]
    elif isinstance(kind, ArrayType):
        inner = [kind.elementType]
    elif isinstance(kind, MapType):
        inner = [kind.keyType, kind.valueType]
    for one in inner:
        yield from _types(one)
