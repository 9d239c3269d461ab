"""The records of one response, from its bytes to Arrow batches."""

from collections.abc import Iterator
from typing import Final, NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from spark_sink.fetch.from_leaders import batch_decoder_compiled as decoder
from spark_sink.fetch.from_leaders.decoded_records import arrow_batch
from spark_sink.fetch.from_leaders.record_layout import RECORD
from spark_sink.fetch.from_leaders.uncompressed_batches import uncompressed
from spark_sink.fetch.from_leaders.wire_format import Answered, WireError
from spark_sink.fetch.record_batches import parts_by_bytes, topic_column
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


class _Span(NamedTuple):
    """Whole record batches of a partition, the number of their records, and the wanted offsets `[begin, end)`."""

    key: TopicPartition
    batches: memoryview
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
        room = _UNCOMPRESSED_BYTES
        for one, wanted in answered:
            self._spans.append(_span(one, response[one.begin : one.begin + one.size], *wanted, room))
            room -= len(self._spans[-1].batches)
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

    def _decode(self) -> Iterator[Read]:
        last = 0
        for one in self._spans:
            first, address = last, _address(one.batches)
            count, position, sound = decoder.decode(address, len(one.batches), one.begin, one.end, self.records, first)
            last += count
            yield Read(one.key, position, first, last, one.whole and sound)

    def _names(self) -> tuple[pa.Array, npt.NDArray[np.int32]]:
        """Return the topic and the partition of each record."""
        found = [one for one in self.read if one.last > one.first]
        topics = topic_column([one.key.topic for one in found], [one.last for one in found])
        numbers = np.array([one.key.partition for one in found], np.int32)
        return topics, np.repeat(numbers, [one.last - one.first for one in found])


def _span(answered: Answered, batches: memoryview, begin: int, end: int, room: int) -> _Span:
    size, records, compressed, sound = decoder.survey(_address(batches), len(batches))
    batches = batches[:size]
    if compressed:
        try:
            batches = memoryview(uncompressed(batches, end, room))
        except WireError:
            return _Span(answered.key, batches[:0], 0, begin, end, whole=False)
        size, records, _, sound = decoder.survey(_address(batches), len(batches))
        batches = batches[:size]
    return _Span(answered.key, batches, records, begin, end, sound)


def _address(content: memoryview) -> int:
    return np.frombuffer(content, np.uint8).ctypes.data if len(content) else 0
