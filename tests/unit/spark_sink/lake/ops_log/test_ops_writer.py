"""Whatever the ops log's table does, ingestion goes on: one line of the log, and the counts later."""

import logging
import threading
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pyarrow as pa
import pytest
from deltalake import DeltaTable

from spark_sink.errors import TableError
from spark_sink.lake.ops_log import ops_writer
from spark_sink.lake.ops_log.ops_counts import OpsCounts, Written
from spark_sink.lake.ops_log.ops_settings import OpsSettings
from spark_sink.lake.ops_log.ops_table import OpsTable, OpsWrite
from spark_sink.lake.ops_log.ops_writer import OpsWriter, written

COLUMNS = {"kind": "fleet", "group_id": "g", "agent": "a"}


class Table(OpsTable):
    """Takes rows, or fails as the test has set."""

    def __init__(self) -> None:
        self.uri = "/ops"
        self.rows: list[dict[str, Any]] = []
        self.fails: Callable[[], None] = lambda: None

    def append(self, write: OpsWrite) -> None:
        """As `OpsTable`, without files."""
        self.fails()
        self.rows += write.rows.to_pylist()


def refuse(number: list[int]) -> Callable[[], None]:
    """Refuse with another name of a file at each attempt."""

    def fail() -> None:
        number.append(1)
        raise TableError(f"part-{len(number):032x}.parquet: No space left on device, password=hunter2")

    return fail


def test_a_table_that_refuses_is_logged_once_and_gets_the_counts_later(caplog: pytest.LogCaptureFixture) -> None:
    """Each count once, in bounded memory; and another reason is another line."""
    counts, table, tries = OpsCounts(lambda text: text.replace("hunter2", "***")), Table(), list[int]()
    writer = OpsWriter(counts, table, 60, COLUMNS)
    table.fails = refuse(tries)
    for _ in range(50):
        counts.wrote("home", "/t", {"x": Written(2, 0, 10)})
        writer.write()
    assert len(tries) == 50
    (line,) = [record.getMessage() for record in caplog.records]
    assert "No space left on device, password=***; ingestion continues" in line
    table.fails = lambda: None
    writer.write()
    assert [(row["rows"], row["batches"], row["agent"]) for row in table.rows] == [(2, 1, "a"), (98, 49, "a")]
    table.fails = refuse(tries)
    counts.failed("home", (), "no broker")
    writer.write()
    assert len(caplog.records) == 2


@pytest.mark.parametrize("error", [MemoryError("no memory"), pa.ArrowInvalid("bad"), RuntimeError("panicked")])
def test_an_error_of_any_kind_ends_no_thread(error: Exception, caplog: pytest.LogCaptureFixture) -> None:
    """Libraries raise what they like."""
    counts, table = OpsCounts(), Table()

    def fail() -> None:
        raise error

    table.fails = fail
    counts.wrote("home", "/t", {"x": Written(2, 0, 10)})
    writer = OpsWriter(counts, table, 60, COLUMNS)
    writer.write()
    assert len(caplog.records) == 1
    table.fails = lambda: None
    writer.write()
    assert [row["rows"] for row in table.rows] == [2]


def test_nothing_is_written_while_there_is_nothing_to_say() -> None:
    """An idle agent makes no commits."""
    table = Table()
    table.fails = refuse([])
    writer = OpsWriter(OpsCounts(), table, 60, COLUMNS)
    writer.write()
    assert table.rows == []


def test_the_last_counts_are_written_at_the_end(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A job of a minute ends before its first interval."""
    monkeypatch.setattr(ops_writer, "_LAST_S", 60.0)
    counts = OpsCounts()
    with written(OpsSettings(table=str(tmp_path / "ops")), counts, COLUMNS):
        counts.wrote("home", "/t", {"x": Written(2, 0, 10)})
    (row,) = DeltaTable(str(tmp_path / "ops")).to_pyarrow_table().to_pylist()
    assert (row["rows"], row["kind"], row["group_id"], row["agent"]) == (2, "fleet", "g", "a")


def wait(released: threading.Event) -> None:
    """An answer that does not come."""
    released.wait(60)


def test_a_storage_that_hangs_keeps_no_process_from_its_end(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """Its thread is left behind."""
    monkeypatch.setattr(ops_writer, "_LAST_S", 0.2)
    released = threading.Event()
    counts, table = OpsCounts(), Table()
    counts.wrote("home", "/t", {"x": Written(2, 0, 10)})
    table.fails = lambda: wait(released)
    writer = OpsWriter(counts, table, 60, COLUMNS)
    writer.start()
    with caplog.at_level(logging.WARNING):
        writer.close()
    assert "the last counts are not written after 0.2 s" in caplog.text
    released.set()


def test_without_settings_there_is_no_thread(monkeypatch: pytest.MonkeyPatch) -> None:
    """Off by default."""
    monkeypatch.setattr(ops_writer, "OpsTable", SimpleNamespace)
    before = set(threading.enumerate())
    with written(None, None, COLUMNS):
        assert not {one.name for one in set(threading.enumerate()) - before if one.name == "ops-log"}
