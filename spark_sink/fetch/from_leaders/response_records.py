"""The records of one response, from its bytes to Arrow batches."""

from collections.abc import Iterator
from typing import Final, NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from spark_sink.fetch.from_leaders import batch_decoder_compiled as decoder
from spark_sink.fetch.from_leaders.fetch_format import Answered
from spark_sink.fetch.from_leaders.record_layout import RECORD
from spark_sink.fetch.from_leaders.uncompressed_batches import uncompressed
from spark_sink.fetch.from_leaders.wire_format import WireError
from spark_sink.fetch.message_copy import binary
from spark_sink.fetch.raw_columns import TIMESTAMP_TYPE
from spark_sink.fetch.record_batches import common_columns, numbers, parts_by_bytes, topic_column
from spark_sink.ranges.batch_offset import TopicPartition

_UNCOMPRESSED_BYTES: Final = 64 << 20  # of a response; what does not fit is asked for again


class Read(NamedTuple):
    """What was read of a partition.

    Attributes:
        key: the partition.
        position: the offset after it.
        first, last: the records' indexes, the last one excluded.
        whole: whether all batches of the response could be read.
    """

    key: TopicPartition
    position: int
    first: int
    last: int
    whole: bool


class _Bytes(NamedTuple):
    """A part of a response, or what was compressed in it, and its address."""

    content: memoryview
    address: int

    def cut(self, size: int) -> "_Bytes":
        return _Bytes(self.content[:size], self.address)


class _Span(NamedTuple):
    """Whole record batches of a partition, the number of their records, and the wanted offsets `[begin, end)`."""

    key: TopicPartition
    batches: _Bytes
    records: int
    begin: int
    end: int
    whole: bool


class ResponseRecords:
    """The wanted records of a response, whose bytes must not change while this is used.

    Args:
        response: as received.
        answered: partitions of the response, and of each the wanted offsets `[begin, end)`.
    """

    def __init__(self, response: memoryview, answered: list[tuple[Answered, tuple[int, int]]]) -> None:
        self._spans: list[_Span] = []
        room, address = _UNCOMPRESSED_BYTES, _address(response)
        for one, wanted in answered:
            batches = _Bytes(response[one.begin : one.begin + one.size], address + one.begin)
            self._spans.append(_span(one, batches, *wanted, room))
            room -= len(self._spans[-1].batches.content)
        self.records = np.empty(sum(one.records for one in self._spans), RECORD)
        self.read = list(self._decode())

    def batches(self, schema: pa.Schema, batch_bytes: int) -> Iterator[pa.RecordBatch]:
        """Yield the records in batches of `batch_bytes` each; a larger record is a batch by itself.

        Raises:
            WireError: the headers of a record are damaged.
        """
        if not self.read or not self.read[-1].last:
            return
        records = self.records[: self.read[-1].last]
        topics, partitions = self._names()
        for part in parts_by_bytes(records, batch_bytes):
            yield arrow_batch(records[part], topics[part], partitions[part], schema)

    def sizes(self) -> list[int]:
        """Return the bytes of keys and values of each partition in `read`."""
        records = self.records[: self.read[-1].last if self.read else 0]
        total = np.zeros(len(records) + 1, np.int64)
        np.cumsum(records["key_bytes"] + records["value_bytes"], out=total[1:])
        ends = total[[one.last for one in self.read]] - total[[one.first for one in self.read]]
        found: list[int] = ends.tolist()
        return found

    def _decode(self) -> Iterator[Read]:
        last = 0
        for one in self._spans:
            first, (content, address) = last, one.batches
            count, position, sound = decoder.decode(address, len(content), one.begin, one.end, self.records, first)
            last += count
            yield Read(one.key, position, first, last, one.whole and sound)

    def _names(self) -> tuple[pa.Array, npt.NDArray[np.int32]]:
        """Return the topic and the partition of each record."""
        found = [one for one in self.read if one.last > one.first]
        topics = topic_column([one.key.topic for one in found], [one.last for one in found])
        numbers = np.array([one.key.partition for one in found], np.int32)
        return topics, np.repeat(numbers, [one.last - one.first for one in found])


def _span(answered: Answered, batches: _Bytes, begin: int, end: int, room: int) -> _Span:
    size, records, compressed, sound = decoder.survey(batches.address, len(batches.content))
    batches = batches.cut(size)
    if compressed:
        try:
            content = memoryview(uncompressed(batches.content, end, room))
        except WireError:
            return _Span(answered.key, batches.cut(0), 0, begin, end, whole=False)
        batches = _Bytes(content, _address(content))
        size, records, _, sound = decoder.survey(batches.address, len(content))
        batches = batches.cut(size)
    return _Span(answered.key, batches, records, begin, end, sound)


def _address(content: memoryview) -> int:
    return np.frombuffer(content, np.uint8).ctypes.data if len(content) else 0


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
