"""A log line now and then about the rows that an agent has committed."""

import logging
import time
from collections.abc import Callable, Iterable, Mapping
from typing import Any

from spark_sink.errors import SparkSinkError

EVERY_S = 10.0

_log = logging.getLogger("azimuth.sink")


class ProgressLog:
    """Logs how many rows an agent has committed, at most every ten seconds, and only when there are new ones.

    Rows are counted by the notes that the agent's commits leave in the tables' logs. So a batch that the tables have
    already, by a replay or by another agent, does not look like progress.

    Args:
        table: where the rows go.
        notes: asked for the notes of the agent's commits since the last call.
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
        self._read()  # the first call finds where the logs end now

    def look(self, batches: Callable[[], object]) -> None:
        """Log a line, if it is time to and batches have run since the last one.

        Args:
            batches: asks how far the query has come; any value that changes with each batch.
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
        """Log a line about the rows since the last one, if there are any."""
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
