"""Small HTTP servers beside a test, each a process of its own."""

import contextlib
import sys
import time
import urllib.request
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from urllib.error import URLError

from spark_sink.demo.cluster.ports import choose_ports
from tests.integration.spark_sink.tied import launch
from tests.table_kinds import Bucket

BUCKET = "lake"
_START_S = 120.0


@contextmanager
def server(
    command: Callable[[int], Sequence[str]],
    log: Path,
    ready: Callable[[str], bool],
    environment: Callable[[int], Mapping[str, str]] | None = None,
) -> Iterator[str]:
    """Run a server until the end of the block.

    Args:
        command: starts it on a port.
        log: file for what it prints.
        ready: whether the server at an address answers as it should.
        environment: its environment for a port; by default this process's.

    Yields:
        Its address.
    """
    [port] = choose_ports(1)
    process = launch(command(port), log, None if environment is None else environment(port))
    address = f"http://127.0.0.1:{port}"
    deadline = time.monotonic() + _START_S
    try:
        while not ready(address):
            assert process.poll() is None, log.read_text()
            assert time.monotonic() < deadline, log.read_text()
            time.sleep(0.2)
        yield address
    finally:
        process.terminate()
        process.wait()


@contextmanager
def small_aws(log: Path) -> Iterator[str]:
    """Run moto with one bucket; a process of its own, because delta-rs waits with Python's lock. Yields its address."""
    with server(
        lambda port: [sys.executable, "-m", "moto.server", "-H", "127.0.0.1", "-p", str(port)], log, with_bucket
    ) as at:
        yield at


def with_bucket(address: str) -> bool:
    """Make the bucket; whether the server answered."""
    return _answers(urllib.request.Request(f"{address}/{BUCKET}", method="PUT"))  # noqa: S310 -- ours


def bucket_at(place: str, endpoint: str, secret: str, timeout_s: int | None = None) -> Bucket:
    """Return the options for tables below an address of a small AWS, by the store's address or that of its proxy.

    Args:
        place: where the tables are, `s3://`.
        endpoint: address of the store.
        secret: the secret key; any.
        timeout_s: how long clients wait for an answer; None for their defaults.
    """
    delta = {"AWS_ENDPOINT_URL": endpoint, "AWS_ALLOW_HTTP": "true", "AWS_REGION": "us-east-1"}
    delta |= {"AWS_ACCESS_KEY_ID": "someone", "AWS_SECRET_ACCESS_KEY": secret}
    iceberg = {"endpoint": endpoint, "region": "us-east-1", "access-key-id": "someone", "secret-access-key": secret}
    if timeout_s is not None:
        delta["timeout"], iceberg["request-timeout"] = f"{timeout_s}s", str(timeout_s)
    return Bucket(address=place, delta=delta, iceberg={f"catalog.s3.{name}": value for name, value in iceberg.items()})


def answering(path: str) -> Callable[[str], bool]:
    """Return a check of whether a path of a server can be read."""
    return lambda address: _answers(urllib.request.Request(address + path))  # noqa: S310 -- ours


def _answers(request: urllib.request.Request) -> bool:
    with contextlib.suppress(URLError, OSError), urllib.request.urlopen(request, timeout=5):  # noqa: S310 -- ours
        return True
    return False
