"""Each offset is in the table or in its quarantine, whatever happens between their commits."""

import contextlib
from collections import Counter
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from deltalake import DeltaTable
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule, run_state_machine_as_test

from spark_sink.errors import HoleError, TableError
from spark_sink.formats.bad_values_quarantined import COLUMN
from spark_sink.formats.quarantine_addresses import quarantine_of
from spark_sink.lake.delta_table import DeltaLakeTable
from spark_sink.lake.holes_and_doubles import verify
from spark_sink.lake.parquet_landing import normal_schema
from spark_sink.lake.table_contract import Change, DataFile, Snapshot
from spark_sink.ranges.batch_offset import Offset, Range, TopicPartition
from spark_sink.sink.commit_by_compare_and_swap import Batch
from spark_sink.sink.quarantine import quarantine_commit
from spark_sink.sink.quarantine.quarantine_commit import TableWithQuarantine
from spark_sink.sink.query_tables import Tables
from spark_sink.sink.rewind import delta_rewind
from spark_sink.sink.rows_by_table import Sorting
from spark_sink.sink.sink_options import SinkOptions
from spark_sink.testing import MemoryStore, MemoryTable
from tests.landed_offsets import landed_offsets
from tests.raw_rows import SCHEMA

KEYS = [TopicPartition("a", 0), TopicPartition("a", 1)]
GOOD = pa.schema([("topic", pa.string())])
WRITERS = 3
CRASHES = ["none", "before the table", "after the table", "before the quarantine", "after the quarantine"]


class _Crashed(BaseException):
    """The process ends here."""


class _Faulty(MemoryTable):
    """A handle whose process may end at its commit, with events of other writers between the read and the commit."""

    def __init__(self, store: MemoryStore, crash: str = "") -> None:
        super().__init__(store)
        self.crash = crash
        self.between: Callable[[], None] | None = None

    def refresh(self) -> Snapshot | None:
        snapshot = super().refresh()
        between, self.between = self.between, None
        if snapshot is not None and between is not None:
            between()
        return snapshot

    def swap(self, snapshot: Snapshot, change: Change) -> None:
        if self.crash == "before":
            raise _Crashed
        super().swap(snapshot, change)
        if self.crash == "after":
            raise _Crashed
        if self.crash == "lost answer":
            self.crash = ""
            raise TableError("the connection broke before the answer came")


class _Agents(RuleBasedStateMachine):
    """Writers that decode the same records differently each time, stop, crash and repeat."""

    writer: type[TableWithQuarantine] = TableWithQuarantine

    def __init__(self) -> None:
        super().__init__()
        self.store, self.quarantine = MemoryStore(), MemoryStore()
        self.ends = dict.fromkeys(KEYS, 20)
        self.plans: dict[int, Offset] = {}
        self.files: dict[int, tuple[Sequence[DataFile], Sequence[DataFile]]] = {}

    @rule(key=st.sampled_from(KEYS), records=st.integers(1, 6))
    def produce(self, key: TopicPartition, records: int) -> None:
        """Records arrive."""
        self.ends[key] += records

    @rule(
        writer=st.integers(0, WRITERS - 1),
        keys=st.sets(st.sampled_from(KEYS), min_size=1),
        most=st.integers(1, 7),
        bad=st.sets(st.integers(0, 3)),
    )
    def plan(self, writer: int, keys: set[TopicPartition], most: int, bad: set[int]) -> None:
        """A writer takes its next batch from the table's positions; others may take the same."""
        begins = {key: self.store.positions.get(key, 0) for key in keys}
        self.plans[writer] = Offset.of(
            Range(*key, begin, max(begin, min(begin + most, self.ends[key]))) for key, begin in begins.items()
        )
        self.decode(writer, bad)

    @rule(writer=st.integers(0, WRITERS - 1), bad=st.sets(st.integers(0, 3)))
    def decode(self, writer: int, bad: set[int]) -> None:
        """Its tasks decode the records, for the first time or with another schema after a crash."""
        if writer not in self.plans:
            return
        rows = [(one.key, offset) for one in self.plans[writer] for offset in range(one.begin, one.end)]
        self.files[writer] = (
            [self.store.write(row for row in rows if row[1] % 4 not in bad)],
            [self.quarantine.write(found)] if (found := [row for row in rows if row[1] % 4 in bad]) else [],
        )

    @rule(
        writer=st.integers(0, WRITERS - 1),
        other=st.integers(0, WRITERS - 1),
        place=st.sampled_from(["table", "quarantine"]),
        crash=st.sampled_from([("", ""), ("before", ""), ("after", ""), ("", "before"), ("", "after")]),
        lost=st.sampled_from(["", "table", "quarantine"]),
    )
    def commit(self, writer: int, other: int, place: str, crash: tuple[str, str], lost: str) -> None:
        """It commits, now or again, while another does the same between its look and its commit."""
        table, quarantine = _Faulty(self.store, crash[0]), _Faulty(self.quarantine, crash[1])
        if lost and crash == ("", ""):
            (table if lost == "table" else quarantine).crash = "lost answer"
        if other != writer:
            (table if place == "table" else quarantine).between = lambda: self._commit(
                other, _Faulty(self.store), _Faulty(self.quarantine)
            )
        self._commit(writer, table, quarantine)

    def _commit(self, writer: int, table: _Faulty, quarantine: _Faulty) -> None:
        if writer not in self.plans:
            return
        good, bad = self.files[writer]
        with contextlib.suppress(_Crashed, HoleError):
            self.writer(table, quarantine, sleep=lambda _: None).commit(
                Batch(offset=self.plans[writer], files=good, bad=bad, schema=GOOD)
            )

    @invariant()
    def every_offset_is_in_one_of_both(self) -> None:
        """Those that are named and not added yet count as in the quarantine: the next writer adds them."""
        held = self.quarantine.positions
        # Seen from outside, as a reader sees it; the model adds what the next writer would.
        waiting = MemoryTable(self.store).named_quarantine(KEYS, held)
        named = [row for one in waiting for file in one.files for row in self.quarantine.files[file.path]]
        expected = Counter((key, offset) for key in KEYS for offset in range(self.store.positions.get(key, 0)))
        assert Counter([*self.store.rows(), *self.quarantine.rows(), *named]) == expected

    def teardown(self) -> None:
        """The last writer adds the rows that others have named but not added."""
        if self.store.schema is None:
            return
        ends = Offset.of(
            Range(*key, self.store.positions.get(key, 0), self.store.positions.get(key, 0)) for key in KEYS
        )
        both = self.writer(MemoryTable(self.store), MemoryTable(self.quarantine), sleep=lambda _: None)
        both.commit(Batch(offset=ends, files=(), schema=GOOD))
        expected = Counter((key, offset) for key in KEYS for offset in range(self.store.positions.get(key, 0)))
        assert Counter([*self.store.rows(), *self.quarantine.rows()]) == expected


