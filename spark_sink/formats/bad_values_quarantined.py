"""Records that could not be decoded: kept in full in a separate table, with the reason.

A decoder returns good and bad rows in one stream. The column `_quarantine` is null for a good row; for a bad row it has
the reason and the original record. The sink removes the column from the good rows and puts the bad rows into
`<table>_quarantine`.

The commit of the table decides: it adds the good rows, names the files of the bad ones and moves the position, and the
quarantine adds those files afterwards. So each offset is in exactly one of the two, even if a batch is decoded
differently the second time. A temporary error (a registry that is down) stops the query and never makes a row bad.
"""

from datetime import UTC, datetime
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from spark_sink.errors import SchemaError

COLUMN = "_quarantine"

_HEADERS = pa.list_(pa.field("element", pa.struct([pa.field("key", pa.string()), pa.field("value", pa.binary())])))

REASON = pa.struct(
    [
        pa.field("error_class", pa.string()),
        pa.field("error_text", pa.string()),
        pa.field("schema_id", pa.int32()),
        pa.field("key", pa.binary()),
        pa.field("value", pa.binary()),
        pa.field("headers", _HEADERS),
    ]
)

SCHEMA = pa.schema(
    [
        pa.field("topic", pa.string()),
        pa.field("partition", pa.int32()),
        pa.field("offset", pa.int64()),
        pa.field("timestamp", pa.timestamp("us", tz="UTC")),
        pa.field("key", pa.binary()),
        pa.field("value", pa.binary()),
        pa.field("headers", _HEADERS),
        pa.field("error_class", pa.string()),
        pa.field("error_text", pa.string()),
        pa.field("schema_id", pa.int32()),
        pa.field("run_id", pa.string()),
        pa.field("ingested_at", pa.timestamp("us", tz="UTC")),
    ]
)


def good_schema(schema: pa.Schema) -> pa.Schema:
    """Return the columns of the good rows.

    Raises:
        SchemaError: the column `_quarantine` has another type.
    """
    if COLUMN not in schema.names:
        return schema
    names = {field.name for field in schema.field(COLUMN).type} if pa.types.is_struct(schema.field(COLUMN).type) else {}
    if names != {field.name for field in REASON}:
        raise SchemaError(f"column {COLUMN!r} is {schema.field(COLUMN).type}, need {REASON}")
    return schema.remove(schema.get_field_index(COLUMN))


def python_rows(rows: pa.Table) -> list[dict[str, Any]]:
    """Return rows as Python values, with times as microseconds since 1970.

    The time of a record may be outside the years 1 to 9999, Python's limits, as some producers give
    microseconds as milliseconds.

    Args:
        rows: any columns of the quarantine.
    """
    for number, field in enumerate(rows.schema):
        if pa.types.is_timestamp(field.type):
            rows = rows.set_column(number, field.name, rows.column(number).cast(pa.int64()))
    found: list[dict[str, Any]] = rows.to_pylist()
    return found


def split(rows: pa.Table, run: str, now: datetime | None = None) -> tuple[pa.Table, pa.Table]:
    """Separate good and bad rows.

    Args:
        rows: any columns, with or without `_quarantine`.
        run: id of the query's run, stored with the bad rows.
        now: time of the split; by default the current time.

    Returns:
        Good rows without the column; bad rows in the columns of the quarantine.
    """
    if COLUMN not in rows.column_names:
        return rows, SCHEMA.empty_table()
    if rows.column(COLUMN).null_count == rows.num_rows:
        return rows.drop_columns([COLUMN]), SCHEMA.empty_table()
    good = pc.is_null(rows.column(COLUMN))
    return rows.filter(good).drop_columns([COLUMN]), _bad(rows.filter(pc.invert(good)), run, now or datetime.now(UTC))


def _bad(rows: pa.Table, run: str, now: datetime) -> pa.Table:
    reason = rows.column(COLUMN).combine_chunks()
    if isinstance(reason, pa.ChunkedArray):
        reason = pa.concat_arrays(reason.chunks) if reason.num_chunks else pa.array([], reason.type)
    constant = {"run_id": run, "ingested_at": now}
    columns = []
    for field in SCHEMA:
        if field.name in constant:
            column = pa.repeat(pa.scalar(constant[field.name], field.type), rows.num_rows)
        elif field.name in {one.name for one in REASON}:
            column = pc.struct_field(reason, field.name)
        elif field.name in rows.column_names:
            column = rows.column(field.name)
        else:
            column = pa.nulls(rows.num_rows, field.type)
        columns.append(column.cast(field.type))
    return pa.table(columns, schema=SCHEMA)
