"""Kafka records as Arrow record batches, in the columns of the raw format."""

from collections.abc import Sequence

import pyarrow as pa
from confluent_kafka import Message

RAW = "topic string, partition int, offset bigint, timestamp timestamp, key binary, value binary"
HEADERS = "headers array<struct<key: string, value: binary>>"

_HEADER = pa.struct([pa.field("key", pa.string()), pa.field("value", pa.binary())])


def schema(*, headers: bool) -> str:
    """The columns as Spark writes them."""
    return f"{RAW}, {HEADERS}" if headers else RAW


def arrow_schema(*, headers: bool) -> pa.Schema:
    """The same columns as Arrow types; exactly what pyspark makes of `schema`, which it compares."""
    fields = [
        pa.field("topic", pa.string()),
        pa.field("partition", pa.int32()),
        pa.field("offset", pa.int64()),
        pa.field("timestamp", pa.timestamp("us", tz="UTC")),
        pa.field("key", pa.binary()),
        pa.field("value", pa.binary()),
    ]
    if headers:
        fields.append(pa.field("headers", pa.list_(pa.field("element", _HEADER))))
    return pa.schema(fields)


def record_batch(messages: Sequence[Message], schema: pa.Schema) -> pa.RecordBatch:
    """Put records, in the order given, into one batch."""
    # map over the C methods: a comprehension costs twice as much, and this is where the time goes.
    stamps = pa.array([stamp[1] if stamp[0] else None for stamp in map(Message.timestamp, messages)], pa.int64())
    columns = [
        pa.array(map(Message.topic, messages), pa.string(), size=len(messages)),
        pa.array(map(Message.partition, messages), pa.int32(), size=len(messages)),
        pa.array(map(Message.offset, messages), pa.int64(), size=len(messages)),
        pa.compute.multiply(stamps, 1000).cast(pa.timestamp("us", tz="UTC")),
        pa.array(map(Message.key, messages), pa.binary(), size=len(messages)),
        pa.array(map(Message.value, messages), pa.binary(), size=len(messages)),
    ]
    if "headers" in schema.names:
        columns.append(pa.array([_headers(one) for one in messages], schema.field("headers").type))
    return pa.RecordBatch.from_arrays(columns, schema=schema)


def _headers(message: Message) -> list[dict[str, object]] | None:
    found = message.headers()
    if found is None:
        return None
    pairs = found.items() if isinstance(found, dict) else found
    return [{"key": key, "value": value} for key, value in pairs]
