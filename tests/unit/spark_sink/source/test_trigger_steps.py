"""What the reader decides at each trigger, against a group that is a few dictionaries."""

import os
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import pyarrow as pa
import pytest
from structlog.testing import capture_logs

from spark_sink.errors import DataLossError, OptionError
from spark_sink.fetch.raw_columns import arrow_schema
from spark_sink.options.source_options import SourceOptions
from spark_sink.ranges.assigned_positions import Assignment
from spark_sink.ranges.batch_offset import Offset, Range, TopicPartition
from spark_sink.source.record_sizes import RecordSizes
from spark_sink.source.stream_reader import KafkaGroupReader
from spark_sink.source.trigger_steps import BatchPlanner
from tests.known_positions import known_positions

A0, A1, B0 = TopicPartition("a", 0), TopicPartition("a", 1), TopicPartition("b", 0)
BASE = {"kafka.bootstrap.servers": "x:1", "kafka.group.id": "g", "subscribePattern": ".*"}
LIMITED = {"maxOffsetsPerTrigger": "50"}


@dataclass
class Group:
    """A group of one member."""

    held: Assignment = field(default_factory=Assignment)
    offsets: dict[TopicPartition, int] = field(default_factory=dict)
    first: dict[TopicPartition, int] = field(default_factory=dict)
    last: dict[TopicPartition, int] = field(default_factory=dict)
    times: dict[TopicPartition, int | None] = field(default_factory=dict)
    ids: dict[str, str] = field(default_factory=dict)
    member: bool = True
    rebalancing: bool = False

    def give(self, *keys: TopicPartition, step: int = 1) -> None:
        """Rebalance."""
        self.held = Assignment(generation=self.held.generation + step, partitions=frozenset(keys))

    def assignment(self, timeout_s: float) -> Assignment:
        """Join, and answer at once."""
        assert timeout_s > 0
        self.member = True
        return self.held

    def commit(self, positions: Mapping[TopicPartition, int]) -> bool:
        """Take offsets of what is held, and the first offset of what is not."""
        assert not (positions.keys() - self.held.partitions) & self.offsets.keys(), "other members' offsets stay"
        if not self.rebalancing:
            self.offsets.update(positions)
        return not self.rebalancing

    def begin_commit(self, positions: Mapping[TopicPartition, int]) -> Callable[[], bool]:
        """Commit at once."""
        committed = self.commit(positions)
        return lambda: committed

    def committed(self, keys: Iterable[TopicPartition]) -> dict[TopicPartition, int]:
        """Answer from the group."""
        return {key: self.offsets[key] for key in keys if key in self.offsets}

    def beginnings(self, keys: Iterable[TopicPartition]) -> dict[TopicPartition, int]:
        """Answer from the logs."""
        return {key: self.first.get(key, 0) for key in keys}

    def ends(self, keys: Iterable[TopicPartition]) -> dict[TopicPartition, int]:
        """Answer for the logs whose leader is there."""
        return {key: self.last[key] for key in keys if key in self.last}

    def at_times(self, times_ms: Mapping[TopicPartition, int]) -> dict[TopicPartition, int | None]:
        """Answer from the table of times."""
        return {key: self.times.get(key) for key in times_ms}

    def subscribed(self) -> set[TopicPartition]:
        """Answer every partition that has a log."""
        return set(self.last)

    def identities(self, topics: Iterable[str]) -> dict[str, str]:
        """Answer for the topics that have an id."""
        return {topic: self.ids[topic] for topic in topics if topic in self.ids}

    def leave(self) -> None:
        """Leave."""
        self.member = False


class Clock:
    """A clock that only moves when somebody sleeps."""

    def __init__(self) -> None:
        self.now = 100.0

    def __call__(self) -> float:
        """Tell the time."""
        return self.now

    def sleep(self, seconds: float) -> None:
        """Move on."""
        self.now += seconds


@pytest.fixture
def group() -> Group:
    """A group whose member holds a/0 and a/1 with 10 records each."""
    made = Group(last={A0: 10, A1: 10})
    made.give(A0, A1)
    return made


def feed(
    group: Group,
    table: Mapping[TopicPartition, int] | None = None,
    clock: Clock | None = None,
    sizes: RecordSizes | None = None,
    paused: Callable[[], Collection[str] | None] = tuple,
    **options: str,
) -> BatchPlanner:
    """A reader of that group."""
    clock = clock or Clock()
    positions = None if table is None else partial(known_positions, table)
    parsed = SourceOptions.parse({**BASE, **options})
    parts: dict[str, Any] = {"sizes": sizes, "paused": paused, "clock": clock, "sleep": clock.sleep}
    return BatchPlanner(parsed, group, positions=positions, **parts)