QUICK = settings(max_examples=150, stateful_step_count=25, deadline=None, suppress_health_check=list(HealthCheck))

TestAgents = _Agents.TestCase
TestAgents.settings = QUICK


class _Forgetful(TableWithQuarantine):
    """Adds its own bad rows, and never those that a dead writer left."""

    def commit(self, batch: Batch) -> Any:
        self._compared = True
        self._added = dict.fromkeys(KEYS, 1 << 40)
        return super().commit(batch)


def test_without_the_second_look_bad_rows_are_lost() -> None:
    """The machine above is worth something: it finds a writer that leaves the rows of a dead one."""

    class Forgetful(_Agents):
        writer = _Forgetful

    found = settings(QUICK, max_examples=1000, phases=[Phase.generate], database=None, report_multiple_bugs=False)
    with pytest.raises(AssertionError):
        run_state_machine_as_test(Forgetful, settings=found)


def _run(path: str, begin: int, end: int, bad: set[int]) -> None:
    options = SinkOptions.parse({"path": path, "kafka.group.id": "g", "checkpointLocation": "c", "compactEvery": "0"})
    rows = [
        {"topic": "a", "partition": 0, "offset": one, "value": b"v"}
        | ({COLUMN: {"error_class": "Bad", "error_text": "x", "value": b"v"}} if one in bad else {})
        for one in range(begin, end)
    ]
    sorting = Sorting(options, normal_schema(SCHEMA), "run")
    sorting.write(pa.RecordBatch.from_pylist(rows, schema=SCHEMA))
    Tables(options).commit(Offset.of([Range("a", 0, begin, end)]), sorting.close(), normal_schema(SCHEMA), 0)


@pytest.mark.parametrize("crash", CRASHES)
@pytest.mark.parametrize("end", [20, 16, 24], ids=["same range", "shorter", "longer"])
def test_a_second_decoding_loses_and_doubles_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, crash: str, end: int
) -> None:
    """A type was corrected after a crash: bad rows are good now, and good rows are bad."""
    path = str(tmp_path / "table")
    _run(path, 0, 10, {4})
    with monkeypatch.context() as patch:
        patch.setattr(DeltaLakeTable, "swap", _crash(crash))
        with contextlib.suppress(_Crashed):
            _run(path, 10, 20, {12, 13})
    _run(path, 10, end, {13, 15})
    _run(path, end, end + 10, {end + 1}) if end >= 20 else _run(path, 16, 30, {17})
    table, quarantine = landed_offsets(path), _quarantined(path)
    reached = max(end + 10, 30) if end >= 20 else 30
    assert sorted(table + quarantine) == list(range(reached))
    assert verify(path).ok


def _quarantined(path: str) -> list[int]:
    quarantine = quarantine_of(path)
    return landed_offsets(quarantine) if DeltaTable.is_deltatable(quarantine) else []


def _crash(crash: str) -> object:
    swap = DeltaLakeTable.swap

    def crashing(self: DeltaLakeTable, *arguments: object) -> None:
        hit = crash.endswith("quarantine") == self.name.endswith("_quarantine") and crash != "none"
        if hit and crash.startswith("before"):
            raise _Crashed
        swap(self, *arguments)  # type: ignore[arg-type]  # passed on as they came
        if hit:
            raise _Crashed

    return crashing


