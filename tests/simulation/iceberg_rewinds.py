"""Schedules of writers with a quarantine, and of a person who rolls the Iceberg table back and rewinds it.

As in `iceberg_schedules`, the real code writes real files and commits to pyiceberg's catalog in memory. Right before or
after a commit reaches the catalog, its process may end, or others may take some whole steps while it is paused.
"""

from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from random import Random
from typing import Any

import pyarrow as pa
import pytest

import spark_sink.sink.rewind.iceberg_rewind as rewind_module
from spark_sink.errors import SparkSinkError
from spark_sink.formats.bad_values_quarantined import SCHEMA as BAD_SCHEMA
from spark_sink.formats.quarantine_addresses import quarantine_of
from spark_sink.lake.iceberg.catalogs import open_catalog
from spark_sink.lake.iceberg.iceberg_table import IcebergTable
from spark_sink.lake.iceberg.stored_rows import open_stored, quarantined_rows
from spark_sink.ranges.batch_offset import Offset, Range, TopicPartition
from spark_sink.sink.commit_by_compare_and_swap import Batch
from spark_sink.sink.quarantine.quarantine_commit import TableWithQuarantine, refuse_ahead
from spark_sink.sink.rewind.delta_rewind import rewind
from tests.simulation.scheduler import BrokenPromiseError
from tests.table_kinds import SCHEMA, rows_of

WRITERS, STEPS, DEPTH = 2, 24, 2
FAULTS = ("none", "none", "none", "crash before", "crash after", "others before", "others before", "others after")
_KEYS = [TopicPartition("a", 0), TopicPartition("a", 1)]
_ADDRESS = "iceberg://lake.raw.events"
_COLUMNS = ("topic", "partition", "offset")


class _Crash(BaseException):
    """A process ends here."""


@dataclass
class _Writer:
    """A process that writes, with its handles.

    Attributes:
        table: of the table.
        quarantine: of its quarantine.
        both: commits to the two.
        opened: the two were compared.
        batch: planned, and not committed.
        paused: in the middle of a commit.
    """

    table: IcebergTable
    quarantine: IcebergTable
    both: TableWithQuarantine
    opened: bool = False
    batch: Batch | None = None
    paused: bool = field(default=False)


