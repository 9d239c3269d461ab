"""Snappy as Kafka's clients write it: in snappy-java's frame of several blocks, or as one block without a frame. Pure.

The frame (https://github.com/xerial/snappy-java) has a magic of eight bytes, its version, the oldest version that reads
it, and then blocks, each after its length as four bytes, big-endian.
"""

from collections.abc import Iterator
from typing import Final

import pyarrow as pa

from spark_sink.fetch.from_leaders.wire_format import WireError

_MAGIC: Final = b"\x82SNAPPY\0"
_FRAME_HEAD, _LENGTH_BYTES = len(_MAGIC) + 8, 4
_VARINT_BYTES, _CONTINUED = 5, 0x80


def without_snappy(content: memoryview, most: int) -> bytes:
    """Return the content of one or more blocks.

    Args:
        content: what a record batch has behind its head.
        most: bytes that the result may have.

    Raises:
        WireError: the content is damaged, or larger than `most`.
    """
    found: list[bytes] = []
    room = most
    for block in _blocks(content):
        size = _size(block)
        if size > room:
            raise WireError("a batch is too large without its compression")
        try:
            found.append(pa.decompress(block, decompressed_size=size, codec="snappy", asbytes=True))
        except (pa.ArrowException, OSError) as error:
            raise WireError(f"compressed records are damaged: {error}") from error
        room -= size
    return b"".join(found)


def _blocks(content: memoryview) -> Iterator[memoryview]:
    if bytes(content[: len(_MAGIC)]) != _MAGIC:
        yield content
        return
    begin, end = 0, _FRAME_HEAD
    while end < len(content):
        begin = end + _LENGTH_BYTES
        end = begin + int.from_bytes(content[end:begin])
        yield content[begin:end]
    if end > len(content):
        raise WireError("a block of snappy is cut off")


def _size(block: memoryview) -> int:
    """Return the length of a block without its compression, which is a varint before it."""
    size = 0
    for place, byte in enumerate(block[:_VARINT_BYTES]):
        size |= (byte & 0x7F) << 7 * place
        if byte < _CONTINUED:
            return size
    raise WireError("a block of snappy has no length")
