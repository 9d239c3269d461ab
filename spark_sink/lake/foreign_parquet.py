"""Parquet files of the table as other engines write them: how to read their times, and to write their rows again.

By default Spark stores a time as INT96, and its MERGE, UPDATE and OPTIMIZE rewrite our files in this form. INT96 has
no zone. Arrow reads it in nanoseconds by default, which overflow after the year 2262 without an error.
"""

from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from spark_sink.formats.variant_type import is_variant

TIME_UNIT = "us"  # that of all times in a Delta table


def open_parquet(stream: Any) -> pq.ParquetFile:  # noqa: ANN401 -- pyarrow's files have no common type
    """Open a Parquet file; a time stored as INT96 is read in microseconds, without a zone.

    Raises:
        OSError: the file is not whole, for example where a store has sent a part of it.
    """
    try:
        return pq.ParquetFile(stream, coerce_int96_timestamp_unit=TIME_UNIT)
    except pa.ArrowInvalid as error:
        raise OSError(str(error)) from error


def with_times_of(table: pa.Schema, found: pa.Schema) -> pa.Schema:
    """Return the columns of a file with the types that the table has for times, and the fields of its structs.

    Args:
        table: columns of the table.
        found: columns of the file, from `open_parquet`.

    Returns:
        The columns of the file. A time that is not a column of the table keeps its type, and so does one in
        nanoseconds, because a cast could lose digits. A struct has the table's fields in the table's order, so that
        the rows of files from before and after a new field are in one file; fields that the table lacks follow.
    """
    names = set(table.names)
    return pa.schema(
        [one.with_type(_retimed(one.type, table.field(one.name).type)) if one.name in names else one for one in found],
        found.metadata,
    )


def _retimed(found: pa.DataType, wanted: pa.DataType) -> pa.DataType:
    if pa.types.is_timestamp(found):
        return wanted if pa.types.is_timestamp(wanted) and found.unit != "ns" else found
    if pa.types.is_struct(found) and pa.types.is_struct(wanted):
        return found if is_variant(wanted) else _with_fields_of(found, wanted)
    if pa.types.is_list(found) and pa.types.is_list(wanted):
        return pa.list_(_field(found.value_field, wanted.value_type))
    if pa.types.is_map(found) and pa.types.is_map(wanted):
        return pa.map_(_field(found.key_field, wanted.key_type), _field(found.item_field, wanted.item_type))
    return found


def _with_fields_of(found: pa.StructType, wanted: pa.StructType) -> pa.DataType:
    left = {one.name: one for one in found}
    fields = []
    for one in wanted:
        known = left.pop(one.name, None)
        if known is not None:
            fields.append(pa.field(one.name, _retimed(known.type, one.type), known.nullable or one.nullable))
        elif one.nullable:  # a variant in a struct lacks a field that has no null, and has another one for it
            fields.append(one)
    return pa.struct([*fields, *left.values()])


def _field(found: pa.Field, wanted: pa.DataType) -> pa.Field:
    return found.with_type(_retimed(found.type, wanted))


def without_views(kind: pa.DataType) -> pa.DataType:
    """Return the type without string and binary views, which delta-rs writes after a DELETE and Arrow cannot filter."""
    if pa.types.is_string_view(kind):
        return pa.string()
    if pa.types.is_binary_view(kind):
        return pa.binary()
    if pa.types.is_struct(kind):
        return pa.struct([one.with_type(without_views(one.type)) for one in kind])
    if pa.types.is_list(kind):
        return pa.list_(kind.value_field.with_type(without_views(kind.value_type)))
    if pa.types.is_map(kind):
        key, item = kind.key_field, kind.item_field
        return pa.map_(key.with_type(without_views(key.type)), item.with_type(without_views(item.type)))
    return kind
