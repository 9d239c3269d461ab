"""The Fetch request and its response as bytes: version 11, or 13 with the ids of topics (KIP-516). Pure.

Brokers since 2.3 have version 11, those since 3.1 version 13. In version 13 topics have no names, so a broker whose
topic was deleted and recreated refuses it. A response that ends too early raises WireError.
"""

import contextlib
import struct
from base64 import b64decode
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from spark_sink.fetch.from_leaders.wire_format import (
    ID_BYTES,
    NO_TAGS,
    CompactReader,
    FieldReader,
    WireError,
    classic_text,
    compact_length,
    compact_text,
    request,
)
from spark_sink.ranges.batch_offset import TopicPartition

_FETCH, _VERSION, _VERSION_BY_ID = 1, 11, 13
_VERSIONS = 18  # the request for the versions that a broker has
_CONSUMER, _NO_SESSION, _ANY_EPOCH = -1, 0, -1
_READ_COMMITTED = 1
_HEAD = struct.Struct(">ih24x")  # partition, error; three offsets: high watermark, last stable one, first of the log
_ABORTED_BYTES = 16
_API = struct.Struct(">hhh")

Ids = Mapping[str, bytes]
"""Ids of topics, sixteen bytes each."""


@dataclass(frozen=True, slots=True)
class Wanted:
    """What a request asks of a partition.

    Attributes:
        key: the partition.
        offset: of the first record.
        most: maximum number of bytes; the first partition of a request gets a whole batch even if that is larger.
        epoch: of the leader; a broker that knows of a newer one refuses (KIP-320). -1 if it is not known.
    """

    key: TopicPartition
    offset: int
    most: int
    epoch: int = _ANY_EPOCH


@dataclass(frozen=True, slots=True)
class Answered:
    """A partition in a response.

    Attributes:
        key: the partition.
        error: Kafka's code, 0 for none.
        aborted: whether transactions were aborted that may have records here.
        replica: the broker to ask instead (KIP-392), -1 for none.
        begin: place of the record batches in the response.
        size: bytes of the record batches; the last one may be cut off.
    """

    key: TopicPartition
    error: int
    aborted: bool
    replica: int
    begin: int
    size: int


def ids_in_bytes(ids: Mapping[str, str]) -> Ids:
    """Convert ids from base64 without padding; what is not an id is left out."""
    found: dict[str, bytes] = {}
    for topic, text in ids.items():
        with contextlib.suppress(ValueError):
            identity = b64decode(text + "==", validate=True)
            if len(identity) == ID_BYTES:
                found[topic] = identity
    return found


def versions_request(correlation: int, client: str) -> bytes:
    """Ask for the versions of requests that the broker has (KIP-35)."""
    return request(_VERSIONS, 0, correlation, client, b"")


def parse_versions(response: memoryview) -> bool:
    """Return whether the broker reads topics by their ids, from the response to `versions_request`.

    Raises:
        WireError: it is not one.
    """
    reader = FieldReader(response)
    if error := reader.int16():
        raise WireError(f"the broker does not list its versions: error {error}")
    found = [reader.fields(_API) for _ in range(reader.count())]
    return any(api == _FETCH and first <= _VERSION_BY_ID <= last for api, first, last in found)


def fetch_request(  # noqa: PLR0913 -- fields of the request
    correlation: int,
    client: str,
    wanted: Sequence[Wanted],
    *,
    wait_ms: int,
    most: int,
    committed: bool,
    rack: str,
    ids: Ids | None = None,
) -> bytes:
    """Ask for records.

    Args:
        correlation: number of the request.
        client: `client.id`.
        wanted: partitions of one broker, in the order in which the broker serves them.
        wait_ms: the broker's longest wait for a first byte.
        most: maximum number of bytes of the response.
        committed: leave out records of open transactions.
        rack: `client.rack`, empty for none.
        ids: of all these topics, for version 13.
    """
    by_topic: dict[str, list[Wanted]] = {}
    for one in wanted:
        by_topic.setdefault(one.key.topic, []).append(one)
    limits = struct.pack(">iiiibii", _CONSUMER, wait_ms, 1, most, _READ_COMMITTED * committed, _NO_SESSION, _ANY_EPOCH)
    if ids is None:
        topics = b"".join(
            classic_text(name) + struct.pack(">i", len(parts)) + b"".join(map(_partition, parts))
            for name, parts in by_topic.items()
        )
        body = limits + struct.pack(">i", len(by_topic)) + topics + struct.pack(">i", 0) + classic_text(rack)
        return request(_FETCH, _VERSION, correlation, client, body)
    topics = b"".join(
        ids[name] + compact_length(len(parts)) + b"".join(map(_partition_by_id, parts)) + NO_TAGS
        for name, parts in by_topic.items()
    )
    asked = compact_length(len(by_topic)) + topics + compact_length(0)  # and none to forget
    return request(_FETCH, _VERSION_BY_ID, correlation, client, NO_TAGS + limits + asked + compact_text(rack) + NO_TAGS)


def parse_fetch(response: memoryview, ids: Ids | None = None) -> list[Answered]:
    """Read the response to `fetch_request` with the same `ids`, without its length and number.

    Places are those in `response`.

    Raises:
        WireError: it is not one, or refuses the whole request.
    """
    reader = FieldReader(response) if ids is None else CompactReader(response)
    names = {} if ids is None else {identity: name for name, identity in ids.items()}
    reader.tags()
    reader.skip(4)
    if error := reader.int16():
        raise WireError(f"the broker refuses the request with error {error}")
    reader.skip(4)
    found: list[Answered] = []
    for _ in range(reader.count()):
        topic = reader.text() if ids is None else names.get(reader.take(ID_BYTES))
        if topic is None:
            raise WireError("the broker answers for a topic that was not asked")
        found.extend(_answered(reader, topic) for _ in range(reader.count()))
        reader.tags()
    return found


def _answered(reader: FieldReader, topic: str) -> Answered:
    partition, error = reader.fields(_HEAD)
    aborted = reader.count()
    for _ in range(aborted):
        reader.skip(_ABORTED_BYTES)
        reader.tags()
    replica, size = reader.int32(), reader.count()
    begin = reader.at
    reader.skip(size)
    reader.tags()
    return Answered(TopicPartition(topic, partition), error, aborted > 0, replica, begin, size)


def _partition(one: Wanted) -> bytes:
    return struct.pack(">iiqqi", one.key.partition, one.epoch, one.offset, -1, one.most)


def _partition_by_id(one: Wanted) -> bytes:
    # The epoch of the last record read, which a consumer would check for a truncation, is not known.
    return struct.pack(">iiqiqi", one.key.partition, one.epoch, one.offset, -1, -1, one.most) + NO_TAGS
