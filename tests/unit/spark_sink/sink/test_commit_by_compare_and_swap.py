"""Compare and swap, compared with a simple model of Kafka and of the expected table."""

from collections import Counter
from typing import TYPE_CHECKING

import pyarrow as pa
import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule, run_state_machine_as_test

from spark_sink.errors import ConflictError, HoleError, TableError
from spark_sink.lake.table_contract import Change, DataFile, Snapshot, Span
from spark_sink.ranges.batch_offset import Offset, Range, TopicPartition
from spark_sink.sink.batch_against_table import Verdict, decide, identity_number, judge
from spark_sink.sink.commit_by_compare_and_swap import ATTEMPTS, Batch, commit
from spark_sink.testing import MemoryStore, MemoryTable

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

SCHEMA = pa.schema([("topic", pa.string())])
KEYS = [TopicPartition("a", 0), TopicPartition("a", 1), TopicPartition("b", 0)]
WRITERS = 3


@pytest.mark.parametrize(
    ("cur", "begin", "end", "expected"),
    [
        (None, 5, 9, Verdict.BEGIN),
        (None, 5, 5, Verdict.BEGIN),  # held, nothing read: where it begins is worth keeping
        (5, 5, 9, Verdict.COMMIT),
        (9, 5, 9, Verdict.SKIP),
        (12, 5, 9, Verdict.SKIP),
        (7, 5, 9, Verdict.TRIM),
        (4, 5, 9, Verdict.HOLE),
        (5, 5, 5, Verdict.SKIP),
        (4, 5, 5, Verdict.SKIP),  # nothing is read, so nothing can be left out
    ],
)
def test_verdict_of_one_partition(cur: int | None, begin: int, end: int, expected: Verdict) -> None:
    """Every order that a position and a range can have."""
    assert judge(cur, begin, end) is expected


@given(
    st.integers(0, 12),
    st.integers(0, 6),
    st.integers(0, 6),
    st.lists(st.integers(0, 11), unique=True),
    st.integers(1, 3),
)
def test_what_goes_in_is_what_the_table_lacks(
    cur: int, begin: int, length: int, offsets: list[int], files: int
) -> None:
    """However the rows are spread over files: after the decision exactly the rows in [cur, end) are new."""
    end = begin + length
    store = MemoryStore(positions={KEYS[0]: cur}, schema=SCHEMA, version=0)
    inside = [offset for offset in offsets if begin <= offset < end]
    written = [store.write((KEYS[0], offset) for offset in inside[part::files]) for part in range(files)]
    batch = Batch(offset=Offset.of([Range("a", 0, begin, end)]), files=written, schema=SCHEMA)
    if cur < begin < end:
        with pytest.raises(HoleError, match=f"begins at offset {begin}, but the table's position is {cur}"):
            commit(MemoryTable(store), batch)
        assert store.rows() == []
        return
    outcome = commit(MemoryTable(store), batch)
    assert sorted(offset for _, offset in store.rows()) == sorted(offset for offset in inside if offset >= cur)
    assert store.positions[KEYS[0]] == (max(cur, end) if length else cur)
    assert (outcome.rows, outcome.rows + outcome.rows_left_out) == (len(store.rows()), len(inside))


def test_one_hole_refuses_the_whole_batch() -> None:
    """Half a batch would leave the query believing that all of it is in."""
    store = MemoryStore(positions={KEYS[0]: 0, KEYS[1]: 0}, schema=SCHEMA, version=0)
    batch = Batch(offset=Offset.of([Range("a", 0, 0, 5), Range("a", 1, 3, 5)]), files=[], schema=SCHEMA)
    with pytest.raises(HoleError, match="a/1"):
        commit(MemoryTable(store), batch)
    assert store.positions == {KEYS[0]: 0, KEYS[1]: 0}


