"""Where a partition's reading starts."""

from typing import Any

import pytest
from structlog.testing import capture_logs

from spark_sink.errors import OptionError
from spark_sink.ranges.batch_offset import Offset, Range, TopicPartition
from tests.unit.spark_sink.source.trigger_group import A0, A1, B0, Group, feed, ranges


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


def test_latest_is_for_a_group_that_begins(group: Group) -> None:
    """Where it begins is written into the group, so that the next owner does not begin later."""
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


@pytest.mark.parametrize("option", ["startingOffsets", "startingOffsetsByTimestamp"])
@pytest.mark.parametrize("named", ["c/0", "a/7"])
def test_a_start_of_a_partition_that_is_not_read_is_refused_when_the_group_begins(
    group: Group, option: str, named: str
) -> None:
    """A mistyped name would have no effect; in a group that has begun, the topic may have been left out since."""
    topic, partition = named.split("/")
    options: dict[str, Any] = {option: f'{{"{topic}": {{"{partition}": 5}}}}'}
    with pytest.raises(OptionError, match=f"starting.* name {named}, which is not read"):
        feed(group, **options).next_offset(Offset(), None)
    group.offsets = {A0: 4}
    assert ranges(feed(group, **options).next_offset(Offset(), None)) == {A0: (4, 10), A1: (0, 10)}


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
