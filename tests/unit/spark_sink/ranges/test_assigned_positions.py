"""Which ranges follow each other while partitions come and go."""

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from spark_sink.ranges.assigned_positions import AssignedPositions, Assignment
from spark_sink.ranges.batch_ends_within_limits import Limit
from spark_sink.ranges.batch_offset import Offset, TopicPartition

A0, A1, B0 = TopicPartition("a", 0), TopicPartition("a", 1), TopicPartition("b", 0)


def held(generation: int, *keys: TopicPartition) -> Assignment:
    """An assignment."""
    return Assignment(generation=generation, partitions=frozenset(keys))


def test_ranges_follow_each_other_and_empty_ones_keep_the_position() -> None:
    """The offset lists every owned partition, so that it completely describes the query's progress."""
    assigned = AssignedPositions()
    assert assigned.assign(held(1, A0, A1)) == {A0, A1}
    assigned.seek({A0: 5, A1: 7})
    first = assigned.next_offset({A0: 10, A1: 7}, Limit())
    assert first is not None
    assert first.json() == '{"v":1,"partitions":{"a":{"0":[5,10,1],"1":[7,7,1]}}}'
    second = assigned.next_offset({A0: 12, A1: 8}, Limit())
    assert second is not None
    assert [(one.begin, one.end) for one in second] == [(10, 12), (7, 8)]


def test_nothing_new_is_no_offset() -> None:
    """Any offset but the previous one would make Spark run an empty batch."""
    assigned = AssignedPositions()
    assigned.assign(held(1, A0))
    assigned.seek({A0: 5})
    assert assigned.next_offset({A0: 5}, Limit()) is None
    assert assigned.next_offset({}, Limit()) is None
    assert assigned.next_offset({A0: 9}, Limit(offsets=0)) is None
    assert assigned.positions == {A0: 5}


def test_a_lost_partition_vanishes_and_a_gained_one_needs_its_position() -> None:
    """Another member may have read the gained one in between."""
    assigned = AssignedPositions()
    assigned.assign(held(1, A0, A1))
    assigned.seek({A0: 0, A1: 0})
    assert assigned.assign(held(2, A1, B0)) == {B0}
    assigned.seek({B0: 3, A0: 99})
    offset = assigned.next_offset({A1: 4, B0: 5, A0: 100}, Limit())
    assert offset is not None
    assert set(offset.ranges) == {A1, B0}


def test_a_generation_that_went_by_without_us_makes_every_position_unknown() -> None:
    """After a stop longer than the session, others may have read further although the assignment looks unchanged."""
    assigned = AssignedPositions()
    assigned.assign(held(4, A0))
    assigned.seek({A0: 5})
    assert assigned.assign(held(4, A0)) == set()
    assert assigned.assign(held(5, A0)) == set()
    assert assigned.assign(held(7, A0)) == {A0}
    assigned.seek({A0: 6})
    assert assigned.assign(held(1, A0)) == {A0}, "a group that was deleted starts again"


def test_a_partition_without_a_known_end_stays_where_it_is() -> None:
    """While a leader is elected the other partitions continue."""
    assigned = AssignedPositions()
    assigned.assign(held(1, A0, A1))
    assigned.seek({A0: 5, A1: 5})
    offset = assigned.next_offset({A1: 6}, Limit())
    assert offset is not None
    assert offset.ends == {A0: 5, A1: 6}


KEYS = st.sampled_from([A0, A1, B0])


class Agent(RuleBasedStateMachine):
    """One agent of a group, with a table that others write to as well."""

    def __init__(self) -> None:
        super().__init__()
        self.assigned = AssignedPositions()
        self.generation = 1
        self.ends = dict.fromkeys([A0, A1, B0], 0)
        self.table = dict.fromkeys([A0, A1, B0], 0)
        self.mine: frozenset[TopicPartition] = frozenset()
        self.offset: Offset | None = None

    @rule(key=KEYS, count=st.integers(1, 50))
    def produce(self, key: TopicPartition, count: int) -> None:
        """Records arrive."""
        self.ends[key] += count

    @rule(keys=st.frozensets(KEYS), away=st.integers(0, 2))
    def rebalance(self, keys: frozenset[TopicPartition], away: int) -> None:
        """A new generation; with `away`, others owned everything for a while and read on."""
        if away:
            self.table = dict(self.ends)
        for key in self.ends.keys() - self.mine:
            self.table[key] = self.ends[key]
        self.generation += 1 + away
        self.mine = keys

    @precondition(lambda self: self.mine)
    @rule(limit=st.one_of(st.none(), st.integers(1, 60)))
    def batch(self, limit: int | None) -> None:
        """One trigger, and the sink's commit of it."""
        gained = self.assigned.assign(Assignment(generation=self.generation, partitions=self.mine))
        self.assigned.seek({key: self.table[key] for key in gained})
        self.offset = self.assigned.next_offset({key: self.ends[key] for key in self.mine}, Limit(offsets=limit))
        for one in self.offset or ():
            assert one.begin == self.table[one.key], "neither a hole nor a record twice"
            self.table[one.key] = one.end

    @invariant()
    def the_table_never_passes_the_log(self) -> None:
        """Nothing is read that is not there."""
        assert all(self.table[key] <= self.ends[key] for key in self.ends)


TestAgent = Agent.TestCase
TestAgent.settings = settings(max_examples=60, stateful_step_count=30, deadline=None)


def test_a_limit_below_the_number_of_partitions_starves_none() -> None:
    """The memory of who has waited lasts from batch to batch; a small backlog is as good as a large one."""
    keys = [TopicPartition("a", n) for n in range(5)]
    assigned = AssignedPositions()
    assigned.assign(Assignment(generation=1, partitions=frozenset(keys)))
    assigned.seek(dict.fromkeys(keys, 0))
    ends = dict.fromkeys(keys, 10**6) | {keys[-1]: 1}
    for _ in range(3):
        assert assigned.next_offset(ends, Limit(offsets=2)) is not None
    assert all(assigned.positions[key] for key in keys)
