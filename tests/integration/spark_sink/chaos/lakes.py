"""Where the agents of the chaos write: Delta tables or Iceberg tables below one folder."""

import contextlib
import json
import sqlite3
import sys
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from spark_sink import positions
from spark_sink.ranges.batch_offset import TopicPartition
from tests.integration.spark_sink.chaos import iceberg_by_duckdb

_OPTIMIZE = Path(__file__).with_name("foreign_optimize.py")
_EXPIRE = Path(__file__).with_name("foreign_expire.py")


class Lake(ABC):
    """The tables of one run.

    Args:
        root: the folder; the agents make it.
    """

    flags: Sequence[str] = ()
    """Options of the command line beside the tables."""
    config: str = ""
    """The same in the file of a fleet: settings and, at its end, sections."""
    foreign: Path
    """Script of another program that maintains the tables, with the folder as its argument."""

    def __init__(self, root: Path) -> None:
        self.root = root

    @abstractmethod
    def table(self, name: str) -> str:
        """Return a table as the options take it; `{topic}` makes a table of each topic."""

    @abstractmethod
    def positions(self, tables: Sequence[str], group: str) -> Mapping[TopicPartition, int]:
        """Return how far tables have come."""

    def databases(self) -> Sequence[Path]:
        """Return the SQLite databases that the tables are in."""
        return ()

    @abstractmethod
    def committers(self) -> set[str]:
        """Return the agents that have committed so far."""


class DeltaLake(Lake):
    """Delta tables."""

    foreign = _OPTIMIZE

    def table(self, name: str) -> str:
        """A folder."""
        return str(self.root / name)

    def positions(self, tables: Sequence[str], group: str) -> Mapping[TopicPartition, int]:
        """By the tables' logs."""
        return positions(json.dumps(tables), group)

    def committers(self) -> set[str]:
        """By the notes in the logs."""
        logs = (file for log in self.root.rglob("_delta_log") for file in log.glob("*.json"))
        lines = (line for log in logs for line in log.read_text().splitlines() if '"commitInfo"' in line)
        return _agents(json.loads(line).get("commitInfo", {}).get("kafka-azimuth", {}) for line in lines)


class IcebergLake(Lake):
    """Iceberg tables in the SQLite catalog of a folder."""

    foreign = _EXPIRE

    def __init__(self, root: Path) -> None:
        super().__init__(root)
        self.flags = ("--table-format", "iceberg", "--catalog", f"warehouse={root}")
        self.config = f'table_format = "iceberg"\ncatalog = {{ warehouse = "{root}" }}'
        self._committers: set[str] = set()

    def table(self, name: str) -> str:
        """A name in the catalog."""
        return f"lake.raw.{name}"

    def databases(self) -> Sequence[Path]:
        """The catalog."""
        return [iceberg_by_duckdb.catalog(self.root)]

    def positions(self, tables: Sequence[str], group: str) -> Mapping[TopicPartition, int]:
        """By the tables' properties."""
        addresses = json.dumps([f"iceberg://{one}" for one in tables])
        return positions(addresses, group, {"catalog.warehouse": str(self.root)})

    def committers(self) -> set[str]:
        """By the notes in the snapshots, of which agents remove the old ones."""
        with contextlib.suppress(FileNotFoundError):  # a metadata file is removed when it is old
            for metadata in iceberg_by_duckdb.metadata(self.root).values():
                notes = (one["summary"].get("kafka-azimuth", "{}") for one in metadata.get("snapshots", ()))
                self._committers |= _agents(json.loads(note) for note in notes)
        return self._committers


def foreign_command(lake: Lake) -> list[str]:
    """Return the command of the other program."""
    return [sys.executable, str(lake.foreign), str(lake.root)]


def unlocked(database: Path) -> bool:
    """Return whether a writer gets the lock of an SQLite database within two seconds."""
    with contextlib.closing(sqlite3.connect(database, timeout=2, isolation_level=None)) as connection:
        try:
            connection.execute("BEGIN IMMEDIATE")
            connection.execute("ROLLBACK")
        except sqlite3.OperationalError:
            return False
    return True


def _agents(notes: Any) -> set[str]:
    return {note["agent"].partition("/")[0] for note in notes if "agent" in note}
