"""What survives every process: the logs of tables, data files and checkpoints."""

import itertools
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from types import SimpleNamespace
from typing import Any

import pyarrow as pa
from deltalake import Schema
from deltalake.exceptions import DeltaError

from tests.simulation.scheduler import Crash, Scheduler

Row = tuple[int, int]
"""Partition and offset: there is one topic."""


@dataclass(frozen=True, slots=True)
class Version:
    """One commit, and the table as it leaves it.

    Attributes:
        text: of the log entry.
        files: active data files, with their sizes.
        applications: application ids that it sets.
        changes_metadata: it sets columns or properties.
        removes_data: it removes rows, not only files.
        adds: files that it adds.
        note: ours, in its metadata.
    """

    text: str
    files: Mapping[str, int]
    applications: Mapping[str, int] = field(default_factory=dict)
    changes_metadata: bool = False
    removes_data: bool = False
    adds: Sequence[str] = ()
    note: Mapping[str, Any] = field(default_factory=dict)


@dataclass
class Log:
    """The log of one table."""

    schema: Schema
    number: int
    versions: list[Version] = field(default_factory=list)


class Store:
    """What survives every process: the logs of tables, data files and checkpoints.

    Args:
        scheduler: decides what happens at each access.
    """

    def __init__(self, scheduler: Scheduler) -> None:
        self.scheduler = scheduler
        self.logs: dict[str, Log] = {}
        self.data: dict[str, pa.Table] = {}
        self.texts: dict[str, str] = {}
        self.on_commit: Callable[[str, int], None] = lambda *_: None
        self._rows: dict[str, frozenset[Row]] = {}
        self._numbers = itertools.count()

    def rows(self, path: str) -> frozenset[Row]:
        """The rows of a data file."""
        if path not in self._rows:
            table = self.data[path]
            pairs = list(zip(table["partition"].to_pylist(), table["offset"].to_pylist(), strict=True))
            self._rows[path] = frozenset(pairs)
            assert len(pairs) == len(self._rows[path]), f"{path} holds an offset twice"
        return self._rows[path]

    def new_name(self) -> SimpleNamespace:
        """A name that no other file has; stands for uuid4."""
        return SimpleNamespace(hex=f"{next(self._numbers):04}")

    def append(self, uri: str, version: Version) -> None:
        """Put a log entry, after the caller has found that it is absent."""
        log = self.logs[uri]
        log.versions.append(version)
        self.scheduler.note(f"  committed {short_name(uri)} version {len(log.versions) - 1}")
        self.on_commit(uri, len(log.versions) - 1)

    def answer(self, fault: str, what: str) -> None:
        """Answer to a log entry that was put.

        Raises:
            Crash: the process ends after the entry was put.
            DeltaError: the answer was lost.
        """
        if fault == "crash after":
            self.scheduler.note(f"crash after {what}")
            raise Crash
        if fault == "lost":
            self.scheduler.note(f"the answer to {what} is lost")
            raise DeltaError("the connection broke before the answer came")
        self.scheduler.point(f"answer to {what}")


def short_name(uri: str) -> str:
    """The last part of an address, for the trace."""
    return uri.rpartition("/")[2]
