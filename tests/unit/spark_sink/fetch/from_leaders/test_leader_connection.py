"""A task does not wait without a limit for a broker that answers too slowly or not at all."""

import contextlib
import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import pytest

from spark_sink.fetch.from_leaders.leader_connection import LeaderConnection, ResponseBuffer

TIMEOUT_S = 0.2
HEAD = b"\0\0\4\4\0\0\0\1"  # 1,024 bytes in response to the first request


@contextmanager
def broker(answer: Callable[[socket.socket, threading.Event], None]) -> Iterator[tuple[str, int]]:
    """Answer one request until the block ends."""
    ended = threading.Event()
    with socket.create_server(("127.0.0.1", 0)) as server:

        def serve() -> None:
            connection, _ = server.accept()
            with connection, contextlib.suppress(OSError):
                answer(connection, ended)

        thread = threading.Thread(target=serve)
        thread.start()
        try:
            yield server.getsockname()[:2]
        finally:
            ended.set()
            thread.join()


def frozen(connection: socket.socket, ended: threading.Event) -> None:
    """Send the beginning of a response, as a broker that is stopped meanwhile."""
    connection.sendall(HEAD + b"begun")
    ended.wait()


def dripping(connection: socket.socket, ended: threading.Event) -> None:
    """Send a byte at a time, each long before the wait for it ends."""
    connection.sendall(HEAD)
    while not ended.wait(TIMEOUT_S / 20):
        connection.sendall(b"x")


@pytest.mark.parametrize("answer", [frozen, dripping])
def test_a_response_that_does_not_end_is_given_up(answer: Callable[[socket.socket, threading.Event], None]) -> None:
    """Each byte ends a wait, so a wait for the next byte alone would never be too long."""
    with broker(answer) as address, LeaderConnection(address, TIMEOUT_S) as connection:
        connection.next_number()
        with pytest.raises(TimeoutError):
            connection.receive(ResponseBuffer())


@pytest.mark.parametrize("name", ["x" * 64 + ".example", ".example", "a..example"])
def test_a_name_that_cannot_be_one_is_a_server_that_is_not_there(name: str) -> None:
    """Python raises another error for it than for a name that does not exist, and it would end the task."""
    with pytest.raises(OSError, match="not a valid host name"):
        LeaderConnection((name, 9092), TIMEOUT_S)
