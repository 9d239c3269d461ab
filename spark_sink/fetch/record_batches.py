"""Kafka records as Arrow record batches, in the columns of the raw format."""

import ctypes
from collections.abc import Iterator, Sequence

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

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
    columns = common_columns(records, topics, records["partition"])
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


def common_columns(
    records: npt.NDArray[np.void], topics: pa.Array, partitions: npt.NDArray[np.int32]
) -> list[pa.Array]:
    """Copy the columns that every batch has, in the order of `arrow_schema`.

    Args:
        records: with the fields offset, timestamp in ms, and address and bytes of key and value, shape (N,).
        topics: their topics' names, N strings.
        partitions: their partitions, shape (N,).
    """
    return [
        topics,
        numbers(partitions, pa.int32()),
        numbers(records["offset"], pa.int64()),
        _timestamps(records["timestamp"]),
        binary(records["key"], records["key_bytes"]),
        binary(records["value"], records["value_bytes"]),
    ]


def parts_by_bytes(records: npt.NDArray[np.void], batch_bytes: int) -> Iterator[slice]:
    """Part records so that a part has at most `batch_bytes` of keys and values; a larger record is one by itself."""
    sizes = np.cumsum(records["value_bytes"] + records["key_bytes"])
    begin = 0
    while begin < len(records):
        before = int(sizes[begin - 1]) if begin else 0
        end = max(begin + 1, int(np.searchsorted(sizes, before + batch_bytes, "right")))
        yield slice(begin, end)
        begin = end


def topic_column(names: Sequence[str], ends: Sequence[int]) -> pa.Array:
    """Return the topic of each record, given those of runs of records and the index after each run."""
    runs = pa.RunEndEncodedArray.from_arrays(pa.array(ends, pa.int32()), pa.array(names, pa.string()))
    return pc.run_end_decode(runs)


def _timestamps(milliseconds: npt.NDArray[np.int64]) -> pa.Array:
    """Return times since 1970, shape (N,), as timestamps; null for those before 1970 and for those that do not fit."""
    known = (milliseconds >= 0) & (milliseconds <= LAST_MS)
    return numbers(milliseconds * 1000, TIMESTAMP, None if known.all() else known)


def numbers(values: npt.NDArray[np.integer], kind: pa.DataType, valid: npt.NDArray[np.bool_] | None = None) -> pa.Array:
    """Return numbers of the width of `kind`, shape (N,), as an array; null where `valid` is False."""
    # Not pa.array: with a numpy array it imports pandas, which takes most of a second in a new worker.
    mask = None if valid is None else pa.py_buffer(np.packbits(valid, bitorder="little"))
    return pa.Array.from_buffers(kind, len(values), [mask, pa.py_buffer(np.ascontiguousarray(values))])
