"""The Metadata request and its response as bytes: version 7, or 10 with the ids of topics (KIP-516). Pure.

Brokers since 2.3 have version 7, those since 2.8 version 10, whose lengths and empty fields are written in the compact
form of KIP-482. A response that ends too early raises WireError.
"""

import struct
from base64 import b64encode
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from spark_sink.fetch.from_leaders.wire_format import (
    ID_BYTES,
    NO_TAGS,
    CompactReader,
    FieldReader,
    classic_text,
    compact_length,
    compact_text,
    request,
)
from spark_sink.ranges.batch_offset import TopicPartition

_METADATA, _VERSION, _VERSION_WITH_IDS = 3, 7, 10
_PARTITION = struct.Struct(">hiii")  # error, partition, leader, its epoch


@dataclass(frozen=True, slots=True)
class Leaders:
    """The brokers that lead the partitions of some topics.

    Attributes:
        brokers: host and port by id.
        leaders: broker by partition, without partitions that have none or an error.
        ids: ids of topics in plain base64 without padding, if the response has them.
        epochs: of these leaders (KIP-320), -1 if the broker does not know it.
    """

    brokers: Mapping[int, tuple[str, int]]
    leaders: Mapping[TopicPartition, int]
    ids: Mapping[str, str] = field(default_factory=dict)
    epochs: Mapping[TopicPartition, int] = field(default_factory=dict)


def metadata_request(correlation: int, client: str, topics: Sequence[str], *, ids: bool = False) -> bytes:
    """Ask for the leaders of topics, and create none.

    Args:
        correlation: number of the request.
        client: `client.id`.
        topics: their names.
        ids: whether to ask for their ids, too; brokers before 2.8 close the connection then.
    """
    if not ids:
        names = b"".join(classic_text(name) for name in topics)
        return request(_METADATA, _VERSION, correlation, client, struct.pack(">i", len(topics)) + names + b"\0")
    named = b"".join(bytes(ID_BYTES) + compact_text(name) + NO_TAGS for name in topics)
    # Neither create topics nor list rights.
    body = NO_TAGS + compact_length(len(topics)) + named + b"\0\0\0" + NO_TAGS
    return request(_METADATA, _VERSION_WITH_IDS, correlation, client, body)


def parse_metadata(response: memoryview, *, ids: bool = False) -> Leaders:
    """Read the response to `metadata_request` with the same `ids`, without its length and number.

    Raises:
        WireError: it is not one.
    """
    reader = CompactReader(response) if ids else FieldReader(response)
    reader.tags()
    reader.skip(4)
    brokers: dict[int, tuple[str, int]] = {}
    for _ in range(reader.count()):
        number, host, port = reader.int32(), reader.text(), reader.int32()
        reader.text()
        reader.tags()
        brokers[number] = (host, port)
    reader.text()
    reader.skip(4)
    leaders: dict[TopicPartition, int] = {}
    epochs: dict[TopicPartition, int] = {}
    found: dict[str, str] = {}
    for _ in range(reader.count()):
        error, topic = reader.int16(), reader.text()
        identity = reader.take(ID_BYTES) if ids else b""
        reader.skip(1)
        for partition, leader, epoch in _led(reader):
            if leader in brokers:
                key = TopicPartition(topic, partition)
                leaders[key], epochs[key] = leader, epoch
        if ids:
            reader.skip(4)
            reader.tags()
        if any(identity) and not error:
            found[topic] = b64encode(identity).decode().rstrip("=")
    return Leaders(brokers, leaders, found, epochs)


def _led(reader: FieldReader) -> Iterator[tuple[int, int, int]]:
    for _ in range(reader.count()):
        error, partition, leader, epoch = reader.fields(_PARTITION)
        for _list in range(3):  # replicas, those in sync, those offline
            reader.skip(4 * reader.count())
        reader.tags()
        yield partition, -1 if error else leader, epoch
