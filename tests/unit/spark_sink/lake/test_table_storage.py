"""A store that never answers: other threads of an agent run again after a bounded time. A store that cuts answers."""

import contextlib
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pyarrow.fs as pa_fs
import pytest

from spark_sink.errors import TableError
from spark_sink.lake import table_storage
from spark_sink.lake.delta_table import DeltaLakeTable
from spark_sink.lake.table_addresses import Storage
from spark_sink.lake.table_storage import filesystem, is_delta_table, soon_refused

TABLE = "s3://lake/table"


@pytest.fixture
def silent() -> Iterator[dict[str, str]]:
    """Options of a store that never answers; a request waits for a second."""
    with socket.create_server(("127.0.0.1", 0), backlog=100) as server:  # the system accepts, and nothing reads
        place = {"aws_endpoint_url": f"http://127.0.0.1:{server.getsockname()[1]}", "aws_region": "us-east-1"}
        yield {**place, "aws_access_key_id": "a", "aws_secret_access_key": "b", "allow_http": "true", "timeout": "1s"}


def _open(storage: Storage) -> object:
    return filesystem(TABLE, storage).open_input_file("_delta_log/00000000000000000000.json")


def _ask(storage: Storage) -> object:
    return is_delta_table(TABLE, storage)


@pytest.mark.parametrize("ask", [_open, _ask])
def test_a_silent_store_is_given_up(
    silent: dict[str, str], monkeypatch: pytest.MonkeyPatch, ask: Callable[[Storage], object]
) -> None:
    """With ten retries, which delta-rs makes within 180 s, it would take eleven times the time of a request."""
    monkeypatch.setattr(table_storage, "_RETRY_S", 1)
    began = time.monotonic()
    with pytest.raises((OSError, TableError), match="Error performing"):
        ask(silent)
    assert time.monotonic() - began < 8


@pytest.mark.parametrize("name", ["retry_timeout", "RETRY_TIMEOUT"])
def test_a_time_for_retries_that_a_user_sets_stays(name: str) -> None:
    """A store that is slow for minutes may need it."""
    assert soon_refused({name: "300s"}) == {name: "300s"}
    assert soon_refused(None) == {"retry_timeout": "30s"}


@contextlib.contextmanager
def _cutting(answers: int) -> Iterator[dict[str, str]]:
    """Options of a store that cuts so many answers."""
    program = [sys.executable, str(Path(__file__).with_name("cutting_store.py")), str(answers)]
    with subprocess.Popen(program, stdout=subprocess.PIPE, text=True) as server:
        assert server.stdout is not None
        place = {"aws_endpoint_url": f"http://127.0.0.1:{server.stdout.readline().strip()}", "aws_region": "us-east-1"}
        try:
            yield {**place, "aws_access_key_id": "a", "aws_secret_access_key": "b", "allow_http": "true"}
        finally:
            server.kill()


def test_a_listing_that_was_cut_is_requested_again() -> None:
    """A query would end at its next trigger."""
    with _cutting(2) as storage:
        names = [one.base_name for one in filesystem(TABLE, storage).get_file_info(pa_fs.FileSelector("_delta_log"))]
    assert names == ["a.json"]


def test_the_size_of_a_file_is_asked_for_again_after_a_cut_listing() -> None:
    """delta-rs lists for it, too, and a task asks after each file that it wrote: a query would end."""
    with _cutting(2) as storage:
        assert filesystem(TABLE, storage).get_file_info("_delta_log").type == pa_fs.FileType.Directory


def test_a_table_is_looked_for_again_after_a_cut_listing() -> None:
    """delta-rs itself lists the log at each look; here it has no commit."""
    with _cutting(2) as storage:
        assert DeltaLakeTable(TABLE, "g", storage).refresh() is None


def test_a_store_that_cuts_each_answer_is_given_up() -> None:
    """Else a query would wait for ever, with the interpreter's lock most of the time."""
    with _cutting(1000) as storage, pytest.raises(OSError, match="list response body"):
        filesystem(TABLE, storage).get_file_info(pa_fs.FileSelector("_delta_log"))
