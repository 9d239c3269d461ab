"""Requests as bytes, and the fields of responses in both forms of Kafka's protocol. Pure.

Kafka's protocol guide describes them. A response that ends too early raises WireError.
"""

import struct

from spark_sink.errors import SparkSinkError

ID_BYTES = 16
"""Size of a topic's id."""
NO_TAGS = b"\0"
"""The end of a structure in the compact form, without fields that later versions add."""
_INT16, _INT32 = struct.Struct(">h"), struct.Struct(">i")


class WireError(SparkSinkError):
    """A broker's response does not have the expected form."""


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


def compact_text(text: str) -> bytes:
    """Return a text with its length in the compact form."""
    content = text.encode()
    return compact_length(len(content)) + content


def compact_length(size: int) -> bytes:
    """Return a length in the compact form: seven bits a byte, and one larger."""
    value, found = size + 1, bytearray()
    while value > 0x7F:  # noqa: PLR2004 -- the eighth bit says that more follow
        found.append(value & 0x7F | 0x80)
        value >>= 7
    found.append(value)
    return bytes(found)


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
        """Skip these bytes.

        Raises:
            WireError: the response is shorter.
        """
        if size < 0 or self.at + size > len(self._content):
            raise WireError("a response ends too early")
        self.at += size

    def fields(self, form: struct.Struct) -> tuple[int, ...]:
        """Take several numbers."""
        begin = self.at
        self.skip(form.size)
        return form.unpack_from(self._content, begin)

    def int16(self) -> int:
        """Take two bytes."""
        return self.fields(_INT16)[0]

    def int32(self) -> int:
        """Take four bytes."""
        return self.fields(_INT32)[0]

    def count(self) -> int:
        """Length of a list or of bytes, 0 for a null."""
        return max(self.int32(), 0)

    def tags(self) -> None:
        """Skip nothing: only the compact form has tags."""

    def text(self) -> str:
        """Take a text, empty for a null.

        Raises:
            WireError: it is not UTF-8, or the response is shorter.
        """
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


class CompactReader(FieldReader):
    """Takes fields in the compact form (KIP-482): lengths are variable and one larger, and each structure has tags."""

    def count(self) -> int:
        """Length of a list, 0 for a null."""
        return max(self._varint() - 1, 0)

    def tags(self) -> None:
        """Skip fields that later versions add."""
        for _ in range(self._varint()):
            self._varint()
            self.skip(self._varint())

    def _text_size(self) -> int:
        return self.count()

    def _varint(self) -> int:
        value = 0
        for shift in range(0, 35, 7):
            at = self.at
            self.skip(1)
            byte = self._content[at]
            value |= (byte & 0x7F) << shift
            if byte < 0x80:  # noqa: PLR2004 -- the bit says that more follow
                return value
        raise WireError("a length in a response does not end")
