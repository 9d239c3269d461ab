"""The progress log of an agent."""

import logging
from collections.abc import Iterator
from typing import Any

import pytest

from spark_sink.agent.progress_log import EVERY_S, ProgressLog
from spark_sink.errors import TableError


class Clock:
    """A clock that is set."""

    now = 0.0

    def __call__(self) -> float:
        """The time."""
        return self.now


class Commits:
    """Notes of commits, each read once."""

    def __init__(self) -> None:
        self.new: list[dict[str, Any]] = []

    def add(self, rows: int, kind: str = "table") -> None:
        """Commit."""
        self.new.append({"kind": kind, "rows": rows})

    def read(self) -> Iterator[dict[str, Any]]:
        """The notes since the last call."""
        taken, self.new = self.new, []
        yield from taken


def lines(caplog: pytest.LogCaptureFixture) -> list[str]:
    """The lines since the last call."""
    found = [record.getMessage() for record in caplog.records]
    caplog.clear()
    return found


def test_committed_rows_are_logged_once_with_their_rate(caplog: pytest.LogCaptureFixture) -> None:
    """Not before it is time, and not where nothing came."""
    caplog.set_level(logging.INFO, "azimuth.sink")
    clock, commits = Clock(), Commits()
    progress = ProgressLog("lake/flights", commits.read, clock)
    commits.add(60)
    commits.add(40)
    progress.look(lambda: pytest.fail("asked before it is time"))
    clock.now = EVERY_S
    progress.look(lambda: 1)
    assert lines(caplog) == ["lake/flights: 100 rows committed (10 a second), 100 so far"]
    clock.now += EVERY_S
    progress.look(lambda: 1)
    assert lines(caplog) == []
    commits.add(1_000)
    clock.now += EVERY_S
    progress.look(lambda: 2)
    assert lines(caplog) == ["lake/flights: 1,000 rows committed (100 a second), 1,100 so far"]


def test_only_rows_that_are_in_the_table_count(caplog: pytest.LogCaptureFixture) -> None:
    """A replay commits none, a compaction brings none, and quarantined records are not in the table."""
    caplog.set_level(logging.INFO, "azimuth.sink")
    commits = Commits()
    progress = ProgressLog("t", commits.read, Clock())
    commits.add(0)
    commits.add(7, "quarantine")
    commits.add(0, "compaction")
    progress.log()
    assert (lines(caplog), progress.rows) == ([], 0)


def test_a_log_that_cannot_be_read_does_not_end_the_agent(caplog: pytest.LogCaptureFixture) -> None:
    """It is only a line of the log."""

    def fails() -> Iterator[dict[str, Any]]:
        raise TableError("the store is away")

    ProgressLog("t", fails, Clock()).log()
    assert "rows cannot be counted for now: the store is away" in lines(caplog)[0]
