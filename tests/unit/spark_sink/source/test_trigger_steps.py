"""What the reader decides at each trigger: commits, lost offsets, recreated and paused topics."""

import pytest

from spark_sink.errors import DataLossError
from spark_sink.ranges.batch_offset import Offset, Range
from tests.unit.spark_sink.source.trigger_group import A0, A1, B0, Group, feed, ranges


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
