"""Columns of an Iceberg table as Arrow's, and Arrow columns with the table's field ids."""

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING

import pyarrow as pa

from spark_sink.errors import SchemaError
from spark_sink.formats.variant_type import is_variant
from spark_sink.lake.iceberg.partition_terms import terms_of
from spark_sink.lake.table_contract import KEYS

if TYPE_CHECKING:
    from pyiceberg.schema import Schema
    from pyiceberg.table import Table
    from pyiceberg.types import IcebergType, NestedField

_ID = b"PARQUET:field_id"


def refuse_foreign_types(name: str, schema: pa.Schema) -> None:
    """Refuse columns of a type that Iceberg does not have: as another type, values would be read back changed.

    Raises:
        SchemaError: there is such a column.
    """
    for one in schema:
        if any(_is_foreign(kind) for kind in _kinds(one.type)):
            raise SchemaError(f"{name}: column {one.name!r} is {one.type}, which Iceberg does not have; cast it")


def arrow_columns(schema: "Schema") -> pa.Schema:
    """Return the table's columns with Arrow's plain types, all nullable."""
    from pyiceberg.io.pyarrow import schema_to_pyarrow

    found = schema_to_pyarrow(schema, include_field_ids=False)
    return pa.schema([pa.field(one.name, _plain(one.type)) for one in found])


def numbered(columns: pa.Schema) -> "Schema":
    """Return the columns of a new table, with field ids."""
    from pyiceberg.io.pyarrow import _pyarrow_to_schema_without_ids
    from pyiceberg.schema import assign_fresh_schema_ids

    return assign_fresh_schema_ids(_pyarrow_to_schema_without_ids(columns))


def with_field_ids(columns: pa.Schema, schema: "Schema") -> pa.Schema:
    """Return the columns with the table's field ids, which Arrow writes into a Parquet file."""
    return pa.schema([_field(one, schema.find_field(one.name)) for one in columns])


def field_ids(columns: pa.Schema) -> dict[str, list[int]]:
    """Return the field ids of each column from `with_field_ids`: its own, and those of the fields in it."""
    return {one.name: list(_ids(one)) for one in columns}


def refuse_unwritable(name: str, table: "Table") -> None:
    """Refuse a table that needs more of a writer than this sink does.

    Raises:
        SchemaError: its partitioning, its format version or a required column is not supported.
    """
    metadata = table.metadata
    if metadata.format_version != 2:  # noqa: PLR2004 -- the version of the format
        raise SchemaError(f"{name}: the table has Iceberg's format version {metadata.format_version}, need 2")
    if terms_of(metadata.spec(), metadata.schema()) is None:
        raise SchemaError(
            f"{name}: the table is partitioned by {metadata.spec()}; supported are columns, day and bucket"
        )
    # A record always has its topic, partition and offset.
    fields = metadata.schema().fields
    required = [one.name for one in fields if one.required and one.name not in KEYS]
    required += [path for one in fields for path in _required(one.name, one.field_type)]
    if required:
        raise SchemaError(f"{name}: column {required[0]!r} is required, and rows may have no value; make it optional")


def _required(path: str, kind: "IcebergType") -> Iterator[str]:
    """Yield the paths inside a column that have no null; of a map only its values may be null."""
    from pyiceberg.types import ListType, MapType, StructType

    inner: Sequence[NestedField] = ()
    if isinstance(kind, StructType):
        inner = kind.fields
    elif isinstance(kind, ListType):
        inner = [kind.element_field]
    elif isinstance(kind, MapType):
        inner = [kind.value_field]
    for one in inner:
        if one.required:
            yield f"{path}.{one.name}"
        yield from _required(f"{path}.{one.name}", one.field_type)


def _kinds(kind: pa.DataType) -> Iterator[pa.DataType]:
    yield kind
    for number in range(kind.num_fields):
        yield from _kinds(kind.field(number).type)


def _ids(field: pa.Field) -> Iterator[int]:
    if number := (field.metadata or {}).get(_ID):  # the entries of a map have none
        yield int(number)
    for index in range(field.type.num_fields):
        yield from _ids(field.type.field(index))


def _is_foreign(kind: pa.DataType) -> bool:
    small = pa.types.is_int8(kind) or pa.types.is_int16(kind)
    other = pa.types.is_duration(kind) or pa.types.is_decimal256(kind) or pa.types.is_float16(kind)
    time = pa.types.is_time(kind) and kind != pa.time64("us")  # Iceberg's has microseconds
    return small or other or time or pa.types.is_unsigned_integer(kind) or pa.types.is_null(kind) or is_variant(kind)


def _plain(kind: pa.DataType) -> pa.DataType:
    if pa.types.is_large_string(kind):
        return pa.string()
    if pa.types.is_large_binary(kind):
        return pa.binary()
    if pa.types.is_list(kind) or pa.types.is_large_list(kind):
        return pa.list_(pa.field(kind.value_field.name, _plain(kind.value_type)))
    if pa.types.is_struct(kind):
        return pa.struct([pa.field(one.name, _plain(one.type)) for one in kind])
    if pa.types.is_map(kind):
        return pa.map_(_plain(kind.key_type), _plain(kind.item_type))
    return kind


def _field(field: pa.Field, found: "NestedField") -> pa.Field:
    metadata: Mapping[bytes, bytes] = {_ID: str(found.field_id).encode()}
    return pa.field(field.name, _typed(field.type, found), nullable=field.nullable, metadata=metadata)


def _typed(kind: pa.DataType, found: "NestedField") -> pa.DataType:
    nested = found.field_type
    if pa.types.is_list(kind):
        return pa.list_(_field(kind.value_field, nested.element_field))  # type: ignore[attr-defined]  # a list here
    if pa.types.is_struct(kind):
        return pa.struct([_field(one, nested.field_by_name(one.name)) for one in kind])  # type: ignore[attr-defined]  # a struct here
    if pa.types.is_map(kind):
        key, value = nested.key_field, nested.value_field  # type: ignore[attr-defined]  # a map here
        return pa.map_(_field(kind.key_field, key), _field(kind.item_field, value))
    return kind
