"""Compressed batches take no more memory than a task can spare, whatever they hold."""

import struct

import pyarrow as pa
import pytest

pytest.importorskip("spark_sink.fetch.from_leaders.batch_decoder_compiled", reason="needs a C compiler at the build")

from spark_sink.fetch.from_leaders import response_records, uncompressed_batches
from spark_sink.fetch.from_leaders.fetch_format import Answered
from spark_sink.fetch.from_leaders.response_records import Read, ResponseRecords
from spark_sink.fetch.from_leaders.uncompressed_batches import uncompressed
from spark_sink.fetch.raw_columns import arrow_schema
from spark_sink.ranges.batch_offset import TopicPartition
from tests.unit.spark_sink.fetch.from_leaders.batch_writer import Sent, written

ZEROS = bytes(100_000)


def batch(offset: int, codec: int = 4) -> bytes:
    """One record that compresses to almost nothing."""
    return written([Sent(offset, 1, None, ZEROS)], offset, codec=codec)


def read(parts: list[bytes], begin: int, end: int) -> tuple[list[int], list[Read]]:
    """Offsets of the rows of partitions with the same range, and what was read of each."""
    asked = [
        (
            Answered(
                TopicPartition("t", n), 0, aborted=False, replica=-1, begin=sum(map(len, parts[:n])), size=len(one)
            ),
            (begin, end),
        )
        for n, one in enumerate(parts)
    ]
    records = ResponseRecords(memoryview(b"".join(parts)), asked)
    schema = arrow_schema(headers=False)
    table = pa.Table.from_batches(records.batches(schema, 1 << 30), schema)
    return table["offset"].to_pylist(), records.read


@pytest.mark.parametrize("codec", [0, 1, 2, 3, 4])
def test_what_lies_behind_the_range_keeps_its_compression(codec: int) -> None:
    """A small range in well compressed records; the first batch behind it still says that the range is complete."""
    content = b"".join(batch(offset, codec) for offset in (3, 5, 9, 10, 11))
    plain = uncompressed(memoryview(content), 7, 1 << 30)
    assert 2 * len(ZEROS) < len(plain) < 3 * len(ZEROS)
    assert read([batch(3, 4) + content[len(batch(3, codec)) :]], 3, 7) == (
        [3, 5],
        [Read(TopicPartition("t", 0), 10, 0, 2, whole=True)],
    )


def test_a_response_is_decompressed_as_far_as_memory_is_spared_for_it(monkeypatch: pytest.MonkeyPatch) -> None:
    """The rest is left out, not given up: the next request asks for it again, and at least one batch was read."""
    monkeypatch.setattr(response_records, "_UNCOMPRESSED_BYTES", 150_000)
    parts = [b"".join(map(batch, range(4)))] * 2
    offsets, found = read(parts, 0, 4)
    assert offsets == [0, 1]
    assert [(one.position, one.whole) for one in found] == [(2, True), (0, True)]


def test_a_batch_that_is_too_large_is_left_to_librdkafka(monkeypatch: pytest.MonkeyPatch) -> None:
    """It may be damaged, and a length does not fit four bytes beyond 2 GiB."""
    monkeypatch.setattr(uncompressed_batches, "LARGEST_BATCH", 99_999)
    offsets, (found,) = read([batch(0)], 0, 1)
    assert (offsets, found.position, found.whole) == ([], 0, False)


def test_records_that_decompress_to_nothing_are_not_passed_over() -> None:
    """The batch says that it has one."""
    empty = bytearray(batch(0)[:61]) + pa.compress(b"", "zstd", asbytes=True)
    struct.pack_into(">i", empty, 8, len(empty) - 12)
    offsets, (found,) = read([bytes(empty)], 0, 1)
    assert (offsets, found.position, found.whole) == ([], 0, False)