def ranges(offset: Offset) -> dict[TopicPartition, tuple[int, int]]:
    """Begin and end by partition."""
    return {one.key: (one.begin, one.end) for one in offset}


def test_the_group_trails_the_batches_and_catches_up_while_idle(group: Group) -> None:
    """An offset is committed when the batch that read it has been run, which the next trigger says."""
    reader = feed(group)
    first = reader.next_offset(Offset(), None)
    assert ranges(first) == {A0: (0, 10), A1: (0, 10)}
    assert group.offsets == {A0: 0, A1: 0}, "where the group begins is written down, not what is being read"
    assert reader.log_ends() == {"a": {"0": 10, "1": 10}}
    idle = reader.next_offset(first, None)
    assert idle is first, "an idle trigger gives the previous offset back"
    assert group.offsets == {A0: 10, A1: 10}


@pytest.mark.parametrize(
    ("options", "most"),
    [({"parallelism": "3"}, 3_000_000), ({}, 1_000_000 * len(os.sched_getaffinity(0))), (LIMITED, 50)],
    ids=["by the tasks", "by the cores", "by an option"],
)
def test_the_first_batch_of_a_long_backlog_is_limited(
    monkeypatch: pytest.MonkeyPatch, group: Group, options: dict[str, str], most: int
) -> None:
    """Spark asks the reader for its limit; without one, a new query would read the whole log in one batch."""
    group.last = {A0: 10**12, A1: 10**12}
    reader = KafkaGroupReader(SourceOptions.parse({**BASE, **options}))
    monkeypatch.setattr(reader, "_session", nullcontext(feed(group)))
    end = reader.latestOffset(reader.initialOffset(), reader.getDefaultReadLimit())
    assert sum(one.records for one in Offset.parse(end)) == most


def test_a_commit_that_fails_is_made_up_for(group: Group) -> None:
    """While the group rebalances nothing can be committed; the next trigger does it."""
    reader = feed(group)
    first = reader.next_offset(Offset(), None)
    group.rebalancing = True
    reader.next_offset(first, None)
    assert group.offsets == {A0: 0, A1: 0}
    group.rebalancing = False
    reader.next_offset(first, None)
    assert group.offsets == {A0: 10, A1: 10}


def test_the_table_comes_before_the_group_before_the_options(group: Group) -> None:
    """The log of the table is the truth; group offsets may be ahead of a table that was restored."""
    group.last[B0] = 10
    group.give(A0, A1, B0)
    group.offsets = {A0: 5, A1: 6}
    reader = feed(group, table={A0: 3})
    assert ranges(reader.next_offset(Offset(), None)) == {A0: (3, 10), A1: (6, 10), B0: (0, 10)}


@pytest.mark.parametrize(
    ("table", "offset", "warns"), [({}, 5, True), ({A0: 3}, 5, False), ({}, 0, False)], ids=["new", "kept", "first"]
)
def test_a_table_made_anew_under_an_old_group_is_said(
    group: Group, table: dict[TopicPartition, int], offset: int, *, warns: bool
) -> None:
    """Who deletes a table to fill it again would wait for records that the group's offsets are behind."""
    group.offsets = {A0: offset}
    with capture_logs() as said:
        feed(group, table=table).next_offset(Offset(), None)
    assert any("no position of this group" in one["event"] for one in said) == warns


def test_without_a_table_the_checkpoint_may_be_ahead_of_the_group(group: Group) -> None:
    """The query died between a batch and the trigger that would have committed it."""
    group.offsets = {A0: 4, A1: 9}
    before = Offset.of([Range("a", 0, 4, 7, 1), Range("a", 1, 5, 8, 1)])
    assert ranges(feed(group).next_offset(before, None)) == {A0: (7, 10), A1: (9, 10)}


def test_a_gained_partition_begins_where_the_table_is_by_then(group: Group) -> None:
    """Held, lost, read by another agent, held again: the position of old times is forgotten."""
    table = {A0: 0, A1: 0}
    reader = feed(group, table=table)
    first = reader.next_offset(Offset(), None)
    table.update({A0: 10, A1: 10})
    group.last = {A0: 20, A1: 20}
    group.give(A0)
    second = reader.next_offset(first, None)
    assert ranges(second) == {A0: (10, 20)}
    table.update({A0: 20, A1: 15})
    group.give(A0, A1)
    assert ranges(reader.next_offset(second, None)) == {A0: (20, 20), A1: (15, 20)}


