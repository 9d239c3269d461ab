"""Counts what an agent of Spark has committed for the ops log, from the notes in the logs of its tables.

The tasks of a query write in other processes, and in several. The logs of the tables have every commit of the agent
once, also after a crash, and reading them costs no batch anything.
"""

from collections.abc import Callable, Collection, Iterable, Mapping
from typing import Any

from spark_sink.lake.ops_log.ops_counts import OpsCounts, Written

Noted = tuple[str, Mapping[str, Any]]
"""A table, and a note of a commit in its log."""


class NoteCounts:
    """Counts of an agent; as `OpsCounts` for the writer of the ops log.

    Args:
        counts: takes the sums.
        notes: returns the tables and notes of the agent's commits since the last call; the first call only finds the
            ends of the logs.
    """

    def __init__(self, counts: OpsCounts, notes: Callable[[], Iterable[Noted]]) -> None:
        self._counts = counts
        self._notes = notes

    @property
    def mask(self) -> Callable[[str], str]:
        """Removes secrets from the text of an error."""
        return self._counts.mask

    def begin(self) -> None:
        """Find the present ends of the logs, before the first batch; a log that cannot be read is read later."""
        try:
            self._read()
        except Exception:  # noqa: BLE001 -- the ops log must not stop what it counts; its writer logs what persists
            return

    def failed(self, topics: Collection[str], error: Exception | str) -> None:
        """Count an error of the query."""
        self._counts.failed(None, topics, error)

    def take(self) -> list[dict[str, Any]]:
        """Read the logs, and return the counts since the last call; raises if a log cannot be read."""
        self._read()
        return self._counts.take()

    def _read(self) -> None:
        for table, note in self._notes():
            topics = note.get("topics")
            if note.get("kind") == "table" and isinstance(topics, Mapping):
                self._counts.wrote(None, table, {topic: Written(*found) for topic, found in topics.items()})
