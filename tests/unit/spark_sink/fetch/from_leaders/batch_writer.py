"""Writes record batches as brokers store them, by kafka-python's builder and with what only a broker sets."""

import struct
from collections.abc import Sequence
from dataclasses import dataclass

import pyarrow as pa
from kafka.record.default_records import DefaultRecordBatchBuilder

CODECS = {1: "gzip", 3: "lz4", 4: "zstd"}
SNAPPY, BLOCK_BYTES = 2, 32 << 10


@dataclass(frozen=True)
class Sent:
    """A record with its offset."""

    offset: int
    timestamp: int
    key: bytes | None
    value: bytes | None
    headers: tuple[tuple[str, bytes | None], ...] = ()


def written(
    records: Sequence[Sent], last: int, *, codec: int = 0, append_time: int | None = None, control: bool = False
) -> bytes:
    """A batch of these records.

    Args:
        records: ascending in offset, at least one.
        last: the batch's last offset, which a compaction may have removed.
        codec: Kafka's number of the compression.
        append_time: the broker's time, which replaces the records'.
        control: mark it as a transaction's marker.
    """
    builder = DefaultRecordBatchBuilder(
        magic=2,
        compression_type=0,
        is_transactional=False,
        producer_id=-1,
        producer_epoch=-1,
        base_sequence=-1,
        batch_size=1 << 30,
    )
    base = records[0].offset
    for one in records:
        builder.append(one.offset - base, one.timestamp, one.key, one.value, list(one.headers))
    batch = bytearray(builder.build())
    struct.pack_into(">q", batch, 0, base)
    struct.pack_into(">i", batch, 23, last - base)
    attributes = codec | (0x08 if append_time is not None else 0) | (0x20 if control else 0)
    struct.pack_into(">h", batch, 21, attributes)
    if append_time is not None:
        struct.pack_into(">q", batch, 35, append_time)
    if codec:
        batch[61:] = compressed(bytes(batch[61:]), codec)
        struct.pack_into(">i", batch, 8, len(batch) - 12)
    return bytes(batch)


def compressed(content: bytes, codec: int) -> bytes:
    """What is behind the head of a batch of this codec."""
    if codec == SNAPPY:
        return framed_snappy([content[at : at + BLOCK_BYTES] for at in range(0, len(content), BLOCK_BYTES)])
    stream = pa.BufferOutputStream()
    with pa.CompressedOutputStream(stream, CODECS.get(codec, "gzip")) as out:
        out.write(content)
    return bytes(stream.getvalue().to_pybytes())


def framed_snappy(parts: Sequence[bytes]) -> bytes:
    """Blocks in snappy-java's frame."""
    blocks = [pa.compress(part, "snappy", asbytes=True) for part in parts]
    return b"".join(
        [b"\x82SNAPPY\0", struct.pack(">II", 1, 1), *(struct.pack(">I", len(block)) + block for block in blocks)]
    )
