"""Servers for the tests of memberships: a Redis of our own, and ways to cut one agent off."""

import socket
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.redis_server import RedisServer, running_redis


@pytest.fixture
def redis_server(tmp_path: Path) -> Iterator[RedisServer]:
    """A Redis for one test."""
    with running_redis(tmp_path) as server:
        yield server


class Wire:
    """A SOCKS5 or plain relay between one client and its servers, which can be cut: nothing passes, nothing is closed.

    Args:
        target: where a plain relay leads; None speaks SOCKS5 and leads where the client asks.
    """

    def __init__(self, target: tuple[str, int] | None = None) -> None:
        self._target = target
        self._open = threading.Event()
        self._open.set()
        self._ended = False
        self._sockets: list[socket.socket] = []
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.port: int = self._listener.getsockname()[1]
        threading.Thread(target=self._accept, daemon=True).start()

    def cut(self) -> None:
        """Let nothing pass."""
        self._open.clear()

    def mend(self) -> None:
        """Let pass again; what was under way is lost with its connection."""
        for one in self._sockets:
            one.close()
        self._sockets = []
        self._open.set()

    def close(self) -> None:
        """End it."""
        self._ended = True
        self._listener.close()
        for one in self._sockets:
            one.close()
        self._open.set()

    def _accept(self) -> None:
        while not self._ended:
            try:
                client, _ = self._listener.accept()
            except OSError:
                return
            threading.Thread(target=self._serve, args=(client,), daemon=True).start()

    def _serve(self, client: socket.socket) -> None:
        self._sockets.append(client)
        try:
            self._open.wait()
            server = socket.create_connection(self._target or _socks(client), 5)
        except OSError:
            client.close()
            return
        self._sockets.append(server)
        threading.Thread(target=self._pass, args=(client, server), daemon=True).start()
        self._pass(server, client)

    def _pass(self, source: socket.socket, target: socket.socket) -> None:
        try:
            while data := source.recv(65536):
                self._open.wait()
                target.sendall(data)
        except OSError:
            pass
        finally:
            for one in (source, target):
                one.close()


def _socks(client: socket.socket) -> tuple[str, int]:
    """Shake hands (RFC 1928) and say where the client wants to go."""
    client.recv(client.recv(2)[1])
    client.sendall(b"\x05\x00")
    kind = client.recv(4)[3]
    host = socket.inet_ntoa(client.recv(4)) if kind == 1 else client.recv(client.recv(1)[0]).decode()
    port = int.from_bytes(client.recv(2), "big")
    client.sendall(b"\x05\x00\x00\x01\x00\x00\x00\x00\x00\x00")
    return host, port
