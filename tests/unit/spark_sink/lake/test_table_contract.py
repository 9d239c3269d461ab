"""Every table format keeps the contract of the seam: Delta, Iceberg, and the table in memory."""

import shutil
import tempfile
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path

import pyarrow as pa
import pytest
from hypothesis import HealthCheck, Phase, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, precondition, rule, run_state_machine_as_test

from spark_sink.errors import ConflictError, TableError
from spark_sink.lake.table_contract import Change, DataFile, Quarantined, Snapshot, Table
from spark_sink.ranges.batch_offset import Offset, Range, TopicPartition
from spark_sink.sink.commit_by_compare_and_swap import Batch, commit
from tests.table_kinds import KINDS, SCHEMA, Bucket, Kind, change_of, created, kind_of, newest

A, B = TopicPartition("a", 0), TopicPartition("b", 1)
KEYS = [A, TopicPartition("a", 1), B]
WRITERS = 3


@pytest.fixture(params=KINDS)
def kind(request: pytest.FixtureRequest, tmp_path: Path) -> Kind:
    """One table of each format."""
    return kind_of(request.param, tmp_path)


def test_there_is_no_table_until_it_is_made_and_a_second_maker_is_quiet(kind: Kind) -> None:
    """Two agents start at the same time."""
    one, two = kind.make(), kind.make()
    assert one.refresh() is None
    assert created(one).positions == {}
    assert created(two).schema == SCHEMA


def test_the_first_swap_has_made_the_table(kind: Kind) -> None:
    """Files and positions of the first batch are in it, and two writers that begin at once leave one table."""
    fast, slow = kind.make(), kind.make()
    first, second = (one.refresh() or one.begin(SCHEMA) for one in (fast, slow))
    fast.swap(first, _beginning(kind.write(A, range(5))))
    with pytest.raises(ConflictError):
        slow.swap(second, _beginning(kind.write(A, range(5))))
    assert newest(slow).positions == newest(fast).positions == {A: 5}
    slow.swap(newest(slow), change_of({A: 7}, kind.write(A, range(5, 7))))
    assert kind.rows() == Counter((A, offset) for offset in range(7))


def test_a_begin_without_a_swap_does_no_harm(kind: Kind) -> None:
    """The process that began has died."""
    kind.make().begin(SCHEMA)
    later = kind.make()
    assert (later.refresh() or later.begin(SCHEMA)).positions == {}


@pytest.mark.parametrize("again", [False, True], ids=["deleted", "deleted and created again"])
def test_a_table_that_goes_after_the_first_swap_is_not_begun_again(tmp_path: Path, *, again: bool) -> None:
    """It would have only the rows of the later batches."""
    kind = kind_of("delta", tmp_path)
    table = kind.make()
    assert table.refresh() is None
    table.swap(table.begin(SCHEMA), _beginning(kind.write(A, range(5))))
    (log,) = tmp_path.rglob("_delta_log")
    shutil.rmtree(log)
    if again:
        created(kind.make())
    with pytest.raises(TableError, match="deleted"):
        table.refresh()


def test_a_position_set_by_another_makes_a_conflict_and_changes_nothing(kind: Kind) -> None:
    """The zombie: it read the table, was stopped, and resumes after another writer has committed."""
    one, two = kind.make(), kind.make()
    created(one)
    stale, fresh = newest(one), newest(two)
    two.swap(fresh, change_of({A: 3}, kind.write(A, range(3))))
    with pytest.raises(ConflictError):
        one.swap(stale, change_of({A: 3}, kind.write(A, range(3))))
    assert newest(one).positions == {A: 3}
    assert kind.rows() == Counter((A, offset) for offset in range(3))


def test_other_partitions_are_no_conflict(kind: Kind) -> None:
    """Agents of one group hold different partitions; they must not slow one another."""
    one, two = kind.make(), kind.make()
    created(one)
    stale, fresh = newest(one), newest(two)
    two.swap(fresh, change_of({A: 3}, kind.write(A, range(3))))
    one.swap(stale, change_of({B: 2}, kind.write(B, range(2))))
    assert newest(two).positions == {A: 3, B: 2}
    assert sum(kind.rows().values()) == 5


@pytest.mark.parametrize("kind", [one for one in KINDS if one != "memory"], indirect=True)
def test_of_two_groups_that_begin_at_once_one_is_refused(kind: Kind) -> None:
    """Both look before either commits; the second one would write every record again. One in memory has no groups."""
    fast, slow = kind.make(), kind.make("other")
    created(fast)
    before = newest(slow)
    fast.swap(newest(fast), _beginning(kind.write(A, range(5))))
    change = _beginning(kind.write(A, range(5)))
    with pytest.raises((ConflictError, TableError)):
        slow.swap(before, change)
    with pytest.raises(TableError, match="was written here by group"):
        slow.swap(newest(slow), change)
    assert kind.rows() == Counter((A, offset) for offset in range(5))


def _beginning(file: DataFile) -> Change:
    return Change(files=[file], positions={A: 5}, beginnings={A: 0}, schema=SCHEMA)


