"""The job loop: each record once, whatever is lost or fails meanwhile."""

from collections.abc import Iterable

import pytest

from assignors.claims import Claim, PartitionClaims
from assignors.errors import FleetError
from assignors.fleet import Sighting
from spark_sink.claimed.job_parts import JobParts
from spark_sink.claimed.labelled_batches import Batches
from spark_sink.errors import FetchError
from spark_sink.ranges.batch_offset import Range, TopicPartition
from tests.unit.spark_sink.claimed.job_stage import Stage, records


def test_rounds_bring_everything_in_once(stage: Stage) -> None:
    """Two jobs in turn, until nothing is left: every offset is there once, and the claims say how far they are."""
    one, claims = stage.job()
    two, _ = stage.job()
    for _ in range(8):
        one.round()
        two.round()
    assert stage.world.table == {key: list(range(end)) for key, end in stage.world.ends_at.items() if end}
    found = {TopicPartition(s.topic, s.partition): s for s in claims.standings()}
    assert {key: found[key].committed_offset for key in stage.world.table} == {
        key: end for key, end in stage.world.ends_at.items() if end
    }
    assert not any(standing.held for standing in found.values())
    one.close()
    two.close()


def test_the_table_is_the_truth_and_not_the_claims_offset(stage: Stage) -> None:
    """If another writer wrote records, the job continues at the table's position, and commits it to the claims."""
    stage.world.table[TopicPartition("b", 0)] = list(range(5))
    job, _ = stage.job(partitions=4)
    job.round()
    assert stage.world.table[TopicPartition("b", 0)] == list(range(7))
    job.close()


def test_what_is_lost_before_the_commit_is_not_brought_in(stage: Stage, monkeypatch: pytest.MonkeyPatch) -> None:
    """The leases ended while it read (the process was stopped): the next holder writes the rows."""
    job, claims = stage.job(partitions=4)
    real = claims.renew

    def two_are_lost(held: Iterable[Claim]) -> list[Claim]:
        kept = real(held)
        claims.disown(kept[:2])
        return kept[2:]

    monkeypatch.setattr(claims, "renew", two_are_lost)  # what a pause does
    done = job.round()
    assert done.lost == 2
    assert {key.topic for key in stage.world.table} == {"b"}
    job.close()


def test_claims_lost_during_the_commit_are_counted_and_no_error(stage: Stage, monkeypatch: pytest.MonkeyPatch) -> None:
    """The table took the rows, the claims refuse: the next holder finds the table ahead."""
    job, claims = stage.job(partitions=4)
    thief = PartitionClaims(stage.address, cluster="c")

    def steal() -> None:
        claims.disown(held)
        assert len(thief.claim(4)) == 4

    held: list[Claim] = []
    real = claims.claim

    def remember(most: int) -> list[Claim]:
        held.extend(real(most))
        return list(held)

    monkeypatch.setattr(claims, "claim", remember)  # to know what to steal
    stage.world.before_commit = steal
    done = job.round()
    assert done.lost == 3  # one had nothing to commit
    assert done.rows == 100
    assert all(one.held for one in claims.standings())
    thief.close()
    job.close()


def test_after_an_error_nothing_stays_claimed(stage: Stage) -> None:
    """The table refuses: the partitions are free at once, and due, for this job or another."""
    job, claims = stage.job(partitions=4)
    stage.world.error = FetchError("nothing came")
    with pytest.raises(FetchError):
        job.round()
    assert not any(one.held for one in claims.standings())
    assert all(one.due_s <= 0 for one in claims.standings())
    stage.world.error = None
    assert job.round().rows == 100
    job.close()


def test_a_cluster_that_does_not_answer_is_tried_again(stage: Stage) -> None:
    """`run` continues after temporary errors."""
    job, _ = stage.job()

    def silent() -> Sighting:
        raise FleetError("no broker answers")

    parts = job._parts
    job._parts = JobParts(
        claims=parts.claims, writer=parts.writer, logs=parts.logs, topics=silent, fetch=parts.fetch, ids=parts.ids
    )
    assert job._try().claimed == 0
    assert job._problem == "no broker answers"
    job._parts = JobParts(
        claims=parts.claims,
        writer=parts.writer,
        logs=parts.logs,
        topics=stage.world.topics,
        fetch=parts.fetch,
        ids=parts.ids,
    )
    assert job._try().claimed == 3
    assert not job._problem
    job.close()


def test_batches_leave_out_partitions_and_keep_the_rest() -> None:
    """By topic and partition both."""
    batches = Batches({"a": "a"})
    for partition in range(3):
        batches.add(records(Range("a", partition, 0, 4)))
    kept = batches.without({TopicPartition("a", 1)}).rows({"a"})
    assert kept.num_rows == 8
    assert set(kept.column("partition").to_pylist()) == {0, 2}
    assert Batches({}).rows(set()).num_rows == 0


def test_a_partition_whose_leader_is_silent_is_left_out_at_once(stage: Stage) -> None:
    """Each question keeps all partitions waiting for some seconds: one in a round, and none in the next round."""
    job, _ = stage.job(partitions=9)
    silent = TopicPartition("a", 0)
    stage.world.silent = {silent}
    assert job.round().claimed == 4
    assert job.round().claimed
    assert stage.world.questions.count(silent) == 1
    assert stage.world.table.keys() == {TopicPartition("a", 1), TopicPartition("b", 0)}
    job.close()
