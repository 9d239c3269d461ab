"""Writes the ops log at intervals, in a thread of its own: whatever fails there, ingestion continues."""

import contextlib
import logging
import re
import threading
from collections.abc import Callable, Iterator, Mapping
from typing import Any, Final, Protocol

import pyarrow as pa

from spark_sink.errors import plain
from spark_sink.lake.ops_log.ops_settings import OpsSettings
from spark_sink.lake.ops_log.ops_table import SCHEMA, OpsTable, OpsWrite

log = logging.getLogger(__name__)

_LAST_S: Final = 10.0
_PART: Final = re.compile(r"part-[0-9a-f]+|[0-9a-f-]{36}|\d{20}")
"""Names that differ in each attempt, so that the same refusal is logged once."""


class Counts(Protocol):
    """The parts of `OpsCounts` that the writer needs; all may be called in its thread, and `take` may raise."""

    @property
    def mask(self) -> Callable[[str], str]:
        """Removes secrets from the text of an error."""
        ...

    def take(self) -> list[dict[str, Any]]:
        """Return the counts since the last call."""
        ...


class OpsWriter:
    """Writes the counts of a process to the ops log.

    If a write fails, the same rows are written again at the next interval, and counts go on: the memory is that of at
    most two rows for each topic. Its thread does not keep the process from ending.

    Args:
        counts: the counts.
        table: the ops log.
        every_s: interval, seconds.
        columns: values of the columns `kind`, `group_id` and `agent`.
    """

    def __init__(self, counts: Counts, table: OpsTable, every_s: float, columns: Mapping[str, str]) -> None:
        self._counts = counts
        self._table = table
        self._every_s = every_s
        self._columns = dict(columns)
        self._pending: OpsWrite | None = None
        self._said = ""
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._run, name="ops-log", daemon=True)

    def start(self) -> None:
        """Begin to write at intervals."""
        self._thread.start()

    def close(self) -> None:
        """Write the last counts; for a limited time, because the storage may be away."""
        self._ended.set()
        self._thread.join(_LAST_S)
        if self._thread.is_alive():
            log.warning("ops log: %s: the last counts are not written after %g s", self._table.uri, _LAST_S)

    def write(self) -> None:
        """Write what is left of the last attempt, and the counts since then; log an error once."""
        try:
            for _ in range(2):
                self._pending = self._pending or self._next()
                if self._pending is None:
                    break
                self._table.append(self._pending)
                self._pending = None
        except Exception as error:  # noqa: BLE001 -- the ops log must not stop what it counts
            self._say(error)
        else:
            self._said = ""

    def _run(self) -> None:
        while not self._ended.wait(self._every_s):
            self.write()
        self.write()

    def _next(self) -> OpsWrite | None:
        found = self._counts.take()
        if not found:
            return None
        day = found[0]["ended_at"].date()
        rows = [{**one, **self._columns, "date": day} for one in found]
        return OpsWrite(rows=pa.Table.from_pylist(rows, schema=SCHEMA), day=day)

    def _say(self, error: Exception) -> None:
        text = self._counts.mask(plain(error))
        known = _PART.sub("*", text)
        if known != self._said:
            log.warning(
                "ops log: %s: %s; ingestion continues, and the counts are written when the table takes them",
                self._table.uri,
                text,
            )
        self._said = known


@contextlib.contextmanager
def written(settings: OpsSettings | None, counts: Counts | None, columns: Mapping[str, str]) -> Iterator[None]:
    """Write the ops log during the block, and once more at its end; do nothing without settings.

    Args:
        settings: settings of the ops log.
        counts: the counts of this process.
        columns: values of the columns `kind`, `group_id` and `agent`.
    """
    if settings is None or counts is None:
        yield
        return
    table = OpsTable(settings.table, settings.storage, settings.keep_days)
    writer = OpsWriter(counts, table, settings.every_s, columns)
    writer.start()
    try:
        yield
    finally:
        writer.close()
