"""Progress of a step that waits long."""

import os
import pty
import sqlite3
import subprocess
import sys
import threading
from pathlib import Path

import pyarrow as pa
import pytest
from pyiceberg.catalog.sql import SqlCatalog

from spark_sink.cli import _long_steps, main
from spark_sink.cli._long_steps import long_step


class _Said:
    """Standard error of a pipe that knows when a line has come."""

    def __init__(self) -> None:
        self.text = ""
        self.came = threading.Event()

    def write(self, text: str) -> None:
        self.text += text
        self.came.set()

    def flush(self) -> None: ...

    def isatty(self) -> bool:
        return False


def _hear(monkeypatch: pytest.MonkeyPatch) -> _Said:
    """Take the place of standard error, with lines without delay; pytest sets it after the fixtures of a test."""
    monkeypatch.setattr(_long_steps, "_FIRST_S", 0.01)
    monkeypatch.setattr(_long_steps, "_EACH_S", 0.01)
    made = _Said()
    monkeypatch.setattr(sys, "stderr", made)
    return made


def test_a_step_that_waits_says_for_what(monkeypatch: pytest.MonkeyPatch) -> None:
    """A store that does not answer is tried for minutes: without a word the command would look hung."""
    said = _hear(monkeypatch)
    with long_step("looking at t"):
        assert said.came.wait(30)
    assert said.text.startswith("azimuth: looking at t (0 s)\n")


def test_the_text_of_a_step_can_change(monkeypatch: pytest.MonkeyPatch) -> None:
    """A long copy says how far it is."""
    said = _hear(monkeypatch)
    with long_step("looking at t") as say:
        say("7 rows read")
        said.came.clear()
        assert said.came.wait(30)
        said.came.clear()
        assert said.came.wait(30)
    assert "azimuth: 7 rows read (0 s)\n" in said.text


def test_a_short_step_says_nothing(capfd: pytest.CaptureFixture[str]) -> None:
    """Most steps take less than a second."""
    with long_step("looking at t"):
        pass
    assert capfd.readouterr() == ("", "")


def test_a_spinner_leaves_standard_output_alone() -> None:
    """Rich would send what is printed beside a spinner to standard error, so that a pipe would get no result."""
    code = "from spark_sink.cli._long_steps import long_step\nwith long_step('looking at t'):\n    print('the result')"
    leader, follower = pty.openpty()
    environment = {**os.environ, "TERM": "xterm"}
    done = subprocess.run(
        [sys.executable, "-c", code], stdout=subprocess.PIPE, stderr=follower, env=environment, check=True
    )
    os.close(follower)
    assert done.stdout == b"the result\n"
    assert b"looking at t" in os.read(leader, 65536)
    os.close(leader)


def test_a_locked_catalog_is_waited_for_with_a_word(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Each command that looks at tables: the lock of SQLite belongs to another process, and may do so for minutes."""
    uri = f"sqlite:///{tmp_path / 'catalog.db'}?timeout=30"
    catalog = SqlCatalog("demo", uri=uri, warehouse=f"file://{tmp_path}")
    catalog.create_namespace("flights")
    catalog.create_table("flights.raw", pa.schema({"topic": pa.string()}))
    catalog.close()
    options = [f"catalog.uri={uri}", "catalog.type=sql", f"catalog.warehouse={tmp_path}"]
    said = _hear(monkeypatch)
    with sqlite3.connect(tmp_path / "catalog.db", isolation_level=None, check_same_thread=False) as other:
        other.execute("BEGIN EXCLUSIVE")
        released = threading.Thread(target=lambda: said.came.wait(30) and other.execute("ROLLBACK"))
        released.start()
        with pytest.raises(SystemExit) as ended:
            main(["verify", "iceberg://demo.flights.raw", *(word for one in options for word in ("--storage", one))])
        released.join()
    assert ended.value.code == 2
    assert said.text.startswith("azimuth: looking at iceberg://demo.flights.raw (")
    assert "locked" not in said.text
