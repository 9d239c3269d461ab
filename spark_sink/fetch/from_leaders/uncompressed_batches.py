"""Record batches without their compression. Pure."""

import struct

import pyarrow as pa

from spark_sink.fetch.from_leaders.snappy_blocks import without_snappy
from spark_sink.fetch.from_leaders.wire_format import WireError

_HEAD, _LENGTH_AT, _BEFORE_LENGTH = 61, 8, 12
_ATTRIBUTES_AT, _CODEC = 21, 0x07
_COUNT_AT = 57
LARGEST_BATCH = 256 << 20
"""A batch that is larger without its compression is not read here."""
_PART_BYTES = 256 << 10
_SNAPPY, _STREAMS = 2, {1: "gzip", 3: "lz4", 4: "zstd"}  # Arrow does not know the frame that Java has for snappy


def uncompressed(batches: memoryview, end: int, most: int) -> bytes:
    """Return the same batches, each with its records as they were before the compression.

    Args:
        batches: complete record batches of format 2.
        end: the first batch that begins at this offset or after it comes without its records, and is the last one.
        most: a batch that begins after that many bytes of the result is left out, with those that follow it: what
            compresses well would take a hundred times the memory of the response.

    Raises:
        WireError: a codec is unknown here, or its content is damaged.
    """
    found: list[bytes | memoryview] = []
    at = size = 0
    while at < len(batches) and size < most:
        (length,) = struct.unpack_from(">i", batches, at + _LENGTH_AT)
        batch = batches[at : at + _BEFORE_LENGTH + length]
        (attributes,) = struct.unpack_from(">h", batch, _ATTRIBUTES_AT)
        codec = attributes & _CODEC
        if struct.unpack_from(">q", batch)[0] >= end:
            found.append(_head(batch, attributes, 0, (0).to_bytes(4)))
            break
        parts = _plain(batch, attributes, codec) if codec else [batch]
        found += parts
        size += sum(map(len, parts))
        at += len(batch)
    return b"".join(found)


def _plain(batch: memoryview, attributes: int, codec: int) -> list[bytes | memoryview]:
    content = batch[_HEAD:]
    records = without_snappy(content, LARGEST_BATCH) if codec == _SNAPPY else _streamed(content, codec)
    return [_head(batch, attributes, len(records), batch[_COUNT_AT:_HEAD]), records]


def _streamed(content: memoryview, codec: int) -> bytes:
    if codec not in _STREAMS:
        raise WireError(f"codec {codec} is not read here")
    found: list[bytes] = []
    size = 0
    try:
        with pa.CompressedInputStream(pa.BufferReader(content), _STREAMS[codec]) as stream:
            # One read of as many bytes as are allowed would take five times as long for a batch of a megabyte.
            while size <= LARGEST_BATCH and (part := stream.read(_PART_BYTES)):
                found.append(part)
                size += len(part)
    except (pa.ArrowException, OSError) as error:
        raise WireError(f"compressed records are damaged: {error}") from error
    if size > LARGEST_BATCH:
        raise WireError("a batch is too large without its compression")
    return found[0] if len(found) == 1 else b"".join(found)


def _head(batch: memoryview, attributes: int, size: int, count: bytes | memoryview) -> bytes:
    """Return the head of a batch with that many bytes of records that are not compressed, and their count."""
    head = bytearray(batch[:_COUNT_AT]) + count
    struct.pack_into(">i", head, _LENGTH_AT, _HEAD - _BEFORE_LENGTH + size)
    struct.pack_into(">h", head, _ATTRIBUTES_AT, attributes & ~_CODEC)
    return bytes(head)