class RewindWorld:
    """One schedule.

    Args:
        seed: of all that is drawn.
        root: an empty folder.
    """

    def __init__(self, seed: int, root: Path) -> None:
        self._random = Random(seed)
        self._storage = {"catalog.type": "in-memory", "catalog.warehouse": str(root / f"r{seed}")}
        self._catalog = open_catalog("lake", self._storage)
        self._commit_table = self._catalog.commit_table
        self._fault, self._depth = "none", 0
        self._rewinding = self._refused = False
        IcebergTable(_ADDRESS, "g", self._storage).create(SCHEMA)
        self._writers = [self._started() for _ in range(WRITERS)]
        self.trace: list[str] = []

    def run(self) -> None:
        """Run the schedule.

        Raises:
            BrokenPromiseError: an offset below the position is in none or both of table and quarantine, or twice.
        """
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(self._catalog, "commit_table", self._commit)
            for _ in range(STEPS):
                self._step()
                self._check()
            self._finish()

    def _started(self) -> _Writer:
        table = IcebergTable(_ADDRESS, "g", self._storage)
        quarantine = IcebergTable(quarantine_of(_ADDRESS), "g", self._storage)
        return _Writer(table, quarantine, TableWithQuarantine(table, quarantine, sleep=lambda _: None))

    def _step(self) -> None:
        free = [number for number, one in enumerate(self._writers) if not one.paused]
        drawn = self._random.random()
        if drawn < 0.1:
            self._roll_back()
        elif drawn < (0.6 if self._refused else 0.2) and not self._rewinding:
            self._rewind()
        elif free:
            self._write(self._random.choice(free))

    def _write(self, number: int) -> None:
        writer = self._writers[number]
        writer.paused = True
        self._fault = self._random.choice(FAULTS)
        self.trace.append(f"writer {number}: {self._fault}")
        try:
            self._commit_batch(writer)
        except _Crash:
            self._writers[number] = self._started()
            self._writers[number].batch = writer.batch  # Spark repeats it
        except SparkSinkError as error:
            self.trace.append(f"  writer {number}: {error}")
            writer.opened, writer.both = False, self._both(writer)
            if self._random.random() < 0.7:
                writer.batch = None  # planned again from the positions
        finally:
            writer.paused = False
            self._fault = "none"

    def _both(self, writer: _Writer) -> TableWithQuarantine:
        return TableWithQuarantine(writer.table, writer.quarantine, sleep=lambda _: None)

    def _commit_batch(self, writer: _Writer) -> None:
        if writer.batch is None:
            writer.batch = self._planned()
        if not writer.opened:
            refuse_ahead(writer.table, writer.quarantine)
        writer.both.commit(writer.batch)
        writer.opened, writer.batch = True, None

    def _planned(self) -> Batch:
        """Decode the records from the positions on: each time others of them are bad."""
        snapshot = IcebergTable(_ADDRESS, "g", self._storage).refresh()
        known = snapshot.positions if snapshot else {}
        ranges = [Range(*key, at := known.get(key, 0), at + self._random.randint(0, 4)) for key in _KEYS]
        good = IcebergTable(_ADDRESS, "g", self._storage).landing(SCHEMA)
        bad = IcebergTable(quarantine_of(_ADDRESS), "g", self._storage).landing(BAD_SCHEMA)
        for one in ranges:
            wrong = {at for at in range(one.begin, one.end) if self._random.random() < 0.4}
            good.write(rows_of(one.key, [at for at in range(one.begin, one.end) if at not in wrong]))
            rows = [{**one.key._asdict(), "offset": at} for at in sorted(wrong)]
            bad.write(pa.RecordBatch.from_pylist(rows, schema=BAD_SCHEMA))
        return Batch(offset=Offset.of(ranges), files=good.close(), schema=SCHEMA, bad=bad.close())

    def _roll_back(self) -> None:
        """Set any snapshot that is there as the current one."""
        table = self._catalog.load_table(("raw", "events"))
        past = [one.snapshot_id for one in table.metadata.snapshots]
        if past:
            self.trace.append("the table is rolled back")
            with self._without_faults():
                self._set_current(self._random.choice(past))
            self._refused = True

    def _set_current(self, snapshot: int) -> None:
        table = self._catalog.load_table(("raw", "events"))
        table.manage_snapshots().set_current_snapshot(snapshot_id=snapshot).commit()

    def _rewind(self) -> None:
        self._rewinding = True
        self._fault = self._random.choice(FAULTS)
        self.trace.append(f"a rewind: {self._fault}")
        try:
            rewind(_ADDRESS, None, self._storage, apply=True)
            self._refused = False
        except (_Crash, SparkSinkError) as error:
            self.trace.append(f"  the rewind: {error or 'ends'}")
        finally:
            self._rewinding, self._fault = False, "none"

    def _commit(self, *given: Any) -> object:
        """Stand for the catalog's commit: a fault strikes any commit of its step."""
        fault = self._fault if self._random.random() < 0.5 else "none"
        if fault == "crash before":
            raise _Crash
        if fault == "others before":
            self._others()
        done = self._commit_table(*given)
        if fault == "crash after":
            raise _Crash
        if fault == "others after":
            self._others()
        return done

    def _others(self) -> None:
        if self._depth < DEPTH:
            self._depth += 1
            kept = self._fault
            for _ in range(self._random.randint(1, 4)):
                self._step()
            self._fault = kept
            self._depth -= 1

    @contextmanager
    def _without_faults(self) -> Iterator[None]:
        kept, self._fault = self._fault, "none"
        yield
        self._fault = kept

    def _check(self) -> None:
        """Compare table and quarantine, with the bad records that the table names, unless the table is refused."""
        try:
            table = open_stored(_ADDRESS, self._storage)
        except SparkSinkError:
            return
        if table is None:
            raise BrokenPromiseError("the table is gone")
        positions = table.state.groups["g"].positions if table.state.groups else {}
        found: Counter[tuple[TopicPartition, int]] = Counter()
        for batch in (*table.rows(_COLUMNS), *quarantined_rows(_ADDRESS, table, self._storage, _COLUMNS)):
            for topic, number, at in zip(*batch.to_pydict().values(), strict=True):
                key = TopicPartition(topic, number)
                found[key, at] += at < positions.get(key, 0)
        found = +found
        due = Counter((key, at) for key, end in positions.items() for at in range(end))
        if found != due:
            raise BrokenPromiseError(f"twice: {sorted(found - due)}, in neither: {sorted(due - found)}")

    def _finish(self) -> None:
        """Let the person get the table going again, and each writer go on."""
        with self._without_faults():
            self._rewind_without_faults()
            self._check()
            for number in [*range(WRITERS)] * 2:
                self._writers[number] = self._started()
                try:
                    self._commit_batch(self._writers[number])
                except SparkSinkError as error:
                    raise BrokenPromiseError(f"no agent goes on after the rewind: {error}") from error
            self._check()

    def _rewind_without_faults(self) -> None:
        try:
            rewind(_ADDRESS, None, self._storage, apply=True)
        except SparkSinkError as error:  # its rows do not fit the quarantine, so the person goes forward again
            self.trace.append(f"the last rewind: {error}")
            stored = open_stored(_ADDRESS, self._storage, rolled_back=True)
            if stored is None:
                raise BrokenPromiseError("the table is gone") from error
            self._set_current(stored.state.snapshot)
            rewind(_ADDRESS, None, self._storage, apply=True)


def mutants() -> dict[str, Callable[[pytest.MonkeyPatch], None]]:
    """A rewind without one of its steps or fences, by name; each puts itself in place."""
    set_back = rewind_module._set_back
    nothing = lambda *_: None  # noqa: E731 -- as the function it stands for

    def with_names(state: Any, reached: Any) -> Any:
        return replace(set_back(state, reached), named=state.named)

    return {
        "the quarantine is not marked": lambda patch: patch.setattr(rewind_module, "_mark", nothing),
        "the quarantine keeps later records": lambda patch: patch.setattr(rewind_module, "_trim", nothing),
        "the table keeps its names": lambda patch: patch.setattr(rewind_module, "_set_back", with_names),
        "rows from before a rewind are taken": lambda patch: patch.setattr(rewind_module, "refuse_undone", nothing),
    }
