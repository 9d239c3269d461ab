"""Record batches without their compression. Pure."""

import struct

import pyarrow as pa

from spark_sink.fetch.from_leaders.wire_format import WireError

_HEAD, _LENGTH_AT, _BEFORE_LENGTH = 61, 8, 12
_ATTRIBUTES_AT, _CODEC = 21, 0x07
_STREAMS = {1: "gzip", 3: "lz4", 4: "zstd"}  # Java frames snappy in a format of its own, which Arrow does not read


def uncompressed(batches: memoryview) -> bytes:
    """Return the same batches, each with its records as they were before the compression.

    Args:
        batches: complete record batches of format 2.

    Raises:
        WireError: a codec is unknown here, or its content is damaged.
    """
    found: list[bytes | memoryview] = []
    at = 0
    while at < len(batches):
        (length,) = struct.unpack_from(">i", batches, at + _LENGTH_AT)
        batch = batches[at : at + _BEFORE_LENGTH + length]
        (attributes,) = struct.unpack_from(">h", batch, _ATTRIBUTES_AT)
        codec = attributes & _CODEC
        found += [batch] if not codec else _plain(batch, attributes, codec)
        at += len(batch)
    return b"".join(found)


def _plain(batch: memoryview, attributes: int, codec: int) -> list[bytes]:
    if codec not in _STREAMS:
        raise WireError(f"codec {codec} is not read here")
    try:
        with pa.CompressedInputStream(pa.BufferReader(batch[_HEAD:]), _STREAMS[codec]) as stream:
            records = stream.read()
    except (pa.ArrowException, OSError) as error:
        raise WireError(f"compressed records are damaged: {error}") from error
    head = bytearray(batch[:_HEAD])
    struct.pack_into(">i", head, _LENGTH_AT, _HEAD - _BEFORE_LENGTH + len(records))
    struct.pack_into(">h", head, _ATTRIBUTES_AT, attributes & ~_CODEC)
    return [bytes(head), records]