def test_positions_move_without_a_row(kind: Kind) -> None:
    """A batch may have no row to write: its records were removed by the query, or are markers of transactions."""
    one, two = kind.make(), kind.make()
    stale = created(one)
    two.swap(newest(two), change_of({A: 7}))
    with pytest.raises(ConflictError):
        one.swap(stale, change_of({A: 9}))
    assert newest(one).positions == {A: 7}


def test_of_two_writers_one_sets_the_identity_of_a_topic(kind: Kind) -> None:
    """Set by compare and swap, like a position: the slower one must look again."""
    fast, slow = kind.make(), kind.make()
    created(fast)
    before = newest(slow)
    fast.swap(newest(fast), Change(files=(), positions={}, beginnings={}, schema=SCHEMA, identities={"a": 7}))
    with pytest.raises(ConflictError):
        slow.swap(before, Change(files=(), positions={}, beginnings={}, schema=SCHEMA, identities={"a": 8}))
    assert newest(slow).identities == {"a": 7}


def test_of_two_replays_one_commits(kind: Kind) -> None:
    """Both would add the same records of the quarantine."""
    fast, slow = kind.make(), kind.make()
    created(fast)
    before = newest(slow)
    fast.swap(newest(fast), Change(files=(), positions={}, beginnings={}, schema=SCHEMA, replays=1))
    with pytest.raises(ConflictError):
        slow.swap(before, Change(files=(), positions={}, beginnings={}, schema=SCHEMA, replays=1))
    assert newest(slow).replays == 1


def test_rows_below_the_floor_are_left_out_of_the_copy(kind: Kind) -> None:
    """The copy describes its rows, and there is no copy if no row is left."""
    table = kind.make()
    snapshot = created(table)
    file = kind.write(A, range(10))
    copy = table.filtered(file, {A: 7})
    assert copy is not None
    assert copy.path != file.path
    assert copy.spans[A] == (7, 9, 3)
    assert table.filtered(file, {A: 10}) is None
    table.swap(snapshot, change_of({A: 10}, copy))
    assert kind.rows() == Counter((A, offset) for offset in (7, 8, 9))


@pytest.mark.parametrize("format_", ["delta", "iceberg"])
def test_a_file_of_which_the_storage_sends_a_part_is_an_error_of_the_table(tmp_path: Path, format_: str) -> None:
    """An agent of a fleet continues after an error of a table; Arrow's error is another one."""
    kind = kind_of(format_, tmp_path)
    table = kind.make()
    created(table)
    file = kind.write(A, range(10))
    (stored,) = tmp_path.rglob(Path(file.path).name)
    stored.write_bytes(stored.read_bytes()[:2])
    with pytest.raises(TableError, match="2 bytes"):
        table.filtered(file, {A: 7})


def test_named_bad_rows_are_found_until_the_quarantine_has_them(kind: Kind) -> None:
    """The next writer of the partitions adds them if the first one died between its two commits."""
    table = kind.make()
    created(table)
    for end, before in ((3, {}), (6, {A: 3}), (9, {A: 6})):
        bad = Quarantined(files=[kind.write_bad(A, [end - 1])], ends={A: end}, before=before)
        table.swap(newest(table), Change(files=(), positions={A: end}, beginnings={}, schema=SCHEMA, quarantined=bad))
    later = kind.make()
    assert newest(later).quarantined == {A: 9}
    assert [one.ends[A] for one in later.named_quarantine([A], {})] == [3, 6, 9]
    assert [one.ends[A] for one in later.named_quarantine([A], {A: 6})] == [9]
    assert list(later.named_quarantine([A], {A: 9})) == list(later.named_quarantine([B], {})) == []


class _Interrupted:
    """A handle with events between the read and the swap, whose swap may report a false error."""

    def __init__(self, table: Table, between: Callable[[], object] | None = None, *, lies: bool = False) -> None:
        self._table = table
        self._between = between
        self._lies = lies

    @property
    def name(self) -> str:
        return self._table.name

    def refresh(self) -> Snapshot | None:
        snapshot = self._table.refresh()
        between, self._between = self._between, None
        if between is not None:
            between()
        return snapshot

    def newest(self) -> Snapshot | None:
        return self._table.newest()

    def create(self, schema: pa.Schema) -> None:
        self._table.create(schema)

    def begin(self, schema: pa.Schema) -> Snapshot:
        return self._table.begin(schema)

    def swap(self, snapshot: Snapshot, change: Change) -> None:
        self._table.swap(snapshot, change)
        lies, self._lies = self._lies, False
        if lies:
            raise TableError("the connection broke before the answer came")

    def filtered(self, file: DataFile, floors: Mapping[TopicPartition, int]) -> DataFile | None:
        return self._table.filtered(file, floors)

    def named_quarantine(
        self, asked: Iterable[TopicPartition], held: Mapping[TopicPartition, int]
    ) -> Sequence[Quarantined]:
        return self._table.named_quarantine(asked, held)


