"""A socket to one broker: one request at a time, and its response in a buffer that the caller lends."""

import select
import socket
import struct
import time
from typing import Final, Self

from spark_sink.fetch.from_leaders.wire_format import WireError

_HEAD = struct.Struct(">ii")  # length and number of a response
_NUMBER_BYTES = 4
_LARGEST = 1 << 30
_PARTS: Final = 6  # a response may take this many times the wait for a part of it


class ResponseBuffer:
    """Memory for one response, which grows to the largest one."""

    def __init__(self) -> None:
        self._memory = bytearray()

    def room(self, size: int) -> memoryview:
        """Return this many bytes; what they held before is gone."""
        if len(self._memory) < size:
            self._memory = bytearray(size)
        return memoryview(self._memory)[:size]


class LeaderConnection:
    """A connection.

    Args:
        address: host and port.
        timeout_s: longest wait for the connection, and for each part of a response; a whole response takes no longer
            than seven times this, however many parts it has.

    Attributes:
        address: host and port.
        by_id: whether its broker reads topics by their ids; None as long as it was not asked.
        used_at: when it was opened, or has received last, in seconds of `time.monotonic`.

    Raises:
        OSError: the broker cannot be reached.
    """

    def __init__(self, address: tuple[str, int], timeout_s: float) -> None:
        self.address = address
        try:
            self._socket = socket.create_connection(address, timeout_s)
        except UnicodeError as error:  # a label of the name is empty or too long
            raise OSError(f"{address[0]!r} is not a valid host name") from error
        self._socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self._number = 0
        self.by_id: bool | None = None
        self.used_at = time.monotonic()
        self._longest_s = _PARTS * timeout_s

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def fileno(self) -> int:
        """Return the number for a selector."""
        return self._socket.fileno()

    @property
    def is_new(self) -> bool:
        """Whether nothing was asked yet."""
        return not self._number

    def next_number(self) -> int:
        """Return the number (correlation id) for the next request."""
        self._number += 1
        return self._number

    def send(self, request: bytes) -> None:
        """Send a request with the last number.

        Raises:
            OSError: the connection is lost.
        """
        self._socket.sendall(request)

    def receive(self, buffer: ResponseBuffer) -> memoryview:
        """Return the response to the last request, without its length and number.

        Raises:
            OSError: the connection is lost or silent.
            WireError: it is the response to another request.
        """
        head = bytearray(_HEAD.size)
        self._fill(memoryview(head))
        size, number = _HEAD.unpack(head)
        if number != self._number or not _NUMBER_BYTES <= size <= _LARGEST:
            raise WireError("a response belongs to no request")
        content = buffer.room(size - _NUMBER_BYTES)
        self._fill(content)
        self.used_at = time.monotonic()
        return content

    def is_quiet(self) -> bool:
        """Return whether it is open and has nothing to receive, as between two requests."""
        ready = select.poll()
        ready.register(self._socket, select.POLLIN)
        return not ready.poll(0)

    def close(self) -> None:
        """Close the connection."""
        self._socket.close()

    def _fill(self, content: memoryview) -> None:
        at, deadline = 0, time.monotonic() + self._longest_s
        while at < len(content):
            if time.monotonic() > deadline:
                raise TimeoutError("a response comes too slowly")
            size = self._socket.recv_into(content[at:])
            if not size:
                raise ConnectionResetError("the broker closed the connection")
            at += size
