"""Logs the steps of an agent's start, and regularly the rows that the agent has committed."""

import logging
import time
from collections.abc import Callable, Iterable, Mapping
from typing import Any

from spark_sink.errors import SparkSinkError

EVERY_S = 10.0

_log = logging.getLogger("azimuth.sink")


class StartSteps:
    """Logs each step of an agent's start with its duration, so that a long start does not look like a hang.

    Args:
        log: takes the lines.
    """

    def __init__(self, log: logging.Logger = _log) -> None:
        self._log = log
        self._since = time.monotonic()

    def done(self, step: str) -> None:
        """Log a step that has just ended."""
        now = time.monotonic()
        self._log.info("start: %s (%.1f s)", step, now - self._since)
        self._since = now


class ProgressLog:
    """Logs the number of rows that an agent has committed, at most every ten seconds, and only if there are new rows.

    Rows are counted from the notes of the agent's commits in the tables' logs. So a batch that the tables already have,
    from a replay or from another agent, does not count as progress.

    Args:
        table: address of the table, for the log.
        notes: returns the notes of the agent's commits since the last call.
        clock: seconds of a monotonic clock.
    """

    def __init__(
        self,
        table: str,
        notes: Callable[[], Iterable[Mapping[str, Any]]],
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._table = table
        self._notes = notes
        self._clock = clock
        self._logged_at = clock()
        self._batches: object = None
        self.rows = 0
        self._read()  # the first call finds the current ends of the logs

    def look(self, batches: Callable[[], object]) -> None:
        """Log a line, if the interval has passed and batches have run since the last line.

        Args:
            batches: returns the progress of the query, any value that changes with each batch.
        """
        if self._clock() - self._logged_at < EVERY_S:
            return
        now = batches()
        if now == self._batches:
            self._logged_at = self._clock()
            return
        self._batches = now
        self.log()

    def log(self) -> None:
        """Log a line about the rows since the last line, if there are any."""
        rows, now = self._read(), self._clock()
        if rows:
            self.rows += rows
            rate = rows / max(now - self._logged_at, 1e-3)
            _log.info(
                "%s: %s rows committed (%s a second), %s so far",
                self._table,
                f"{rows:,}",
                f"{rate:,.0f}",
                f"{self.rows:,}",
            )
        self._logged_at = now

    def _read(self) -> int:
        try:
            return sum(note.get("rows", 0) for note in self._notes() if note.get("kind") == "table")
        except (SparkSinkError, OSError, ValueError) as error:
            _log.warning("%s: rows cannot be counted for now: %s", self._table, error)
            return 0
