"""The end of a run with Trigger.AvailableNow, with a group whose membership follows a script."""

from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass, field

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from structlog.testing import capture_logs

from spark_sink.errors import DataLossError, FetchError
from spark_sink.options.source_options import SourceOptions
from spark_sink.ranges.assigned_positions import Assignment
from spark_sink.ranges.batch_offset import Offset, TopicPartition
from spark_sink.source.trigger_steps import BatchPlanner
from tests.known_positions import known_positions

A0, A1, B0 = TopicPartition("a", 0), TopicPartition("a", 1), TopicPartition("b", 0)
Paused = Callable[[], Collection[str] | None]
OPTIONS = {
    "kafka.bootstrap.servers": "x:1",
    "kafka.group.id": "g",
    "subscribe": "a,b",
    "kafka.session.timeout.ms": "6000",
    "kafka.max.poll.interval.ms": "30000",
    "kafkaConsumer.pollTimeoutMs": "20000",
}


@dataclass
class ScriptedGroup:
    """A group, its logs and a table, with events by second."""

    last: dict[TopicPartition, int] = field(default_factory=lambda: {A0: 10, A1: 10, B0: 10})
    leaders: set[TopicPartition] = field(default_factory=lambda: {A0, A1, B0})
    offsets: dict[TopicPartition, int] = field(default_factory=dict)
    table: dict[TopicPartition, int] = field(default_factory=dict)
    script: dict[float, Callable[[], None]] = field(default_factory=dict)
    now: float = 0.0
    assigned: Assignment = field(default_factory=Assignment)
    began: bool = False
    targets: dict[TopicPartition, int] = field(default_factory=dict)

    def give(self, *keys: TopicPartition) -> None:
        """Complete a rebalance."""
        self.assigned = Assignment(generation=self.assigned.generation + 1, partitions=frozenset(keys))

    def delete(self, key: TopicPartition) -> None:
        """Delete its topic."""
        del self.last[key]

    def clock(self) -> float:
        """Read the time."""
        return self.now

    def sleep(self, seconds: float) -> None:
        """Advance the time, and run the script's events."""
        assert self.now < 3_600, "the run neither ended nor failed within an hour"
        self.now += max(seconds, 0.001)
        for at in sorted(at for at in self.script if at <= self.now):
            self.script.pop(at)()

    def assignment(self, timeout_s: float) -> Assignment:
        """Answer at once, or after the timeout where the join is under way."""
        if self.assigned.generation < 0:
            self.sleep(timeout_s)
        return self.assigned

    def commit(self, positions: Mapping[TopicPartition, int]) -> bool:
        """Take the offsets."""
        self.offsets.update(positions)
        return True

    def begin_commit(self, positions: Mapping[TopicPartition, int]) -> Callable[[], bool]:
        """Commit at once."""
        committed = self.commit(positions)
        return lambda: committed

    def committed(self, keys: Iterable[TopicPartition]) -> dict[TopicPartition, int]:
        """Answer from the group."""
        return {key: self.offsets[key] for key in keys if key in self.offsets}

    def beginnings(self, keys: Iterable[TopicPartition]) -> dict[TopicPartition, int]:
        """Answer for logs that begin at 0."""
        return {key: 0 for key in keys if key in self.leaders}

    def ends(self, keys: Iterable[TopicPartition]) -> dict[TopicPartition, int]:
        """Answer for logs with a leader; the first answer of the run sets a target."""
        found = {key: self.last[key] for key in keys if key in self.leaders and key in self.last}
        if self.began:
            self.targets = found | self.targets
        return found

    def at_times(self, times_ms: Mapping[TopicPartition, int]) -> dict[TopicPartition, int | None]:
        """Answer that no record is so late."""
        return dict.fromkeys(times_ms)

    def subscribed(self) -> set[TopicPartition]:
        """Answer the partitions that exist; a run asks when it begins, after its member has joined or waited."""
        self.began = True
        return set(self.last)

    def identities(self, topics: Iterable[str]) -> dict[str, str]:
        """Answer for topics that are never recreated."""
        return {topic: f"cluster/{topic}" for topic in topics}

    def leave(self) -> None:
        """Leave."""


def run(
    group: ScriptedGroup, *, limit: int | None = None, table: bool = True, paused: Paused = tuple, **options: str
) -> list[Offset]:
    """One query with Trigger.AvailableNow; each batch is committed to the table. Returns the batches."""
    planner = BatchPlanner(
        SourceOptions.parse({**OPTIONS, **options}),
        group,
        positions=(lambda partitions: known_positions(group.table, partitions)) if table else None,
        clock=group.clock,
        sleep=group.sleep,
        paused=paused,
    )
    planner.stop_at_ends()
    batches: list[Offset] = []
    previous = Offset()
    while (offset := planner.next_offset(previous, limit)) != previous:
        for one in offset:
            at = group.table.get(one.key, 0)
            assert one.begin <= at, "the sink would refuse a hole"
            group.table[one.key] = max(at, one.end)
        batches.append(offset)
        previous = offset
        group.sleep(0)
    return batches


