"""The columns of the raw format, as Spark writes them and as Arrow does."""

import pyarrow as pa

RAW = "topic string, partition int, offset bigint, timestamp timestamp, key binary, value binary"
HEADERS = "headers array<struct<key: string, value: binary>>"
LANDED = "_landed string"  # what passes through Spark where the tasks write the data files

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
    """The columns as Spark writes them."""
    return f"{RAW}, {HEADERS}" if headers else RAW


def arrow_schema(*, headers: bool) -> pa.Schema:
    """The same columns as Arrow types; exactly what pyspark makes of `schema`, which it compares."""
    return pa.schema([*_FIELDS, pa.field("headers", pa.list_(pa.field("element", _HEADER)))] if headers else _FIELDS)
