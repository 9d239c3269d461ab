"""The rate of the busy seconds."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from spark_sink.demo.busy_seconds import BusyRate, busy_rate
from spark_sink.demo.timeline import Commit, Ownership
from spark_sink.ranges.batch_offset import TopicPartition

HELD = frozenset({TopicPartition("t", 0)})


def commit(time: float, agent: str, rows: int) -> Commit:
    """A commit of some rows."""
    return Commit(time=time, agent=agent, rows=rows, positions={}, files=())


def owns(time: float, agent: str) -> Ownership:
    """The first report of an agent."""
    return Ownership(time=time, agent=agent, generation=1, partitions=HELD)


def test_waiting_and_starting_are_not_busy() -> None:
    """Two agents land a backlog at the same time; then one follows what arrives, 10 a second."""
    commits = [commit(12, "a", 1000), commit(13, "b", 500), commit(14, "a", 20), commit(20, "b", 70)]
    found = busy_rate(commits, [owns(10, "a"), owns(11, "b")], began=4, arriving=10)
    assert found == BusyRate(busy_s=3, records=1500, start_s=8)


def test_without_a_backlog_there_is_no_rate() -> None:
    """A division by no time at all would end the report."""
    assert busy_rate([], [], began=0, arriving=1) is None
    assert busy_rate([commit(20, "a", 10)], [owns(10, "a")], began=0, arriving=1) is None


@given(st.lists(st.tuples(st.floats(0, 100), st.sampled_from("abc"), st.integers(0, 1000)), max_size=20))
def test_busy_time_is_within_the_run_and_no_record_counts_twice(found: list[tuple[float, str, int]]) -> None:
    """Agents overlap in any way."""
    commits = [commit(*one) for one in sorted(found)]
    rate = busy_rate(commits, [owns(0, agent) for agent in "abc"], began=0, arriving=5)
    if rate is not None:
        assert 0 < rate.busy_s <= commits[-1].time + 1e-9
        assert 0 < rate.records <= sum(one.rows for one in commits)
        assert rate.start_s == pytest.approx(commits[0].time)
