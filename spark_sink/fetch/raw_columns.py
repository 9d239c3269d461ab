"""The columns of the raw format."""

from collections.abc import Collection

import pyarrow as pa

TIMESTAMP_TYPE = "timestampType"  # Spark's own name and numbers: 0 of the producer, 1 of the broker, -1 for none
LANDED = "_landed string"  # Spark's column if the tasks write the data files: descriptions of these files

_HEADER = pa.struct([pa.field("key", pa.string()), pa.field("value", pa.binary())])
TIMESTAMP = pa.timestamp("us", tz="UTC")
LAST_MS = (2**63 - 1) // 1000  # in the year 294247; a later time is null
_FIELDS = [
    pa.field("topic", pa.string()),
    pa.field("partition", pa.int32()),
    pa.field("offset", pa.int64()),
    pa.field("timestamp", TIMESTAMP),
    pa.field("key", pa.binary()),
    pa.field("value", pa.binary()),
]


def without_columns(rows: pa.RecordBatch, left_out: Collection[str]) -> pa.RecordBatch:
    """Return the rows without some columns; none of the others is copied."""
    return rows.select([name for name in rows.schema.names if name not in left_out]) if left_out else rows


def schema_without(columns: pa.Schema, left_out: Collection[str]) -> pa.Schema:
    """Return the same of a schema."""
    return pa.schema([field for field in columns if field.name not in left_out]) if left_out else columns


def arrow_schema(*, headers: bool, timestamp_type: bool = False) -> pa.Schema:
    """Return the columns; those of Spark are derived from them."""
    more = [pa.field("headers", pa.list_(pa.field("element", _HEADER)))] * headers
    return pa.schema([*_FIELDS, *more, *[pa.field(TIMESTAMP_TYPE, pa.int32())] * timestamp_type])