def test_an_offset_that_spark_did_not_take_is_not_believed(group: Group) -> None:
    """Positions are requested again, so that no gap remains."""
    reader = feed(group, table={A0: 0, A1: 0})
    reader.next_offset(Offset(), None)
    assert ranges(reader.next_offset(Offset(), None)) == {A0: (0, 10), A1: (0, 10)}


def test_after_leaving_positions_are_asked_for_anew(group: Group) -> None:
    """While the query slept, others read on."""
    table = {A0: 0, A1: 0}
    reader = feed(group, table=table)
    first = reader.next_offset(Offset(), None)
    reader.leave()
    assert not group.member
    table.update({A0: 10, A1: 10})
    group.last = {A0: 11, A1: 10}
    assert ranges(reader.next_offset(first, None)) == {A0: (10, 11), A1: (10, 10)}
    assert group.member


def test_a_small_batch_waits_for_more_records_or_for_the_delay(group: Group) -> None:
    """As in Spark's own source: the first trigger never waits, and the delay is counted from the last one that ran."""
    clock = Clock()
    reader = feed(group, clock=clock, minOffsetsPerTrigger="10", maxTriggerDelay="60s")
    first = reader.next_offset(Offset(), 1_000)
    assert ranges(first) == {A0: (0, 10), A1: (0, 10)}
    group.last[A0] = 15
    assert reader.next_offset(first, 1_000) is first, "5 records are too few"
    assert group.offsets == {A0: 10, A1: 10}, "a trigger that waits commits what was read"
    group.last[A1] = 15
    second = reader.next_offset(first, 1_000)
    assert ranges(second) == {A0: (10, 15), A1: (10, 15)}
    group.last[A0] = 16
    clock.now += 59
    assert reader.next_offset(second, 1_000) is second
    clock.now += 1
    third = reader.next_offset(second, 1_000)
    assert ranges(third) == {A0: (15, 16), A1: (15, 15)}


def test_a_start_without_records_does_not_make_the_first_ones_wait(group: Group) -> None:
    """The ends of the logs may not be known yet at the first trigger of a query."""
    group.last = {A0: 0, A1: 0}
    reader = feed(group, minOffsetsPerTrigger="10", maxTriggerDelay="60s")
    first = reader.next_offset(Offset(), 1_000)
    group.last = {A0: 3, A1: 0}
    assert ranges(reader.next_offset(first, 1_000))[A0] == (0, 3)


def test_trigger_once_and_available_now_do_not_wait_for_more_records(group: Group) -> None:
    """Such a run would end without what it was started for."""
    for limit, now in ((None, False), (1_000, True)):
        reader = feed(group, minOffsetsPerTrigger="10")
        first = reader.next_offset(Offset(), 1_000)
        group.last[A0] += 1
        if now:
            reader.stop_at_ends()
        assert reader.next_offset(first, limit) is not first


def test_a_limit_in_bytes_ends_a_batch(group: Group) -> None:
    """Large records make small batches; Trigger.Once reads everything."""

    def read(pieces: Sequence[Range]) -> Iterable[pa.RecordBatch]:
        rows = [{"topic": one.topic, "value": b"v" * 100} for one in pieces]
        yield pa.RecordBatch.from_pylist(rows, schema=arrow_schema(headers=False))

    reader = feed(group, sizes=RecordSizes(read, lambda: 0.0), maxBytesPerTrigger="1000")
    first = reader.next_offset(Offset(), 1_000)
    assert ranges(first) == {A0: (0, 5), A1: (0, 5)}
    assert ranges(reader.next_offset(first, None)) == {A0: (5, 10), A1: (5, 10)}


def test_available_now_ends_at_the_ends_of_its_beginning(group: Group) -> None:
    """Also over several batches, and for partitions gained on the way; ones made later are left."""
    group.last[B0] = 4
    reader = feed(group)
    reader.stop_at_ends()
    group.last = {A0: 99, A1: 99, B0: 99, TopicPartition("new", 0): 5}
    first = reader.next_offset(Offset(), 12)
    assert ranges(first) == {A0: (0, 6), A1: (0, 6)}
    group.give(A0, A1, B0, TopicPartition("new", 0))
    second = reader.next_offset(first, None)
    assert ranges(second)[A0] == (6, 10)
    assert ranges(second)[B0] == (0, 4)
    assert ranges(second)[TopicPartition("new", 0)] == (0, 0)
    assert reader.next_offset(second, None) is second


