"""Decoded records: where their parts are in the memory of a response, and their copy into Arrow."""

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from spark_sink.fetch.from_leaders import batch_decoder_compiled as decoder
from spark_sink.fetch.from_leaders.wire_format import WireError
from spark_sink.fetch.message_copy import binary
from spark_sink.fetch.raw_columns import TIMESTAMP_TYPE
from spark_sink.fetch.record_batches import common_columns, numbers


def arrow_batch(
    records: npt.NDArray[np.void], topics: pa.Array, partitions: npt.NDArray[np.int32], schema: pa.Schema
) -> pa.RecordBatch:
    """Copy records into a batch.

    Args:
        records: of the layout `RECORD`, whose bytes are still in memory, shape (N,).
        topics: their topics' names, N strings.
        partitions: their partitions, shape (N,).
        schema: of `arrow_schema`.

    Raises:
        WireError: a record's headers are damaged.
    """
    columns = common_columns(records, topics, partitions)
    if "headers" in schema.names:
        columns.append(_headers(records, schema.field("headers").type))
    if TIMESTAMP_TYPE in schema.names:
        columns.append(numbers(records["timestamp_type"].astype(np.int32), pa.int32()))
    return pa.RecordBatch.from_arrays(columns, schema=schema)


def _headers(records: npt.NDArray[np.void], kind: pa.ListType) -> pa.Array:
    ends, cells, sound = decoder.header_cells(records)
    if not sound:
        raise WireError("the headers of a record are damaged")
    names = pa.array([_name(name) for name in binary(cells[0], cells[1]).to_pylist()], pa.string())
    pairs = pa.StructArray.from_arrays([names, binary(cells[2], cells[3])], fields=list(kind.value_type))
    none = ends[1:] == ends[:-1]  # a record without headers has a null, as librdkafka says it
    mask = pa.py_buffer(np.packbits(~none, bitorder="little")) if none.any() else None
    return pa.Array.from_buffers(kind, len(records), [mask, pa.py_buffer(ends)], -1, 0, [pairs])


def _name(given: bytes) -> str:
    """Return a header's name as librdkafka gives it: a string of C."""
    return given.partition(b"\0")[0].decode("utf-8", "replace")
