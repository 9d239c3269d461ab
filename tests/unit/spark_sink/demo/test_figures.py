"""Figures of the report, from small runs that can be checked by hand."""

from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from spark_sink.demo.figures import Moves, freshness_p95, moves_on_kill, peer_loads
from spark_sink.demo.timeline import Commit, Ownership
from spark_sink.ranges.batch_offset import TopicPartition

ZERO, ONE, TWO = (TopicPartition("t", p) for p in range(3))


def _owns(time: float, agent: str, *partitions: TopicPartition) -> Ownership:
    return Ownership(time=time, agent=agent, generation=1, partitions=frozenset(partitions))


def test_moves_count_every_partition_whose_owner_changed() -> None:
    """The dead agent's one moves to b; one that went from b to c is counted too; the joiner later is not."""
    changes = [
        _owns(1, "a", ZERO),
        _owns(1, "b", ONE, TWO),
        _owns(1, "c"),
        _owns(6, "b", ZERO, ONE),
        _owns(6, "c", TWO),
        _owns(9, "d", ZERO),
    ]
    assert moves_on_kill(changes, dead="a", at=5, until=8) == Moves(owned=1, moved=2)


def test_a_dead_agents_last_line_is_not_an_owner() -> None:
    """It reports ownership until another agent does; a partition without a new owner still counts as moved."""
    assert moves_on_kill([_owns(1, "a", ZERO), _owns(1, "b", ONE)], dead="a", at=5, until=8) == Moves(owned=1, moved=1)


def test_freshness_is_of_live_records_only(tmp_path: Path) -> None:
    """Records of the backlog waited before the first agent, so they would hide the pipeline's freshness."""
    times = pa.array([1_000_000, 11_000_000, 12_000_000], pa.timestamp("us", "UTC"))
    pq.write_table(pa.table({"timestamp": times}), tmp_path / "f.parquet")
    commit = Commit(time=14.0, agent="a", rows=3, positions={}, files=("f.parquet",))
    assert freshness_p95(tmp_path, [commit], since=10.0) == pytest.approx(2.95)
    assert freshness_p95(tmp_path, [commit], since=13.0) is None


def test_range_puts_single_partitions_on_the_first_agents() -> None:
    """The peers are asked, not modelled: 9 topics of one partition, 3 agents, all on the first."""
    loads = peer_loads({f"t{i}": 1 for i in range(9)}, ["a", "b", "c"])
    assert loads["range"]["partitions"] == {"a": 9, "b": 0, "c": 0}
    assert loads["round_robin"]["topics"] == {"a": 3, "b": 3, "c": 3}