def test_a_partition_whose_leader_is_away_does_not_hold_the_others_up(group: Group) -> None:
    """Ends that are not known are not read."""
    del group.last[A0]
    assert ranges(feed(group).next_offset(Offset(), None)) == {A0: (0, 0), A1: (0, 10)}


def test_a_log_that_ends_before_the_position_stops_the_query_when_that_lasts(group: Group) -> None:
    """A re-created topic would otherwise be passed over in silence; a new leader may lag a moment (KIP-207)."""
    group.offsets = {A0: 500, A1: 10}
    reader = feed(group)
    offset = reader.next_offset(Offset(), None)
    assert offset == Offset(), "not at once"
    reader._sleep(10.0)
    with pytest.raises(DataLossError, match="a/0: offset 500 is next, but the log ends at 10"):
        reader.next_offset(offset, None)


def test_a_log_that_ends_before_the_position_stops_available_now_too(group: Group) -> None:
    """No later trigger would look, and the next run may find that the log has grown past the position."""
    group.offsets = {A0: 500, A1: 10}
    reader = feed(group)
    reader.stop_at_ends()
    with pytest.raises(DataLossError, match="a/0: offset 500 is next, but the log ends at 10"):
        reader.next_offset(Offset(), None)
    group.last[A0] = 600
    reader = feed(group)
    reader.stop_at_ends()
    group.offsets[A0] = 610  # another agent has read on since
    group.last[A0] = 620
    assert reader.next_offset(Offset(), None) == Offset()


def test_latest_is_for_a_group_that_begins(group: Group) -> None:
    """Where it begins is written into the group, so that whoever takes over does not begin later."""
    reader = feed(group, startingOffsets="latest")
    assert reader.next_offset(Offset(), None) == Offset()
    assert group.offsets == {A0: 10, A1: 10}
    group.last[B0] = 3
    group.give(A0, A1, B0)
    assert ranges(reader.next_offset(Offset(), None))[B0] == (0, 3), "a new partition is read from its beginning"
    del group.offsets[B0]
    restarted = feed(group, startingOffsets="latest")
    assert ranges(restarted.next_offset(Offset(), None))[B0] == (0, 3), "the group did not begin today"


@pytest.mark.parametrize("rule", ["latest", "a time"])
@pytest.mark.parametrize("known_by", ["group", "table"])
def test_a_member_that_gets_only_new_partitions_does_not_take_the_group_for_new(
    group: Group, rule: str, known_by: str
) -> None:
    """The records of a new topic would be skipped, depending on which partitions a member gets first."""
    group.times, group.last[B0] = {B0: 90}, 100
    group.give(B0)
    table = None
    if known_by == "group":
        group.offsets[A0] = 5
    else:
        table = {A0: 5}
    latest, time = feed(group, table, startingOffsets="latest"), feed(group, table, startingTimestamp="1700000000000")
    reader = latest if rule == "latest" else time
    assert ranges(reader.next_offset(Offset(), None))[B0] == (0, 100)


def test_the_member_that_begins_a_group_commits_a_start_for_all_partitions(group: Group) -> None:
    """A member that joins later finds where the group began, also for partitions that had no member yet."""
    group.give(A0)
    feed(group, startingOffsets="latest").next_offset(Offset(), None)
    assert group.offsets == {A0: 10, A1: 10}
    group.last[A1] = 12
    group.give(A1)
    assert ranges(feed(group, startingOffsets="latest").next_offset(Offset(), None)) == {A1: (10, 12)}


def test_starting_offsets_by_partition(group: Group) -> None:
    """Numbers, the marks of Spark's source, and earliest for what is not listed."""
    group.last[B0] = 10
    group.first = {A1: 2, B0: 1}
    group.give(A0, A1, B0)
    reader = feed(group, startingOffsets='{"a": {"0": 7, "1": -2}, "b": {"0": -1}}')
    assert ranges(reader.next_offset(Offset(), None)) == {A0: (7, 10), A1: (2, 10), B0: (10, 10)}