def read_to(group: ScriptedGroup) -> dict[TopicPartition, int]:
    """Return the table's records of existing partitions."""
    return {key: group.table.get(key, 0) for key in group.last}


def test_a_join_that_takes_longer_than_a_trigger_waits_for_it() -> None:
    """A member that was killed just before keeps its partitions until its session expires, after 45 s by default."""
    group = ScriptedGroup()
    group.script[35.0] = lambda: group.give(A0, A1, B0)
    run(group)
    assert read_to(group) == group.last


def test_a_join_that_never_ends_is_a_failure_that_names_what_was_not_read() -> None:
    """A scheduler that sees a success would not start the run again."""
    with pytest.raises(
        FetchError, match=r"3 of 3 partitions .* a/0 stands at no offset of 10 \(this member has not join"
    ):
        run(ScriptedGroup())


def test_a_partition_that_goes_to_another_member_is_waited_for() -> None:
    """It is that member's job, but this run would otherwise end as a success with records unread."""
    group = ScriptedGroup()
    group.give(A0, A1, B0)
    group.script[0.001] = lambda: group.give(A0)
    group.script[20.0] = lambda: group.table.update({A1: 10})
    group.script[40.0] = lambda: group.table.update({B0: 10})
    run(group, limit=6)
    assert group.now >= 40
    assert read_to(group) == group.last


def test_a_partition_comes_back_where_the_other_member_dies() -> None:
    """Whatever that member had not committed is read here."""
    group = ScriptedGroup()
    group.give(A0, A1)
    group.script[5.0] = lambda: group.table.update({B0: 4})
    group.script[20.0] = lambda: group.give(A0, A1, B0)
    batches = run(group)
    assert (batches[-1].ranges[B0].begin, batches[-1].ranges[B0].end) == (4, 10)


def test_a_member_that_does_not_read_its_partition_makes_the_run_fail() -> None:
    """Once that member could have been replaced, no progress means that nothing will come."""
    group = ScriptedGroup()
    group.give(A0, A1)
    group.script[5.0] = lambda: group.table.update({B0: 4})
    with pytest.raises(FetchError, match=r"1 of 3 .* b/0 stands at 4 of 10 \(assigned to another member\)"):
        run(group)
    assert 36 <= group.now - 5 < 40
    assert read_to(group) == {A0: 10, A1: 10, B0: 4}


def test_a_member_without_any_partition_waits_for_the_others() -> None:
    """More members than partitions: it ends with them, and takes over where they fail."""
    group = ScriptedGroup()
    group.give()
    group.script[12.0] = lambda: group.table.update(group.last)
    assert run(group) == []
    assert group.now >= 12


def test_without_a_table_the_offsets_of_the_group_say_how_far_others_are() -> None:
    """Commits come after the reads, so committed records have been read."""
    group = ScriptedGroup()
    group.give(A0)
    group.script[7.0] = lambda: group.offsets.update({A1: 10, B0: 10})
    run(group, table=False)
    assert group.now >= 7


def test_a_partition_without_a_leader_at_the_beginning_gets_its_target_later() -> None:
    """It had records when the run began; that their number was not known is no reason to leave them."""
    group = ScriptedGroup(leaders={A0, B0})
    group.give(A0, A1, B0)
    group.script[15.0] = lambda: group.leaders.add(A1)
    run(group)
    assert read_to(group) == group.last


def test_a_leader_that_goes_during_the_run_is_waited_for() -> None:
    """An election takes seconds."""
    group = ScriptedGroup()
    group.give(A0, A1, B0)
    group.script[0.001] = lambda: group.leaders.discard(A1)
    group.script[15.0] = lambda: group.leaders.add(A1)
    run(group, limit=3)
    assert read_to(group) == group.last


@pytest.mark.parametrize("leaders", [{A0, B0}, {A0, A1, B0}], ids=["from the beginning", "during the run"])
def test_a_leader_that_does_not_come_back_is_a_failure(leaders: set[TopicPartition]) -> None:
    """After the time that a task waits for records, too."""
    group = ScriptedGroup(leaders=leaders)
    group.give(A0, A1, B0)
    group.script[0.001] = lambda: group.leaders.discard(A1)
    with pytest.raises(FetchError, match=r"1 of 3 .* a/1 stands at .* \(no leader answers\)"):
        run(group, limit=3)
    assert 20 <= group.now < 30
    assert read_to(group) | {A1: 10} == group.last, "the others are read to their ends before"


