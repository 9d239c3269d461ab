"""`--once`: the job ends when the table has what was there at the start, and holds no claim then."""

import threading
import time
from pathlib import Path

import pytest

from assignors.claims import Picking
from spark_sink.claimed import caught_up, job_loop
from spark_sink.claimed.caught_up import Ending
from spark_sink.claimed.job_loop import ClaimedIngest
from spark_sink.errors import TableError
from spark_sink.ranges.batch_offset import TopicPartition
from tests.unit.spark_sink.claimed.job_stage import ENDS, Apart, Stage

SELDOM = Picking(worth_records=1e9, longest_s=3_000.0)


def run(job: ClaimedIngest, stop: threading.Event | None = None) -> Ending | None:
    """Run until it ends by itself; a fault ends it after a while, so that the test fails."""
    stop = stop or threading.Event()
    guard = threading.Timer(60, stop.set)
    guard.start()
    try:
        return job.run(stop)
    finally:
        guard.cancel()


def rows(stage: Stage) -> dict[TopicPartition, int]:
    """The number of rows of each partition."""
    return {key: len(offsets) for key, offsets in stage.world.table.items()}


def test_it_ends_when_all_is_read_and_holds_nothing(stage: Stage) -> None:
    """In as many rounds as it takes."""
    job, _ = stage.job(once=True, idle_s=0.01)
    assert run(job) is Ending.READ
    assert rows(stage) == {key: end for key, end in ENDS.items() if end}
    _, other = stage.job()
    assert not [one for one in other.standings() if one.held]


def test_partitions_that_are_not_due_for_an_hour_are_read(stage: Stage) -> None:
    """A job of the hour before expected few records of them."""
    first, claims = stage.job(once=True, idle_s=0.01, picking=SELDOM)
    assert run(first) is Ending.READ
    del claims
    stage.world.ends_at[TopicPartition("b", 0)] = 9
    second, _ = stage.job(once=True, idle_s=0.01, picking=SELDOM)
    assert run(second) is Ending.READ
    assert rows(stage)[TopicPartition("b", 0)] == 9


def test_records_that_keep_coming_keep_no_job_from_its_end(stage: Stage, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each round has rows: the positions are looked at nevertheless."""
    monkeypatch.setattr(job_loop, "_SETTLE_S", 0.2)

    def more() -> None:
        stage.world.ends_at[TopicPartition("a", 0)] += 60

    stage.world.before_commit = more
    job, _ = stage.job(once=True, idle_s=0.01)
    assert run(job) is Ending.READ
    assert rows(stage)[TopicPartition("a", 1)] == 250


def test_records_that_another_job_holds_are_waited_for(stage: Stage) -> None:
    """It may die before it has written them."""
    job, claims = stage.job(once=True, idle_s=0.01)
    claims.register({(key.topic, key.partition) for key in ENDS})
    _, other = stage.job()
    held = other.claim(10)
    threading.Timer(0.5, lambda: other.disown(held)).start()
    began = time.monotonic()
    assert run(job) is Ending.READ
    assert time.monotonic() - began > 0.4
    assert sum(rows(stage).values()) == 307


def test_the_end_of_the_time_ends_it_between_two_rounds(stage: Stage) -> None:
    """And says that records are left."""
    stop = threading.Event()
    stage.world.before_commit = stop.set
    job, other = stage.job(once=True, idle_s=0.01)
    assert run(job, stop) is Ending.OVER
    assert 0 < sum(rows(stage).values()) < 307
    _, other = stage.job()
    assert not [one for one in other.standings() if one.held]


def test_a_topic_whose_table_refuses_ends_it_at_last(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The records of the others are read."""
    monkeypatch.setattr(caught_up, "_GIVE_UP_S", 0.3)
    world = Apart({TopicPartition("a", 0): 50, TopicPartition("bad", 0): 7}, step="commit")
    job, _ = Stage(world, f"sqlite:///{tmp_path}/claims.db").job(once=True, idle_s=0.01, picking=Picking(longest_s=0.1))
    assert run(job) is Ending.REFUSED
    assert {key.topic for key in world.table} == {"a"}


def test_a_table_that_refuses_all_ends_it_at_last(stage: Stage, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each round fails as a whole."""
    monkeypatch.setattr(caught_up, "_GIVE_UP_S", 0.3)
    stage.world.error = TableError("read-only")
    job, _ = stage.job(once=True, idle_s=0.01)
    assert run(job) is Ending.REFUSED


def test_without_once_a_job_runs_until_it_is_stopped(stage: Stage) -> None:
    """Also when all is read."""
    stop = threading.Event()
    threading.Timer(1.0, stop.set).start()
    job, _ = stage.job(idle_s=0.01)
    assert run(job, stop) is None
    assert sum(rows(stage).values()) == 307
