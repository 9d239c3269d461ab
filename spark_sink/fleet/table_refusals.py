"""Tables that refuse rows: logged at intervals and retried after a pause, by the labels of their topics."""

import logging
import time
from collections.abc import Collection

log = logging.getLogger(__name__)

_PAUSE_S = 1.0
_RECENT_S = 10.0


class RefusedTables:
    """The refusals of one source's tables. Any thread may read `problems`; one thread calls the other methods.

    Args:
        source: name, for the log.
    """

    def __init__(self, source: str) -> None:
        self._source = source
        self._refused: dict[str, tuple[str, float]] = {}
        self._again: set[str] = set()
        self._again_at = 0.0

    def note(self, labels: Collection[str], error: Exception) -> None:
        """Record that the table of these refuses; log it unless it was logged recently."""
        now = time.monotonic()
        for label in labels:
            _, before = self._refused.get(label, ("", -_RECENT_S))
            if now - before >= _RECENT_S:
                log.error("fleet: %s/%s: %s", self._source, label, error)
            self._refused[label] = f"{self._source}/{label}: {error}", now
        self.again(labels)

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