def test_a_topic_that_is_deleted_during_the_run_is_lost_data() -> None:
    """Its records can no longer be read by any member."""
    group = ScriptedGroup()
    group.give(A0, A1, B0)
    group.script[0.001] = lambda: group.delete(B0)
    with pytest.raises(DataLossError, match=r"b/0: it was deleted before it was read: set failOnDataLoss=false"):
        run(group, limit=3)


def test_a_topic_that_is_deleted_is_left_where_loss_is_allowed() -> None:
    """The run ends when the rest is read, and a warning names the partition."""
    group = ScriptedGroup()
    group.give(A0, A1, B0)
    group.script[0.001] = lambda: group.delete(B0)
    with capture_logs() as logged:
        run(group, limit=3, failOnDataLoss="false")
    assert read_to(group) == group.last
    assert [one["partition"] for one in logged if "records are gone" in one["event"]] == [B0]


def test_a_log_that_was_cut_below_its_target_is_lost_data() -> None:
    """An unclean election: the end that the run began with does not come again."""
    group = ScriptedGroup()
    group.give(A0, A1, B0)
    group.script[0.001] = lambda: group.last.update({B0: 7})
    with pytest.raises(DataLossError, match=r"b/0: its log ended at 10 when the run began and ends at 7 now"):
        run(group, limit=3)


def test_empty_logs_end_the_run_at_once() -> None:
    """Also logs that are empty because retention took everything: the position is where they end."""
    group = ScriptedGroup(last={A0: 0, A1: 0, B0: 500}, offsets={B0: 500})
    group.give(A0, A1, B0)
    assert run(group) == []
    assert group.now < 1


def test_offsets_without_records_count_as_read() -> None:
    """Aborted transactions and retention leave gaps below a target: the range covers them, the task skips them."""
    group = ScriptedGroup()
    group.give(A0, A1, B0)
    assert [one.records for one in run(group)[-1]] == [10, 10, 10]


def test_a_topic_that_does_not_exist_is_named() -> None:
    """A misspelt name would otherwise look like a topic without records."""
    group = ScriptedGroup()
    group.give(A0, A1, B0)
    with capture_logs() as logged:
        run(group, subscribe="a,b,c")
    assert [one["topics"] for one in logged if "do not exist" in one["event"]] == [["c"]]


EVENTS = st.lists(
    st.tuples(
        st.floats(0.001, 60),
        st.sampled_from(["give", "read", "leader", "away", "produce"]),
        st.frozensets(st.sampled_from([A0, A1, B0])),
    ),
    max_size=12,
)


@given(events=EVENTS, limit=st.sampled_from([None, 1, 7]), first=st.frozensets(st.sampled_from([A0, A1, B0])))
@example(
    events=[(1.0, "read", frozenset([A0, A1, B0])), (2.0, "produce", frozenset([A0]))], limit=None, first=frozenset()
)
def test_a_run_never_ends_as_a_success_with_a_target_unread(
    events: list[tuple[float, str, frozenset[TopicPartition]]], limit: int | None, first: frozenset[TopicPartition]
) -> None:
    """Whatever happens to assignments and leaders, and whatever other members read."""
    group = ScriptedGroup()
    if first:
        group.give(*first)

    def event(kind: str, keys: frozenset[TopicPartition]) -> None:
        if kind == "give":
            group.give(*keys)
        elif kind == "read":
            group.table.update({key: group.last[key] for key in keys - group.assigned.partitions})
        elif kind == "leader":
            group.leaders |= keys
        elif kind == "away":
            group.leaders -= keys
        else:
            group.last.update({key: group.last[key] + 5 for key in keys})

    for at, kind, keys in events:
        group.script[at] = lambda kind=kind, keys=keys: event(kind, keys)  # type: ignore[misc]  # defaults bind them now
    failure = ""
    try:
        run(group, limit=limit)
    except FetchError as error:
        failure = str(error)
    unread = [key for key, target in group.targets.items() if group.table.get(key, 0) < target]
    # Where no leader has answered since the beginning, the run cannot know whether others read everything.
    assert bool(unread) == bool(failure) or "of an unknown end" in failure
    assert all(f"{key.topic}/{key.partition} stands at" in failure for key in unread)


def test_a_run_ends_without_paused_topics() -> None:
    """It would wait for them until they are resumed."""
    group = ScriptedGroup()
    group.give(A0, A1, B0)
    batches = run(group, paused=lambda: {"b"})
    assert group.table == {A0: 10, A1: 10, B0: 0}
    assert len(batches) == 1
