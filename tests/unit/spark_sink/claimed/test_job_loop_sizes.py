"""How much a round of the job loop reads."""

from collections.abc import Generator, Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import pyarrow as pa
import pytest

from assignors.claims import Claim
from assignors.scaling import WorkersRecord
from spark_sink.fetch.raw_columns import arrow_schema
from spark_sink.ranges.batch_offset import Range, TopicPartition
from tests.unit.spark_sink.claimed.job_stage import Stage, World


def test_a_round_reads_no_more_than_asked(stage: Stage) -> None:
    """The limit is shared max-min fair: the large partition gets the rest that small ones leave."""
    job, _ = stage.job(partitions=4)
    done = job.round()
    assert (done.claimed, done.rows, done.lost) == (4, 100, 0)
    assert len(stage.world.table[TopicPartition("b", 0)]) == 7
    job.close()


@dataclass
class Large(World):
    """Records of half a megabyte, one a batch, with a count of the records that each round asked for and got."""

    asked: list[int] = field(default_factory=list)
    got: list[int] = field(default_factory=list)

    def fetch(self, ranges: Sequence[Range]) -> Generator[pa.RecordBatch, None, None]:
        """As librdkafka: one partition after another."""
        self.asked.append(sum(one.records for one in ranges))
        self.got.append(0)
        for one in ranges:
            for at in range(one.begin, one.end):
                self.got[-1] += 1
                row = {"topic": one.topic, "partition": one.partition, "offset": at, "value": bytes(500_000)}
                yield pa.RecordBatch.from_pylist([row], schema=arrow_schema(headers=False))


def test_a_round_ends_at_its_bytes_whatever_the_size_of_the_records(tmp_path: Path) -> None:
    """A round was bounded by rows alone: 200,000 records of a megabyte would have been in memory at once."""
    world = Large({TopicPartition(topic, n): 30 for topic in ("a", "b") for n in range(2)})
    job, claims = Stage(world, f"sqlite:///{tmp_path}/c.db").job(partitions=4, records=10_000, memory_bytes=16 << 20)
    rounds = [job.round()]
    assert world.got == [9]  # 4 MiB are a quarter of the memory, and the record that passes them is the last
    while any(len(world.table.get(key, ())) < 30 for key in world.ends_at):
        rounds.append(job.round())
    assert max(world.got) <= 9
    assert world.table == {key: list(range(30)) for key in world.ends_at}, "each record once, and no hole"
    assert sum(one.rows for one in rounds) == 120
    assert {one.committed_offset for one in claims.standings()} == {30}
    # The sizes are known after the first look at a topic: reading ends with the ranges, and the client stays connected.
    assert world.asked[-3:] == world.got[-3:]
    job.close()


def test_a_record_larger_than_the_limit_is_read_alone(tmp_path: Path) -> None:
    """Otherwise its partition would stop for ever."""
    world = Large({TopicPartition("a", 0): 2})
    job, _ = Stage(world, f"sqlite:///{tmp_path}/c.db").job(memory_bytes=16 << 20)
    job._bytes._most = 1_000
    assert [job.round().rows, job.round().rows] == [1, 1]
    job.close()


def test_a_job_takes_its_share_of_a_topic_and_no_more_records_than_published(
    stage: Stage, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With two workers for a topic of two partitions a job holds one; the other stays due for another job."""
    numbers = {"a": WorkersRecord(workers=2, at_ms=1, max_poll_records=20)}
    hinted: dict[TopicPartition, int] = {}
    job, claims = stage.job(partitions=4, workers_topic="w", numbers=lambda: numbers, hint=hinted.update)
    taken: list[set[tuple[str, int]]] = []
    renew = claims.renew

    def noted(mine: Iterable[Claim]) -> list[Claim]:
        found = renew(mine)
        taken.append({(one.topic, one.partition) for one in found})
        return found

    monkeypatch.setattr(claims, "renew", noted)  # the call that each round makes once
    done = job.round()
    assert len([one for one in taken[-1] if one[0] == "a"]) == 1
    assert {("b", 0), ("b", 1)} <= taken[-1], "a topic without a number has no limit"
    assert done.rows == 20 + 7
    job.round()
    assert {("a", 0), ("a", 1)} <= taken[0] | taken[1], "what was left is due at once"
    assert hinted == {key: mine[-1] + 1 for key, mine in stage.world.table.items()}
    numbers.clear()
    for _ in range(6):
        job.round()
    assert stage.world.table == {key: list(range(end)) for key, end in stage.world.ends_at.items() if end}
    job.close()
