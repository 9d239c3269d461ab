"""Servers for the tests of memberships: a Redis of our own, and ways to cut one agent off."""

import shutil
import socket
import subprocess
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
import redis

from spark_sink.demo.cluster.ports import choose_ports


class RedisServer:
    """A redis-server on a free port; writes to disk only on an explicit save."""

    def __init__(self, directory: Path) -> None:
        [self.port] = choose_ports(1)
        self._directory = directory
        self._process: subprocess.Popen[bytes] | None = None
        self.start()

    def start(self) -> None:
        """Start it, and wait until it answers."""
        command = ["redis-server", "--port", str(self.port), "--bind", "127.0.0.1", "--save", "", "--dir"]
        command += [str(self._directory), "--appendonly", "no"]
        self._process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        deadline = time.monotonic() + 10
        while True:
            try:
                socket.create_connection(("127.0.0.1", self.port), 1).close()
            except OSError:
                assert time.monotonic() < deadline, "redis-server did not come up"
                time.sleep(0.02)
            else:
                return

    def flush(self) -> None:
        """FLUSHALL."""
        with redis.Redis(port=self.port) as client:
            client.flushall()

    def shut_down(self, *, save: bool) -> None:
        """SHUTDOWN, with SAVE or NOSAVE."""
        with redis.Redis(port=self.port) as client:
            client.shutdown(save=save, nosave=not save)
        if self._process is not None:
            self._process.wait(10)
            self._process = None

    def kill(self) -> None:
        """SIGKILL."""
        if self._process is not None:
            self._process.kill()
            self._process.wait()
            self._process = None


@pytest.fixture
def redis_server(tmp_path: Path) -> Iterator[RedisServer]:
    """A Redis for one test."""
    if shutil.which("redis-server") is None:
        pytest.skip("there is no redis-server: apt install redis-server")
    server = RedisServer(tmp_path)
    yield server
    server.kill()


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
