"""Kafka records as Arrow record batches, in the columns of the raw format."""

import ctypes

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from spark_sink.fetch.librdkafka_symbols import Addresses, library
from spark_sink.fetch.message_copy import binary, headers
from spark_sink.fetch.raw_columns import LAST_MS, TIMESTAMP, TIMESTAMP_TYPE


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
    columns = [
        topics,
        numbers(records["partition"], pa.int32()),
        numbers(records["offset"], pa.int64()),
        timestamps(records["timestamp"]),
        binary(records["key"], records["key_bytes"]),
        binary(records["value"], records["value_bytes"]),
    ]
    if "headers" in schema.names:
        columns.append(headers(addresses, schema.field("headers").type))
    if TIMESTAMP_TYPE in schema.names:
        columns.append(numbers(_timestamp_types(addresses), pa.int32()))
    return pa.RecordBatch.from_arrays(columns, schema=schema)


def _timestamp_types(addresses: Addresses) -> npt.NDArray[np.int32]:
    read, kind = library(quick=True).rd_kafka_message_timestamp, ctypes.c_int()
    place = ctypes.byref(kind)

    def of(address: int) -> int:
        read(address, place)
        return kind.value - 1  # librdkafka's RD_KAFKA_TIMESTAMP_NOT_AVAILABLE is 0

    return np.fromiter(map(of, addresses.tolist()), np.int32, len(addresses))


def timestamps(milliseconds: npt.NDArray[np.int64]) -> pa.Array:
    """Return times since 1970, shape (N,), as timestamps; null for those before 1970 and for those that do not fit."""
    known = (milliseconds >= 0) & (milliseconds <= LAST_MS)
    return numbers(milliseconds * 1000, TIMESTAMP, None if known.all() else known)


def numbers(values: npt.NDArray[np.integer], kind: pa.DataType, valid: npt.NDArray[np.bool_] | None = None) -> pa.Array:
    """Return numbers of the width of `kind`, shape (N,), as an array; null where `valid` is False."""
    # Not pa.array: with a numpy array it imports pandas, which takes most of a second in a new worker.
    mask = None if valid is None else pa.py_buffer(np.packbits(valid, bitorder="little"))
    return pa.Array.from_buffers(kind, len(values), [mask, pa.py_buffer(np.ascontiguousarray(values))])