class _Agents(RuleBasedStateMachine):
    """Writers with old, half-done and repeated batches on one table, beside writers that know nothing of positions.

    A batch is planned from the table's positions, as the source does; after that its writer may stop for as long as
    the others like (a zombie), crash and write it again, or find that its commit was answered with an error.
    """

    format = "memory"
    bucket: Callable[[], Bucket] | None = None
    handle: Callable[[Table], Table] = staticmethod(lambda table: table)

    def __init__(self) -> None:
        super().__init__()
        self.root = Path(tempfile.mkdtemp())
        self.kind = kind_of(self.format, self.root, self.bucket() if self.bucket else None)
        self.handles = [self.handle(self.kind.make()) for _ in range(WRITERS)]
        self.next = dict.fromkeys(KEYS, 0)
        self.plans: dict[int, Offset] = {}
        self.files: dict[int, list[DataFile]] = {}

    @initialize(exists=st.booleans())
    def create(self, *, exists: bool) -> None:
        """Another program has created the table, or the first commit does."""
        if exists or self.format.startswith("iceberg"):  # its files need a table
            self.handles[0].create(SCHEMA)

    @rule(
        writer=st.integers(0, WRITERS - 1),
        keys=st.dictionaries(st.sampled_from(KEYS), st.integers(0, 5), min_size=1),
    )
    def plan(self, writer: int, keys: dict[TopicPartition, int]) -> None:
        """A writer takes its next batch; ownership may overlap with others as much as it likes."""
        snapshot = self.handles[writer].refresh()
        positions = snapshot.positions if snapshot else {}
        self.plans[writer] = Offset.of(
            Range(*key, positions.get(key, 0), positions.get(key, 0) + records) for key, records in keys.items()
        )
        self.files[writer] = [
            self.kind.write(one.key, range(one.begin, one.end)) for one in self.plans[writer] if one.records
        ]

    @precondition(lambda self: self.plans)
    @rule(
        writer=st.integers(0, WRITERS - 1),
        meanwhile=st.integers(0, WRITERS - 1),
        foreign=st.integers(0, 9),
        lies=st.booleans(),
    )
    def commit(self, writer: int, meanwhile: int, foreign: int, *, lies: bool) -> None:
        """It commits, now or again, while another writer, of this kind or a foreign one, does something."""
        others = list(self.kind.foreign.values())

        def between() -> None:
            if foreign < len(others) and self.kind.make().refresh() is not None:
                others[foreign]()
            if meanwhile != writer:
                self._commit(meanwhile, self.handles[meanwhile])

        self._commit(writer, _Interrupted(self.handles[writer], between, lies=lies))

    @rule(writer=st.integers(0, WRITERS - 1))
    def restart(self, writer: int) -> None:
        """A process ends, and another one comes in its place, with the same batch."""
        self.handles[writer] = self.handle(self.kind.make())

    def _commit(self, writer: int, table: Table) -> None:
        if writer in self.plans:
            batch = Batch(offset=self.plans[writer], files=self.files[writer], schema=SCHEMA)
            commit(table, batch, sleep=lambda _: None)

    def teardown(self) -> None:
        """The table has exactly the records of Kafka below the positions, each once."""
        try:
            snapshot = self.kind.make().refresh()
            if snapshot is None:
                return
            positions = snapshot.positions
            assert self.kind.rows() == Counter((key, at) for key, end in positions.items() for at in range(end))
        finally:
            shutil.rmtree(self.root)


def run_writers(
    format_: str,
    examples: int,
    steps: int,
    handle: Callable[[Table], Table] | None = None,
    bucket: Callable[[], Bucket] | None = None,
) -> None:
    """Run the machine of the writers on tables of one format.

    Args:
        format_: of the tables.
        examples: number of runs.
        steps: of each run.
        handle: makes a broken handle of one that keeps the contract; None for that one.
        bucket: returns a new place for the table of each run; None for local folders.
    """
    given = {"handle": handle, "bucket": bucket}
    changed = {name: staticmethod(one) for name, one in given.items() if one is not None}
    machine = type("Agents", (_Agents,), {"format": format_, **changed})
    run_state_machine_as_test(
        machine,
        settings=settings(
            max_examples=examples,
            stateful_step_count=steps,
            deadline=None,
            suppress_health_check=list(HealthCheck),
            phases=[Phase.generate] if handle else list(Phase),
            database=None,
        ),
    )


@pytest.mark.parametrize(
    ("format_", "examples"), [("memory", 40), ("delta", 4), ("iceberg", 3), ("iceberg by partition", 2)]
)
def test_every_record_is_there_once_whatever_writers_do(format_: str, examples: int) -> None:
    """Few and short runs of the machine; the slow ones below walk further."""
    run_writers(format_, examples, 12)


@pytest.mark.slow
@pytest.mark.parametrize("format_", ["delta", "iceberg", "iceberg by partition"])
def test_every_record_is_there_once_in_long_runs(format_: str) -> None:
    """The same machine, further."""
    run_writers(format_, 25, 25)
