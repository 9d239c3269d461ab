"""Kafka records as Arrow record batches, in the columns of the raw format."""

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from spark_sink.fetch.librdkafka import headers, timestamps
from spark_sink.fetch.memory_gather import Addresses, binary
from spark_sink.fetch.raw_columns import TIMESTAMP

_LAST_MS = (2**63 - 1) // 1000


def record_batch(
    records: npt.NDArray[np.void], addresses: Addresses, topics: pa.Array, schema: pa.Schema
) -> pa.RecordBatch:
    """Copy records that librdkafka holds into a batch.

    Args:
        records: of the layout `MESSAGE`, shape (N,).
        addresses: of the same records, shape (N,).
        topics: their topics' names, N strings.
        schema: of `arrow_schema`.
    """
    stamps = timestamps(addresses)
    # A time beyond the range of microseconds (the year 294247) becomes null.
    known = (stamps >= 0) & (stamps <= _LAST_MS)
    columns = [
        topics,
        _numbers(records["partition"], pa.int32()),
        _numbers(records["offset"], pa.int64()),
        _numbers(stamps * 1000, TIMESTAMP, None if known.all() else known),
        binary(records["key"], records["key_bytes"]),
        binary(records["value"], records["value_bytes"]),
    ]
    if "headers" in schema.names:
        pairs = [headers(address) for address in addresses.tolist()]
        found = [None if one is None else [{"key": key, "value": value} for key, value in one] for one in pairs]
        columns.append(pa.array(found, schema.field("headers").type))
    return pa.RecordBatch.from_arrays(columns, schema=schema)


def _numbers(
    values: npt.NDArray[np.integer], kind: pa.DataType, valid: npt.NDArray[np.bool_] | None = None
) -> pa.Array:
    # Not pa.array: with a numpy array it imports pandas, which takes most of a second in a new worker.
    mask = None if valid is None else pa.py_buffer(np.packbits(valid, bitorder="little"))
    return pa.Array.from_buffers(kind, len(values), [mask, pa.py_buffer(np.ascontiguousarray(values))])
