"""Snappy with and without Java's frame is read as it was written, and damage is an error."""

import contextlib
import struct

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from spark_sink.fetch.from_leaders.snappy_blocks import without_snappy
from spark_sink.fetch.from_leaders.wire_format import WireError
from tests.unit.spark_sink.fetch.from_leaders.batch_writer import framed_snappy

CONTENT = b"the same words, the same words, and others: " * 50


@given(st.lists(st.binary(max_size=200), max_size=5))
def test_blocks_are_put_together(parts: list[bytes]) -> None:
    """Java's clients cut the records of a batch into blocks of 32 KiB; a frame may also have none."""
    assert without_snappy(memoryview(framed_snappy(parts)), 1_000) == b"".join(parts)


@given(st.binary(max_size=500))
def test_a_block_without_a_frame_is_read(content: bytes) -> None:
    """Clients in C and Go write it so."""
    assert without_snappy(memoryview(pa.compress(content, "snappy", asbytes=True)), 500) == content


def test_content_that_is_cut_off_anywhere_is_an_error() -> None:
    """A frame that ends between two blocks is complete; there is nothing that says how many it has."""
    block = pa.compress(CONTENT, "snappy", asbytes=True)
    frame = framed_snappy([CONTENT])
    for whole, complete in ((block, set()), (frame, {16})):
        for end in set(range(len(whole))) - complete - {0}:
            with pytest.raises(WireError):
                without_snappy(memoryview(whole)[:end], 1 << 20)
    with pytest.raises(WireError):
        without_snappy(memoryview(b""), 1 << 20)


@given(st.data())
def test_damaged_content_is_an_error_or_of_the_size_that_is_allowed(data: st.DataObject) -> None:
    """A damaged length must not take the memory of the machine."""
    content = bytearray(framed_snappy([CONTENT, CONTENT]))
    for _ in range(data.draw(st.integers(1, 4))):
        content[data.draw(st.integers(0, len(content) - 1))] = data.draw(st.integers(0, 255))
    with contextlib.suppress(WireError):
        assert len(without_snappy(memoryview(content), 10_000)) <= 10_000


def test_more_than_the_allowed_size_is_not_decompressed() -> None:
    """Over all blocks together, whatever a length claims."""
    for content in (framed_snappy([CONTENT, CONTENT]), pa.compress(CONTENT * 2, "snappy", asbytes=True)):
        assert without_snappy(memoryview(content), 2 * len(CONTENT)) == 2 * CONTENT
        with pytest.raises(WireError, match="too large"):
            without_snappy(memoryview(content), 2 * len(CONTENT) - 1)
    with pytest.raises(WireError, match="no length"):
        without_snappy(memoryview(struct.pack(">5B", *[0xFF] * 5)), 1 << 40)