def test_starting_at_a_time(group: Group) -> None:
    """The first record at or after it; none so late is an error, or the end."""
    group.times = {A0: 6}
    with pytest.raises(OptionError, match="a/1: no record at or after 1700000000000 ms"):
        feed(group, startingTimestamp="1700000000000").next_offset(Offset(), None)
    late = feed(group, startingTimestamp="1700000000000", startingOffsetsByTimestampStrategy="latest")
    assert ranges(late.next_offset(Offset(), None)) == {A0: (6, 10), A1: (10, 10)}


def test_a_partition_that_cannot_be_placed_comes_again(group: Group) -> None:
    """Its leader is away: it is no part of the batch, and asked for at the next trigger."""
    reader = feed(group, startingOffsets="latest")
    del group.last[A0]
    group.last[A1] = 12
    first = reader.next_offset(Offset(), None)
    assert first == Offset()
    group.last[A0], group.last[A1] = 10, 13
    assert ranges(reader.next_offset(first, None)) == {A0: (0, 10), A1: (12, 13)}


def test_idle_triggers_do_not_spin(group: Group) -> None:
    """Spark asks again after 10 ms when there is nothing new."""
    reader = feed(group)
    offset = reader.next_offset(Offset(), None)
    before = reader._clock()
    for _ in range(10):
        offset = reader.next_offset(offset, None)
    assert reader._clock() - before > 0.85


def test_a_recreated_topic_stops_the_query_though_its_log_has_passed_the_position(group: Group) -> None:
    """By its id, whatever its offsets say: at the latest five seconds after it was made."""
    group.ids = {"a": "cluster/one"}
    reader = feed(group)
    first = reader.next_offset(Offset(), None)
    assert first.identities == {"a": "cluster/one"}
    group.ids = {"a": "cluster/two"}

    def go_on(offset: Offset) -> None:
        for end in range(11, 400):
            group.last = {A0: end, A1: end}
            offset = reader.next_offset(offset, None)
            offset = reader.next_offset(offset, None)  # idle: the clock moves on

    with pytest.raises(DataLossError, match=r"^a: .* recreated \(id cluster/one became cluster/two\)"):
        go_on(first)


def test_a_recreated_topic_while_the_query_was_down_is_found_by_the_checkpoint(group: Group) -> None:
    """Where no table keeps the identity, the offset of the last batch does; one without ids is taken as it is."""
    group.ids = {"a": "cluster/two"}
    before = Offset.of([Range(*A0, 0, 5)], {"a": "cluster/one"})
    with pytest.raises(DataLossError, match="recreated"):
        feed(group).next_offset(before, None)
    assert feed(group).next_offset(Offset.of([Range(*A0, 0, 5)]), None).identities == group.ids


def test_without_topic_ids_everything_is_read_as_before(group: Group) -> None:
    """Old brokers have none, and a leader that is away tells nothing; the text of the offset is then the old one."""
    group.ids = {"a": "cluster/one"}
    reader = feed(group)
    first = reader.next_offset(Offset(), None)
    group.ids = {}
    group.last = {A0: 11, A1: 11}
    assert reader.next_offset(first, None).identities == {"a": "cluster/one"}
    group.last = {A0: 12, A1: 12}
    assert '"topics"' not in feed(group).next_offset(Offset(), None).json()


def test_a_paused_topic_is_read_from_its_position_once_it_is_resumed(group: Group) -> None:
    """Others are read meanwhile; a batch that was planned before the pause is complete as it is."""
    group.last |= {B0: 5}
    group.give(A0, A1, B0)
    pauses = [{"a"}]
    reader = feed(group, paused=lambda: pauses[0])
    first = reader.next_offset(Offset(), None)
    assert ranges(first) == {A0: (0, 0), A1: (0, 0), B0: (0, 5)}
    group.last |= {A0: 12, B0: 6}
    second = reader.next_offset(first, 100)
    assert ranges(second)[B0] == (5, 6)
    assert ranges(second)[A0] == (0, 0)
    pauses[0] = set()
    third = reader.next_offset(second, None)
    assert ranges(third) == {A0: (0, 12), A1: (0, 10), B0: (6, 6)}


def test_a_batch_waits_until_the_pauses_are_known(group: Group) -> None:
    """Or a restarted query would read a paused topic, and one with Trigger.Once would read nothing."""
    answers = [None, None, None, {"b"}]
    reader = feed(group, paused=lambda: answers.pop(0) if len(answers) > 1 else answers[0])
    assert ranges(reader.next_offset(Offset(), None)) == {A0: (0, 10), A1: (0, 10)}
