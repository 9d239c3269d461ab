"""Requests and responses of the brokers as bytes, and Fetch in version 11, which brokers since 2.3 have. Pure.

Kafka's protocol guide describes them. A response that ends too early raises WireError.
"""

import struct
from collections.abc import Sequence
from dataclasses import dataclass

from spark_sink.errors import SparkSinkError
from spark_sink.ranges.batch_offset import TopicPartition

_FETCH, _FETCH_VERSION = 1, 11
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
    topics = b"".join(classic_text(name) + _partitions(parts) for name, parts in by_topic.items())
    return request(
        _FETCH, _FETCH_VERSION, correlation, client, head + topics + struct.pack(">i", 0) + classic_text(rack)
    )


def parse_fetch(response: memoryview) -> list[Answered]:
    """Read the response to `fetch_request`, without its length and number; places are those in `response`.

    Raises:
        WireError: it is not one, or refuses the whole request.
    """
    reader = FieldReader(response)
    reader.skip(4)
    if error := reader.int16():
        raise WireError(f"the broker refuses the request with error {error}")
    reader.skip(4)
    found: list[Answered] = []
    for _ in range(reader.count()):
        topic = reader.text()
        found.extend(_answered(reader, topic) for _ in range(reader.count()))
    return found


def _answered(reader: "FieldReader", topic: str) -> Answered:
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


def request(api: int, version: int, correlation: int, client: str, body: bytes) -> bytes:
    """Return a request with its length.

    Args:
        api: number of the call.
        version: of its form.
        correlation: number of the request.
        client: `client.id`.
        body: what follows, in the compact form after the tags of the head.
    """
    whole = struct.pack(">hhi", api, version, correlation) + classic_text(client) + body
    return struct.pack(">i", len(whole)) + whole


def classic_text(text: str) -> bytes:
    """Return a text with its length, as it is outside of the compact form."""
    content = text.encode()
    return struct.pack(">h", len(content)) + content


class FieldReader:
    """Takes fields from a response, one after the other."""

    def __init__(self, content: memoryview) -> None:
        self._content = content
        self.at = 0

    def skip(self, size: int) -> None:
        """Pass these bytes over."""
        if size < 0 or self.at + size > len(self._content):
            raise WireError("a response ends too early")
        self.at += size

    def int16(self) -> int:
        """Two bytes."""
        return self._number(">h", 2)

    def int32(self) -> int:
        """Four bytes."""
        return self._number(">i", 4)

    def count(self) -> int:
        """Length of a list, 0 for a null."""
        return max(self.int32(), 0)

    def tags(self) -> None:
        """Skip nothing: only the compact form has tags."""

    def text(self) -> str:
        """A text, empty for a null."""
        try:
            return self.take(self._text_size()).decode()
        except UnicodeDecodeError as error:
            raise WireError("a response has a text that is not UTF-8") from error

    def take(self, size: int) -> bytes:
        """Return a copy of the next bytes."""
        begin = self.at
        self.skip(size)
        return bytes(self._content[begin : self.at])

    def _text_size(self) -> int:
        return max(self.int16(), 0)

    def _number(self, form: str, size: int) -> int:
        begin = self.at
        self.skip(size)
        (found,) = struct.unpack_from(form, self._content, begin)
        return int(found)