def test_a_topic_made_anew_is_refused_wherever_its_offsets_lie() -> None:
    """Below the table's position it would look like a replay, above it like the next records."""
    store = MemoryStore()

    def bring(begin: int, end: int, identity: str | None) -> None:
        offset = Offset.of([Range("a", 0, begin, end)], {"a": identity} if identity else None)
        files = [store.write((KEYS[0], one) for one in range(begin, end))]
        commit(MemoryTable(store), Batch(offset=offset, files=files, schema=SCHEMA))

    bring(0, 5, None)  # written before there were identities
    bring(5, 8, "cluster/one")
    assert store.identities == {"a": identity_number("cluster/one")}
    bring(8, 9, None)  # an agent of an older version
    for begin, end in ((0, 9), (0, 12), (9, 12)):
        with pytest.raises(TableError, match=r"a: the table has records of an earlier topic .* cluster/two"):
            bring(begin, end, "cluster/two")
    bring(9, 12, "cluster/one")
    assert [offset for _, offset in sorted(store.rows())] == list(range(12))


@pytest.mark.parametrize("span", [Span(4, 6, 3), Span(8, 9, 2)], ids=["before the range", "after the range"])
def test_rows_of_another_batch_are_refused(span: Span) -> None:
    """The offset log of another query, or a query that changes the offsets."""
    file = DataFile(path="x", size_bytes=1, spans={KEYS[0]: span})
    with pytest.raises(TableError, match="not of this batch"):
        decide({}, Offset.of([Range("a", 0, 5, 9)]), [file])
    with pytest.raises(TableError, match="whose range is none"):
        decide({}, Offset.of([Range("a", 1, 0, 99)]), [file])


def test_a_table_that_is_never_free_is_said_so() -> None:
    """No endless loop, and no claim that something was committed."""

    class Busy(MemoryTable):
        def swap(self, snapshot: Snapshot, change: Change) -> None:
            del snapshot, change
            raise ConflictError

    batch = Batch(offset=Offset.of([Range("a", 0, 0, 5)]), files=[], schema=SCHEMA)
    pauses: list[float] = []
    with pytest.raises(TableError, match=f"{ATTEMPTS} times in a row"):
        commit(Busy(MemoryStore()), batch, sleep=pauses.append)
    assert len(pauses) == ATTEMPTS


def test_a_store_that_fails_is_given_time_to_recover() -> None:
    """Three attempts in a tenth of a second would be one attempt: a proxy answers 503 for some seconds."""
    attempts: list[int] = []

    class Away(MemoryTable):
        def swap(self, snapshot: Snapshot, change: Change) -> None:
            del snapshot, change
            attempts.append(1)
            raise TableError("503")

    batch = Batch(offset=Offset.of([Range("a", 0, 0, 5)]), files=[], schema=SCHEMA)
    pauses: list[float] = []
    with pytest.raises(TableError, match="503"):
        commit(Away(MemoryStore()), batch, sleep=pauses.append)
    assert len(attempts) == 3
    assert pauses == [1.0, 2.0]


class _Interrupted(MemoryTable):
    """A handle with events between the read and the swap, whose swap may report a false error, and that lists late."""

    def __init__(self, store: MemoryStore) -> None:
        super().__init__(store)
        self.between: Callable[[], None] | None = None
        self.lies = False
        self.listed: list[Snapshot | None] = []  # older versions, for the next reads

    def newest(self) -> Snapshot | None:
        self.listed = []
        return self.refresh()

    def refresh(self) -> Snapshot | None:
        snapshot = self.listed.pop() if self.listed else super().refresh()
        if snapshot is not None and self.between is not None:
            between, self.between = self.between, None
            between()
        return snapshot

    def swap(self, snapshot: Snapshot, change: Change) -> None:
        super().swap(snapshot, change)
        if self.lies:
            self.lies = False
            raise TableError("the connection broke before the answer came")


class _Unfenced(_Interrupted):
    """A handle that commits by path: commits since the read are not compared."""

    def swap(self, snapshot: Snapshot, change: Change) -> None:
        super().swap(Snapshot(version=self.store.version, positions={}, schema=snapshot.schema), change)


