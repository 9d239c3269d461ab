"""The columns of the raw format, for Spark and for Arrow."""

import pyarrow as pa

RAW = "topic string, partition int, offset bigint, timestamp timestamp, key binary, value binary"
HEADERS = "headers array<struct<key: string, value: binary>>"
LANDED = "_landed string"  # Spark's column if the tasks write the data files: descriptions of these files

_HEADER = pa.struct([pa.field("key", pa.string()), pa.field("value", pa.binary())])
TIMESTAMP = pa.timestamp("us", tz="UTC")
_FIELDS = [
    pa.field("topic", pa.string()),
    pa.field("partition", pa.int32()),
    pa.field("offset", pa.int64()),
    pa.field("timestamp", TIMESTAMP),
    pa.field("key", pa.binary()),
    pa.field("value", pa.binary()),
]


def schema(*, headers: bool) -> str:
    """Return the columns in Spark's notation."""
    return f"{RAW}, {HEADERS}" if headers else RAW


def arrow_schema(*, headers: bool) -> pa.Schema:
    """Return the same columns as Arrow types; pyspark compares them with those it derives from `schema`."""
    return pa.schema([*_FIELDS, pa.field("headers", pa.list_(pa.field("element", _HEADER)))] if headers else _FIELDS)
