"""Reads the notes that agents write to the logs of their tables with each commit, and counts them for the ops log.

The tasks of a query write in other processes, and in several. The logs of the tables have every commit of the agent
once, also after a crash, and reading them costs no batch anything.
"""

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from typing import Any

import pyarrow.fs as pa_fs

from spark_sink.agent.agent_settings import AgentSettings
from spark_sink.formats.quarantine_addresses import quarantine_of
from spark_sink.lake.delta_log_files import read_commit
from spark_sink.lake.delta_log_reader import our_note
from spark_sink.lake.iceberg.iceberg_table import IcebergTable
from spark_sink.lake.ops_log.ops_counts import OpsCounts, Written
from spark_sink.lake.positions_in_delta_log import existing
from spark_sink.lake.table_addresses import Storage
from spark_sink.lake.table_storage import filesystem
from spark_sink.options.option_texts import addresses

Noted = tuple[str, Mapping[str, Any]]
"""A table, and a note of a commit in its log."""


class History:
    """The notes in the log of one table.

    Args:
        table: its address.
        storage: options of its object store.
        whole: read the log from its first commit, instead of from its end at the first call.
    """

    def __init__(self, table: str, storage: Storage | None = None, *, whole: bool = False) -> None:
        self._files = filesystem(table, storage)
        self._next = 0 if whole else -1

    def read(self) -> Iterator[dict[str, Any]]:
        """Yield the notes since the last call. Unless the log is read whole, the first call only finds its end."""
        if self._next < 0:
            self._next = self._newest() + 1
            return
        while (text := read_commit(self._files, self._next)) is not None:
            self._next += 1
            if note := our_note(text):
                yield dict(note)

    def _newest(self) -> int:
        found = self._files.get_file_info(pa_fs.FileSelector("_delta_log", allow_not_found=True))
        return max((int(one.base_name[:20]) for one in found if one.base_name[20:] == ".json"), default=-1)


class IcebergHistory:
    """The notes in the snapshots of one Iceberg table.

    Args:
        table: its address.
        storage: options of its catalog.
        whole: read all snapshots, instead of those after the first call.
    """

    def __init__(self, table: str, storage: Storage | None = None, *, whole: bool = False) -> None:
        self._table = IcebergTable(table, "", storage)
        self._next = 0 if whole else -1

    def read(self) -> Iterator[dict[str, Any]]:
        """Yield the notes since the last call; those of expired snapshots are missing."""
        newest, notes = self._table.notes(self._next)
        first, self._next = self._next < 0, newest + 1
        yield from () if first else notes


class Notes:
    """The notes of one agent in all its tables, from the first call on.

    A table that does not exist at the first call is read whole: an agent creates its table, or that of a topic or
    of the quarantine, with the first rows, which are often most of all its rows.

    Args:
        settings: of the agent.
    """

    def __init__(self, settings: AgentSettings) -> None:
        self._settings = settings
        self._histories: dict[str, History | IcebergHistory] = {}
        self._called = False

    def read(self) -> Iterator[dict[str, Any]]:
        """Yield the agent's notes since the last call."""
        for _, note in self.by_table():
            yield note

    def by_table(self) -> Iterator[tuple[str, dict[str, Any]]]:
        """Yield the agent's notes since the last call, each with the address of its table."""
        settings = self._settings
        history = IcebergHistory if settings.iceberg else History
        storage = settings.table_storage
        tables = [one for table in addresses(settings.tables, "table") for one, _ in existing(table, storage)]
        for table in {*tables, *map(quarantine_of, tables)}:
            if table not in self._histories:
                self._histories[table] = history(table, storage, whole=self._called)
        self._called = True
        for table, one in self._histories.items():
            for note in one.read():
                if note.get("agent") == self._settings.agent:
                    yield table, note


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
        """Find the current ends of the logs, before the first batch; a log that cannot be read is read later."""
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
