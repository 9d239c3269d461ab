"""Spark's variant type (values of any shape in one column) in Arrow, in the form of Spark, Parquet and Delta tables.

Spark distinguishes a variant from a struct by a mark on the field `metadata`. Delta has a separate type for it, which
its schema returns as a struct without the mark. The order of the two fields is always Spark's here.
"""

import pyarrow as pa
import pyarrow.compute as pc
from deltalake import Field, Schema
from deltalake.schema import VariantType

from spark_sink.errors import SchemaError, plain

_MARK = {b"variant": b"true"}

VARIANT = pa.struct(
    [
        pa.field("value", pa.binary(), nullable=False),
        pa.field("metadata", pa.binary(), nullable=False, metadata=_MARK),
    ]
)


def is_variant(kind: pa.DataType) -> bool:
    """Return whether an Arrow type represents a variant."""
    if not pa.types.is_struct(kind) or sorted(one.name for one in kind) != ["metadata", "value"]:
        return False
    return (kind.field("metadata").metadata or {}).get(b"variant") == b"true"


def with_variants(rows: pa.Table, schema: pa.Schema) -> pa.Table:
    """Cast the variant columns to the schema's types.

    Spark leaves the fields of a null variant null although they are not nullable, and Arrow refuses that cast.
    """
    for number, field in enumerate(rows.schema):
        if field.name in schema.names and schema.field(field.name).type == VARIANT and is_variant(field.type):
            chunks = [_filled(chunk) for chunk in rows.column(number).chunks]
            rows = rows.set_column(number, pa.field(field.name, VARIANT), pa.chunked_array(chunks, VARIANT))
    return rows


def _filled(variants: pa.StructArray) -> pa.StructArray:
    fields = [pc.fill_null(variants.field(one.name), b"") for one in VARIANT]
    return pa.StructArray.from_arrays(fields, fields=list(VARIANT), mask=variants.is_null())


def delta_field(field: pa.Field) -> Field:
    """Return the column of a Delta table for an Arrow column.

    A table that is created with other columns takes no batch, also none of a corrected query.

    Raises:
        SchemaError: Delta or this sink cannot have it, such as a struct whose fields differ only in case.
    """
    if is_variant(field.type):
        return Field(field.name, VariantType())
    if _has_variant(field.type):
        raise SchemaError(
            f"column {field.name!r} has a variant inside of another type, which this sink does not write; make it a "
            "column of its own, or text by to_json"
        )
    try:
        found = Field.from_arrow(field)
        Schema.from_json(Schema([found]).to_json())  # delta-rs writes deeper structs than it reads
    except Exception as error:  # delta-rs raises a bare one
        raise SchemaError(
            f"a Delta table cannot have the column {field.name!r}: {plain(error)}; cast it, or rename its fields"
        ) from error
    return found


def _has_variant(kind: pa.DataType) -> bool:
    return is_variant(kind) or any(_has_variant(kind.field(number).type) for number in range(kind.num_fields))


def arrow_columns(schema: Schema) -> pa.Schema:
    """Return the columns of a Delta table as Arrow columns, with variants marked."""
    plain = pa.schema(schema.to_arrow())
    variants = {one.name for one in schema.fields if isinstance(one.type, VariantType)}
    return pa.schema([pa.field(one.name, VARIANT) if one.name in variants else one for one in plain])
