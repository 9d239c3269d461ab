"""Topics that are recreated, deleted, paused, unknown or bad, in the job loop."""

from collections.abc import Collection
from pathlib import Path

import pytest

from assignors.claims import Picking
from assignors.fleet import FleetTopic
from spark_sink.errors import TableError
from spark_sink.ranges.batch_offset import TopicPartition
from tests.unit.spark_sink.claimed.job_stage import Apart, Stage, World
from tests.waiting import wait_until


def test_a_topic_made_anew_goes_under_its_own_label(stage: Stage) -> None:
    """The rows bear the label that the table has for it."""
    stage.world.labels = {"b": "b@2"}
    job, _ = stage.job(partitions=4)
    job.round()
    assert TopicPartition("b@2", 0) in stage.world.table
    assert TopicPartition("b", 0) not in stage.world.table
    job.close()


def test_a_topic_made_anew_while_it_is_read_is_left_out_and_read_under_its_own_label_next(stage: Stage) -> None:
    """The job knows topics of half a minute ago and reads by name: the new log may have passed the old position."""
    stage.world.table[TopicPartition("b", 0)] = list(range(5))
    job, _ = stage.job(partitions=4, records=1_000, discover_s=86_400)
    job._discover()
    stage.world.recreated = {"b": "id-2"}
    stage.world.ends_at[TopicPartition("b", 0)] = 9
    job.round()
    assert stage.world.table[TopicPartition("b", 0)] == list(range(5))
    assert len(stage.world.table[TopicPartition("a", 0)]) == 50
    stage.world.labels = {"b": "b@id-2"}
    job.round()
    assert stage.world.table[TopicPartition("b@id-2", 0)] == list(range(9))
    assert stage.world.table[TopicPartition("b", 0)] == list(range(5))
    job.close()


def test_a_deleted_topic_is_forgotten_at_the_second_look(stage: Stage) -> None:
    """One look without it may be a broker's hiccup."""
    job, claims = stage.job()
    job.round()
    for key in [key for key in stage.world.ends_at if key.topic == "b"]:
        del stage.world.ends_at[key]
    job.round()
    assert ("b", 0) in claims.known()
    job.round()
    assert claims.known() == {("a", 0), ("a", 1)}
    job.close()


def test_claims_of_topics_that_cannot_be_described_are_not_removed(stage: Stage) -> None:
    """The controller is away at a job's start: two such answers removed every row with its holder."""
    job, claims = stage.job()
    job._discover()
    known = claims.known()
    late, _ = stage.job()
    stage.world.ends_at, stage.world.whole = {}, False
    for _ in range(3):
        late._discover()
    assert claims.known() == known
    stage.world.whole = True
    for _ in range(2):
        late._discover()
    assert not claims.known()


@pytest.mark.parametrize("bad", [["bad"], ["bad0", "bad1"]], ids=["one", "two"])
@pytest.mark.parametrize("step", ["label", "positions", "fetch", "land", "commit"])
def test_a_topic_that_fails_starves_no_other(tmp_path: Path, step: str, bad: list[str]) -> None:
    """All claims of its round failed with it and were due together again: the good ones among them were never read."""
    good = [f"good{number}" for number in range(6)]
    world = Apart({TopicPartition(name, 0): 5 for name in (*bad, *good)}, step=step)
    job, claims = Stage(world, f"sqlite:///{tmp_path}/c.db").job(discover_s=1000.0)
    refused: set[str] = set()
    for _ in range(5):
        refused |= set(job._try().refused)
    assert {key.topic for key in world.table if key.topic.startswith("good")} == set(good)
    assert refused == set(bad)
    states = {one.topic: one for one in claims.standings()}
    assert all(states[name].due_s > 0 and not states[name].held for name in bad)
    assert all(states[name].committed_offset == 5 for name in good)
    world.step = ""
    assert not job._try().refused
    job.close()


def test_a_cluster_that_is_away_is_not_asked_topic_by_topic(tmp_path: Path) -> None:
    """Each attempt takes as long as its time-out: after a few in a row the round ends."""
    world = Apart({TopicPartition(f"bad{number}", 0): 5 for number in range(8)}, step="fetch")
    job, _ = Stage(world, f"sqlite:///{tmp_path}/c.db").job(partitions=8)
    with pytest.raises(TableError):
        job.round()
    job.close()


def test_a_paused_topic_is_read_from_its_position_once_it_is_resumed(stage: Stage) -> None:
    """Others are read meanwhile, and no record of it is lost or doubled."""
    job, _ = stage.job(partitions=9)
    job.round()
    before = {key: len(rows) for key, rows in stage.world.table.items() if key.topic == "a"}
    stage.world.paused = {"a"}
    stage.world.ends_at[TopicPartition("b", 0)] = 20
    again, _ = stage.job(partitions=9, picking=Picking(longest_s=0.2))  # a pause outlives a restart
    for _ in range(3):
        again.round()
    assert {key: len(rows) for key, rows in stage.world.table.items() if key.topic == "a"} == before
    assert stage.world.table[TopicPartition("b", 0)] == list(range(20))
    stage.world.paused = set()
    wait_until(lambda: again.round().claimed and len(stage.world.table[TopicPartition("a", 1)]) == 250, 20)
    assert stage.world.table[TopicPartition("a", 0)] == list(range(50))
    assert stage.world.table[TopicPartition("a", 1)] == list(range(250))


def test_nothing_is_claimed_while_pauses_are_unknown(stage: Stage) -> None:
    """A restarted job must not read a paused topic."""
    stage.world.paused = None
    job, _ = stage.job()
    assert job.round().claimed == 0


def test_the_table_of_a_paused_topic_is_not_touched(stage: Stage, monkeypatch: pytest.MonkeyPatch) -> None:
    """It may be paused because its table is being moved or restored: a job must not make a new one in its place."""
    asked: list[str] = []
    label = World.label

    def noted(world: World, topics: Collection[FleetTopic]) -> dict[FleetTopic, str]:
        asked.extend(topic.name for topic in topics)
        return label(world, topics)

    monkeypatch.setattr(World, "label", noted)
    stage.world.paused = {"a"}
    job, _ = stage.job(partitions=9)
    job.round()
    assert asked == ["b"]
