"""A Redis of a test."""

import shutil
import socket
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
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


@contextmanager
def running_redis(folder: Path) -> Iterator[RedisServer]:
    """Run a Redis until the end of the block; skip the test if there is none."""
    if shutil.which("redis-server") is None:
        pytest.skip("there is no redis-server: apt install redis-server")
    server = RedisServer(folder)
    try:
        yield server
    finally:
        server.kill()
