"""Requests and responses of the brokers as bytes: Metadata 7 and Fetch 11, which brokers since 2.3 have. Pure.

Kafka's protocol guide describes them. A response that ends too early raises WireError.
"""

import struct
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from spark_sink.errors import SparkSinkError
from spark_sink.ranges.batch_offset import TopicPartition

_FETCH, _FETCH_VERSION = 1, 11
_METADATA, _METADATA_VERSION = 3, 7
_CONSUMER, _NO_SESSION, _ANY_EPOCH = -1, 0, -1
_READ_COMMITTED = 1


class WireError(SparkSinkError):
    """A broker's response does not have the expected form."""


@dataclass(frozen=True, slots=True)
class Wanted:
    """What a request asks of a partition.

    Attributes:
        key: the partition.
        offset: of the first record.
        most: bytes; the first partition of a request gets a whole batch also if that is larger.
    """

    key: TopicPartition
    offset: int
    most: int


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


@dataclass(frozen=True, slots=True)
class Leaders:
    """Who leads.

    Attributes:
        brokers: host and port by id.
        leaders: broker by partition, without partitions that have none or an error.
    """

    brokers: Mapping[int, tuple[str, int]]
    leaders: Mapping[TopicPartition, int]


def metadata_request(correlation: int, client: str, topics: Sequence[str]) -> bytes:
    """Ask for the leaders of topics, and create none."""
    names = b"".join(_text(name) for name in topics)
    return _request(_METADATA, _METADATA_VERSION, correlation, client, struct.pack(">i", len(topics)) + names + b"\0")


def fetch_request(  # noqa: PLR0913 -- fields of the request
    correlation: int, client: str, wanted: Sequence[Wanted], *, wait_ms: int, most: int, committed: bool, rack: str
) -> bytes:
    """Ask for records.

    Args:
        correlation: number of the request.
        client: `client.id`.
        wanted: partitions of one broker, in the order in which it looks at them.
        wait_ms: the broker's longest wait for a first byte.
        most: bytes of the response.
        committed: leave out records of open transactions.
        rack: `client.rack`, empty for none.
    """
    by_topic: dict[str, list[Wanted]] = {}
    for one in wanted:
        by_topic.setdefault(one.key.topic, []).append(one)
    head = struct.pack(
        ">iiiibiii", _CONSUMER, wait_ms, 1, most, _READ_COMMITTED * committed, _NO_SESSION, _ANY_EPOCH, len(by_topic)
    )
    topics = b"".join(_text(name) + _partitions(parts) for name, parts in by_topic.items())
    return _request(_FETCH, _FETCH_VERSION, correlation, client, head + topics + struct.pack(">i", 0) + _text(rack))


def parse_metadata(response: memoryview) -> Leaders:
    """Read the response to `metadata_request`, without its length and number.

    Raises:
        WireError: it is not one.
    """
    reader = _Reader(response)
    reader.skip(4)
    brokers: dict[int, tuple[str, int]] = {}
    for _ in range(reader.count()):
        number, host, port = reader.int32(), reader.text(), reader.int32()
        reader.text()
        brokers[number] = (host, port)
    reader.text()
    reader.skip(4)
    leaders: dict[TopicPartition, int] = {}
    for _ in range(reader.count()):
        reader.skip(2)
        topic = reader.text()
        reader.skip(1)
        for partition, leader in _led(reader):
            if leader in brokers:
                leaders[TopicPartition(topic, partition)] = leader
    return Leaders(brokers, leaders)


def parse_fetch(response: memoryview) -> list[Answered]:
    """Read the response to `fetch_request`, without its length and number; places are those in `response`.

    Raises:
        WireError: it is not one, or refuses the whole request.
    """
    reader = _Reader(response)
    reader.skip(4)
    if error := reader.int16():
        raise WireError(f"the broker refuses the request with error {error}")
    reader.skip(4)
    found: list[Answered] = []
    for _ in range(reader.count()):
        topic = reader.text()
        found.extend(_answered(reader, topic) for _ in range(reader.count()))
    return found


def _led(reader: "_Reader") -> Iterator[tuple[int, int]]:
    for _ in range(reader.count()):
        error, partition, leader = reader.int16(), reader.int32(), reader.int32()
        reader.skip(4)
        for _list in range(3):  # replicas, those in sync, those offline
            reader.skip(4 * reader.count())
        yield partition, -1 if error else leader


def _answered(reader: "_Reader", topic: str) -> Answered:
    partition, error = reader.int32(), reader.int16()
    reader.skip(24)  # three offsets: the high watermark, the last stable one, and the first of the log
    aborted = reader.count()
    reader.skip(16 * aborted)
    replica, size = reader.int32(), max(reader.int32(), 0)
    begin = reader.at
    reader.skip(size)
    return Answered(TopicPartition(topic, partition), error, aborted > 0, replica, begin, size)


def _partitions(wanted: Sequence[Wanted]) -> bytes:
    parts = (struct.pack(">iiqqi", one.key.partition, -1, one.offset, -1, one.most) for one in wanted)
    return struct.pack(">i", len(wanted)) + b"".join(parts)


def _request(api: int, version: int, correlation: int, client: str, body: bytes) -> bytes:
    whole = struct.pack(">hhi", api, version, correlation) + _text(client) + body
    return struct.pack(">i", len(whole)) + whole


def _text(text: str) -> bytes:
    content = text.encode()
    return struct.pack(">h", len(content)) + content


class _Reader:
    """Takes fields from a response, one after the other."""

    def __init__(self, content: memoryview) -> None:
        self._content = content
        self.at = 0

    def skip(self, size: int) -> None:
        if size < 0 or self.at + size > len(self._content):
            raise WireError("a response ends too early")
        self.at += size

    def int16(self) -> int:
        return self._number(">h", 2)

    def int32(self) -> int:
        return self._number(">i", 4)

    def count(self) -> int:
        """Length of a list, 0 for a null."""
        return max(self.int32(), 0)

    def text(self) -> str:
        """A text, empty for a null."""
        size = max(self.int16(), 0)
        begin = self.at
        self.skip(size)
        try:
            return bytes(self._content[begin : self.at]).decode()
        except UnicodeDecodeError as error:
            raise WireError("a response has a text that is not UTF-8") from error

    def _number(self, form: str, size: int) -> int:
        begin = self.at
        self.skip(size)
        (found,) = struct.unpack_from(form, self._content, begin)
        return int(found)
