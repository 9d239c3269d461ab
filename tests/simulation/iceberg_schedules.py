"""Schedules of writers of one Iceberg table, with faults at the commits of its catalog, drawn from a seed.

The real code writes real files, and commits to pyiceberg's catalog in memory. Only the answers of the catalog are
drawn: what happens right before a commit reaches it, and what the writer hears of it.
"""

from collections import Counter
from collections.abc import Callable
from pathlib import Path
from random import Random
from typing import Any

import pytest
from pyiceberg.exceptions import CommitFailedException, CommitStateUnknownException

import spark_sink.lake.iceberg.iceberg_table as table_module
from spark_sink.errors import SparkSinkError, TableError
from spark_sink.lake.iceberg import compaction
from spark_sink.lake.iceberg.catalogs import open_catalog
from spark_sink.lake.iceberg.iceberg_table import IcebergTable
from spark_sink.lake.iceberg.positions_in_table_properties import GroupState
from spark_sink.lake.iceberg.snapshot_commit import Prepared
from spark_sink.lake.table_settings import TableSettings
from spark_sink.ranges.batch_offset import Offset, Range, TopicPartition
from spark_sink.sink.commit_by_compare_and_swap import Batch, commit
from tests.simulation.scheduler import BrokenPromiseError
from tests.table_kinds import SCHEMA, rows_of

WRITERS, STEPS = 3, 14
FAULTS = ("none", "none", "another writer", "crash before", "crash after", "lost answer", "lost request", "compaction")
_KEYS = [TopicPartition("a", 0), TopicPartition("a", 1)]
_ADDRESS = "iceberg://lake.raw.events"
_QUICKLY = {"commit.retry.min-wait-ms": "1", "commit.retry.max-wait-ms": "2"}  # for pyiceberg's retries, in the mutant


class _Crash(BaseException):
    """The process of a writer ends here."""


class IcebergWorld:
    """One schedule.

    Args:
        seed: of all that is drawn.
        root: an empty folder.
    """

    def __init__(self, seed: int, root: Path) -> None:
        self._random = Random(seed)
        self._storage = {"catalog.type": "in-memory", "catalog.warehouse": str(root / f"w{seed}")}
        self._tables = [self._handle() for _ in range(WRITERS)]
        self._tables[0].create(SCHEMA)
        self._batches: dict[int, Batch] = {}
        self._fault, self._depth = "none", 0
        self._catalog = open_catalog("lake", self._storage)
        self._commit_table = self._catalog.commit_table
        self.trace: list[str] = []

    def run(self) -> None:
        """Run the schedule.

        Raises:
            BrokenPromiseError: a row is lost or doubled, or a position went back.
        """
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(self._catalog, "commit_table", self._commit)
            patch.setattr(compaction, "ENOUGH", 2)
            for _ in range(STEPS):
                self._step(self._random.randrange(WRITERS))
                self._check()

    def _handle(self) -> IcebergTable:
        return IcebergTable(_ADDRESS, "g", self._storage, TableSettings(properties=_QUICKLY))

    def _step(self, writer: int) -> None:
        """Plan a batch from the present positions, or commit the one that was planned, maybe long ago."""
        if writer not in self._batches or self._random.random() < 0.3:
            self._plan(writer)
        if self._random.random() < 0.8:
            self._fault = self._random.choice(FAULTS)
            self._write(writer)

    def _plan(self, writer: int) -> None:
        table = self._tables[writer]
        snapshot = table.refresh()
        known = snapshot.positions if snapshot else {}
        ranges = [Range(*key, at := known.get(key, 0), at + self._random.randint(0, 3)) for key in _KEYS]
        landing = table.landing(SCHEMA)
        for one in ranges:
            landing.write(rows_of(one.key, range(one.begin, one.end)))
        self._batches[writer] = Batch(offset=Offset.of(ranges), files=landing.close(), schema=SCHEMA)

    def _write(self, writer: int) -> None:
        self.trace.append(f"writer {writer}: {self._fault}")
        try:
            commit(self._tables[writer], self._batches[writer], sleep=lambda _: None)
            del self._batches[writer]
        except _Crash:
            self._tables[writer] = self._handle()
        except SparkSinkError as error:  # the batch is written again
            self.trace.append(f"  {error}")

    def _commit(self, *given: Any) -> object:
        """Stand for the catalog's commit: the fault strikes the first commit of its step."""
        fault, self._fault = self._fault, "none"
        if fault == "another writer":
            self._meanwhile()
        elif fault == "compaction":
            self._handle_that_compacts()
        elif fault == "crash before":
            raise _Crash
        elif fault == "lost request":
            raise CommitStateUnknownException("the connection broke")
        done = self._commit_table(*given)
        if fault == "crash after":
            raise _Crash
        if fault == "lost answer":
            raise CommitStateUnknownException("the connection broke before the answer came")
        return done

    def _meanwhile(self) -> None:
        """Let a writer that this step does not know write the same partitions."""
        before = dict(self._batches)
        self._tables.append(self._handle())
        self._plan(WRITERS)
        self._write(WRITERS)
        self._tables.pop()
        self._batches = before

    def _handle_that_compacts(self) -> None:
        table = self._handle()
        table.refresh()
        table.compact(1)

    def _check(self) -> None:
        stored = self._handle()
        snapshot = stored.refresh()
        if snapshot is None or stored.stored is None:
            raise BrokenPromiseError("the table is gone")
        rows = stored.stored.table.scan().to_arrow()
        found = Counter(zip(rows["partition"].to_pylist(), rows["offset"].to_pylist(), strict=True))
        due = Counter((key.partition, at) for key, end in snapshot.positions.items() for at in range(end))
        if found != due:
            raise BrokenPromiseError(f"doubled: {dict(found - due)}, lost: {dict(due - found)}")


def with_pyiceberg_retries(table: Any, snapshot: int, prepared: Prepared) -> None:
    """Commit as pyiceberg does by default, in the place of `snapshot_commit.commit`.

    It repeats a lost commit up to four times, and each time builds the assertion from the newest snapshot.
    """
    transaction = table.transaction()
    producer = transaction.update_snapshot(snapshot_properties=dict(prepared.summary)).merge_append()
    producer._snapshot_id = snapshot
    for one in prepared.entries:
        producer.append_data_file(one)
    producer.commit()
    transaction.set_properties(dict(prepared.properties))
    try:
        transaction.commit_transaction()
    except (CommitFailedException, CommitStateUnknownException) as error:
        raise TableError(str(error)) from error


def mutants() -> dict[str, Callable[[pytest.MonkeyPatch], None]]:
    """The code without one of its fences, by name; each puts itself in place."""
    conflicts = lambda self, change, seen: False  # noqa: ARG005, E731 -- as the method it stands for
    return {
        "pyiceberg's default retries": lambda patch: patch.setattr(table_module, "commit", with_pyiceberg_retries),
        "positions are not compared after a lost race": lambda patch: patch.setattr(GroupState, "conflicts", conflicts),
    }