class _Agents(RuleBasedStateMachine):
    """Writers with old, half-done and repeated batches on one table.

    A batch is planned from the table's positions, as the source does; after that its writer may stop for as long as
    the others like (a zombie), crash and write it again, or find that its commit was answered with an error.
    """

    handle: type[_Interrupted] = _Interrupted

    def __init__(self) -> None:
        super().__init__()
        self.store = MemoryStore()
        self.kafka: dict[TopicPartition, list[int]] = {key: [] for key in KEYS}
        self.next = dict.fromkeys(KEYS, 0)
        self.plans: dict[int, Offset] = {}
        self.files: dict[int, Sequence[DataFile]] = {}
        self.past: list[Snapshot | None] = [None]

    @rule(key=st.sampled_from(KEYS), records=st.integers(1, 9), gap=st.integers(0, 2))
    def produce(self, key: TopicPartition, records: int, gap: int) -> None:
        """Add records; gaps are those of compaction and transactions."""
        first = self.next[key] + gap
        self.kafka[key] += range(first, first + records)
        self.next[key] = first + records

    @rule(writer=st.integers(0, WRITERS - 1), keys=st.sets(st.sampled_from(KEYS), min_size=1), most=st.integers(0, 7))
    def plan(self, writer: int, keys: set[TopicPartition], most: int) -> None:
        """A writer takes its next batch; ownership may overlap with others as much as it likes."""
        begins = {key: self.store.positions.get(key, 0) for key in keys}
        self.plans[writer] = Offset.of(
            Range(*key, begin, min(begin + most, max(self.next[key], begin))) for key, begin in begins.items()
        )
        self.write(writer, 2)

    @rule(writer=st.integers(0, WRITERS - 1), files=st.integers(1, 3))
    def write(self, writer: int, files: int) -> None:
        """Its tasks write the rows, for the first time or again after a crash."""
        if writer in self.plans:
            rows = [
                (one.key, offset)
                for one in self.plans[writer]
                for offset in self.kafka[one.key]
                if one.begin <= offset < one.end
            ]
            self.files[writer] = [self.store.write(rows[part::files]) for part in range(files)]

    @rule(
        writer=st.integers(0, WRITERS - 1),
        meanwhile=st.integers(0, WRITERS - 1),
        late=st.lists(st.integers(0, 3), max_size=3),
        lies=st.booleans(),
    )
    def commit(self, writer: int, meanwhile: int, late: list[int], *, lies: bool) -> None:
        """It commits, now or again, while another does the same, and perhaps reads older versions first."""
        if writer not in self.plans:
            return
        table = self.handle(self.store)
        table.lies = lies
        behind = sorted({min(one, len(self.past) - 1) for one in late})
        table.listed = [self.past[-1 - one] for one in behind]
        if meanwhile != writer:
            table.between = lambda: self._commit(meanwhile, self.handle(self.store))
        self._commit(writer, table)

    def _commit(self, writer: int, table: _Interrupted) -> None:
        if writer in self.plans:
            batch = Batch(offset=self.plans[writer], files=self.files[writer], schema=SCHEMA)
            commit(table, batch, sleep=lambda _: None)
            self.past.append(MemoryTable(self.store).refresh())

    @invariant()
    def every_record_once(self) -> None:
        """The table has exactly the records of Kafka below the positions, each once."""
        expected = Counter(
            (key, offset)
            for key in KEYS
            for offset in self.kafka[key]
            if self.store.beginnings.get(key, 0) <= offset < self.store.positions.get(key, 0)
        )
        assert Counter(self.store.rows()) == expected


QUICK = settings(max_examples=200, stateful_step_count=30, deadline=None, suppress_health_check=list(HealthCheck))

TestAgents = _Agents.TestCase
TestAgents.settings = QUICK


def test_without_the_fence_records_come_twice() -> None:
    """The machine above is worth something: the same writers fail when the swap compares nothing."""

    class Open(_Agents):
        handle = _Unfenced

    found = settings(QUICK, max_examples=1000, phases=[Phase.generate], database=None, report_multiple_bugs=False)
    with pytest.raises(AssertionError):
        run_state_machine_as_test(Open, settings=found)
