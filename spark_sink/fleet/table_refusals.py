"""Tables that refuse rows: logged at intervals and retried after a pause, by the labels of their topics."""

import logging
import time
from collections.abc import Collection

from spark_sink.errors import DISK_FULL

log = logging.getLogger(__name__)

_PAUSE_S = 1.0
_RECENT_S = 10.0
_LASTING_S = 120.0
"""Longest time between two refusals of one fault: an attempt may have to wait for its storage."""


class RefusedTables:
    """The refusals of one source's tables. Any thread may call `problems` and `late_s`; one thread the others.

    Args:
        source: name, for the log.
    """

    def __init__(self, source: str) -> None:
        self._source = source
        self._refused: dict[str, tuple[str, float]] = {}
        self._since: dict[str, float] = {}
        self._again: set[str] = set()
        self._again_at = 0.0
        self._full_at = float("-inf")

    def note(self, labels: Collection[str], error: Exception) -> None:
        """Record that the table of these refuses; log it unless it was logged recently.

        A full disk refuses all tables: one line for all of them, and `problems` has each.
        """
        now = time.monotonic()
        full = any(words in str(error) for words in DISK_FULL)
        for label in labels:
            _, before = self._refused.get(label, ("", float("-inf")))
            if now - max(before, self._full_at if full else before) >= _RECENT_S:
                more = "; other tables on this disk are not logged, the status has each" if full else ""
                log.error("fleet: %s/%s: %s%s", self._source, label, error, more)
            self._full_at = now if full else self._full_at
            if now - before >= _LASTING_S or label not in self._since:
                self._since[label] = now
            self._refused[label] = f"{self._source}/{label}: {error}", now
        self.again(labels)

    def taken(self, labels: Collection[str]) -> None:
        """Record that the tables of these have taken records."""
        for label in labels:
            self._since.pop(label, None)

    def late_s(self) -> dict[str, float]:
        """Return for how long tables have refused, in seconds, by topic's name.

        No partition of such a topic is held between two attempts. So its records are at least as old as this, if it
        has any, and their age would begin at 0 with each attempt.
        """
        now, refused = time.monotonic(), dict(self._refused)
        return {
            label.partition("@")[0]: now - since
            for label, since in list(self._since.items())
            if now - refused[label][1] < _LASTING_S
        }

    def again(self, labels: Collection[str]) -> None:
        """Retry these after a pause."""
        self._again |= set(labels)
        self._again_at = time.monotonic() + _PAUSE_S

    def due(self) -> set[str]:
        """Return the labels to retry now; each is returned once."""
        if time.monotonic() < self._again_at:
            return set()
        labels, self._again = self._again, set()
        return labels

    def problems(self) -> list[str]:
        """Return the recent refusals."""
        now = time.monotonic()
        return [problem for problem, at in list(self._refused.values()) if now - at < _RECENT_S]