@given(st.sets(st.integers(10, 19)), st.sets(st.integers(10, 19)), st.sampled_from(CRASHES))
@settings(max_examples=8, deadline=None, suppress_health_check=list(HealthCheck))
def test_any_two_decodings_and_any_crash(
    tmp_path_factory: pytest.TempPathFactory, first: set[int], second: set[int], crash: str
) -> None:
    """Through the tasks' files and two Delta tables; the machine above walks many more in memory."""
    path = str(tmp_path_factory.mktemp("q") / "table")
    _run(path, 0, 10, set())
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(DeltaLakeTable, "swap", _crash(crash))
        with contextlib.suppress(_Crashed):
            _run(path, 10, 20, first)
    _run(path, 10, 20, second)
    assert sorted(landed_offsets(path) + _quarantined(path)) == list(range(20))


def test_a_quarantine_that_is_ahead_of_its_table_is_refused(tmp_path: Path) -> None:
    """The table was deleted or put back and its quarantine was not: the records in it would come a second time."""
    path = str(tmp_path / "table")
    _run(path, 0, 10, {4})
    (tmp_path / "table").rename(tmp_path / "gone")
    with pytest.raises(TableError, match=r"records of a/0 up to offset 10, and its table.*`azimuth rewind"):
        _run(path, 0, 10, {4})


def test_a_rewind_between_the_looks_at_quarantine_and_table_is_noticed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A process that was stopped there knows a quarantine of before: its good rows would be in both tables.

    It has just made the table, so it has not read it yet.
    """
    path, done = str(tmp_path / "table"), list[str]()
    refresh = DeltaLakeTable.refresh

    def refreshed(self: DeltaLakeTable) -> Snapshot | None:
        if done or not self.name.endswith("_quarantine"):
            return refresh(self)
        done.append("rewind")
        _run(path, 0, 10, {4})
        DeltaTable(path).restore(0)
        with monkeypatch.context() as patch:
            patch.setattr(delta_rewind, "_rewind_quarantine", lambda *_: None)  # it comes later
            delta_rewind.rewind(path, apply=True)
        return None  # as before the first bad record

    monkeypatch.setattr(DeltaLakeTable, "refresh", refreshed)
    with pytest.raises(TableError, match="set the positions back while this process was running"):
        _run(path, 0, 10, set())
    delta_rewind.rewind(path, apply=True)
    _run(path, 0, 10, {5})
    assert sorted(landed_offsets(path) + _quarantined(path)) == list(range(10))


@pytest.mark.parametrize("again", [set(), {16}], ids=["good now", "another one is bad"])
def test_bad_rows_that_a_rewind_took_back_are_not_added(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, again: set[int]
) -> None:
    """A writer that found no quarantine stops between its two commits, and its rows are read again meanwhile.

    The quarantine is not ahead then, because another writer has come as far, so only the rewind's mark tells.
    """
    path = str(tmp_path / "table")
    _run(path, 0, 10, set())
    add = quarantine_commit.add_quarantined
    stopped: list[str] = []

    def meanwhile(*given: Any, **more: Any) -> None:
        if not stopped:
            stopped.append("between its commits")
            DeltaTable(path).restore(1)
            delta_rewind.rewind(path, apply=True)
            with monkeypatch.context() as patch, contextlib.suppress(_Crashed):
                patch.setattr(DeltaLakeTable, "swap", _crash("before the quarantine" if again else "none"))
                _run(path, 10, 20, again)
        add(*given, **more)

    with monkeypatch.context() as patch:
        patch.setattr(quarantine_commit, "add_quarantined", meanwhile)
        with pytest.raises(TableError, match="quarantine: `azimuth rewind` set the positions back"):
            _run(path, 10, 20, {14})
    _run(path, 20, 30, set())
    assert landed_offsets(quarantine_of(path)) == sorted(again)
    assert sorted(landed_offsets(path) + _quarantined(path)) == list(range(30))


def clean_up_log(table: Path) -> None:
    """Leave a checkpoint, and a newest entry that names no bad rows."""
    handle = DeltaTable(table)
    handle.create_checkpoint()
    newest = f"{handle.version():020}.json"
    for entry in (table / "_delta_log").glob("*.json"):
        if entry.name != newest:
            entry.unlink()
    (table / "_delta_log" / newest).write_text('{"commitInfo":{"timestamp":1}}\n')


def test_bad_rows_whose_log_entry_is_gone_are_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Their files are named in one commit only; without it they would be lost in silence."""
    path = str(tmp_path / "table")
    with monkeypatch.context() as patch:
        patch.setattr(DeltaLakeTable, "swap", _crash("before the quarantine"))
        with pytest.raises(_Crashed):
            _run(path, 0, 10, {4})
    clean_up_log(tmp_path / "table")
    with pytest.raises(TableError, match="bad records of a/0 up to offset 10 are not in"):
        _run(path, 10, 20, set())
