"""The job loop on a claims database in a file, a table in memory and logs that are lists."""

from collections.abc import Callable, Collection, Generator, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from assignors.claims import Claim, Lease, PartitionClaims, Picking
from assignors.errors import FleetError
from assignors.fleet import FleetTopic, Sighting
from assignors.scaling import WorkersRecord
from spark_sink.claimed.job_loop import ClaimedIngest
from spark_sink.claimed.job_parts import JobParts
from spark_sink.claimed.job_settings import ClaimedSettings
from spark_sink.claimed.labelled_batches import Batches
from spark_sink.errors import FetchError, TableError
from spark_sink.fetch.raw_columns import arrow_schema
from spark_sink.fleet.decode_and_commit import Committed, LandedFiles
from spark_sink.fleet.table_writer import Landable
from spark_sink.lake.table_contract import DataFile, Span
from spark_sink.ranges.batch_offset import Range, TopicPartition
from tests.waiting import wait_until


def records(one: Range) -> pa.RecordBatch:
    """The records of a range."""
    return pa.RecordBatch.from_pylist(
        [{"topic": one.topic, "partition": one.partition, "offset": at} for at in range(one.begin, one.end)],
        schema=arrow_schema(headers=False),
    )


@dataclass
class World:
    """A cluster and a table, with a record of the calls."""

    ends_at: dict[TopicPartition, int]
    begins_at: dict[TopicPartition, int] = field(default_factory=dict)
    silent: set[TopicPartition] = field(default_factory=set)
    questions: list[TopicPartition] = field(default_factory=list)
    labels: dict[str, str] = field(default_factory=dict)
    recreated: dict[str, str] = field(default_factory=dict)
    landed: list[dict[str, Any]] = field(default_factory=list)
    table: dict[TopicPartition, list[int]] = field(default_factory=dict)
    error: Exception | None = None
    whole: bool = True
    before_commit: Any = None
    paused: set[str] | None = field(default_factory=set)

    def topics(self) -> Sighting:
        """As the cluster says."""
        counts: dict[str, int] = {}
        for key in self.ends_at:
            counts[key.topic] = max(counts.get(key.topic, 0), key.partition + 1)
        found = (
            FleetTopic("c", self.recreated.get(name, f"id-{name}"), name, "s", count)
            for name, count in sorted(counts.items())
        )
        return Sighting(cluster="c", topics=tuple(found), whole=self.whole)

    shared = True

    def apart(self, names: Iterable[str]) -> list[set[str]]:
        """As `TableWriter` with one table."""
        found = set(names)
        return [found] if found else []

    def land(self, rows: Landable, labels: Collection[str]) -> LandedFiles:
        """As `TableWriter`, without files."""
        self.landed = rows.rows(set(labels)).to_pylist()
        offsets: dict[TopicPartition, list[int]] = {}
        for row in self.landed:
            offsets.setdefault(TopicPartition(row["topic"], row["partition"]), []).append(row["offset"])
        spans = {key: Span(min(at), max(at), len(at)) for key, at in offsets.items()}
        return LandedFiles(good=[DataFile(path="f", size_bytes=0, spans=spans)])

    def ids(self, names: Collection[str]) -> Callable[[], dict[str, str]]:
        """As `ask_ids`."""
        return lambda: {name: self.recreated.get(name, f"id-{name}") for name in names}

    def label(self, topics: Collection[FleetTopic]) -> dict[FleetTopic, str]:
        """As `TableWriter`."""
        return {topic: self.labels.get(topic.name, topic.name) for topic in topics}

    def positions(self, labels: Collection[str]) -> dict[TopicPartition, int]:
        """As `TableWriter`."""
        wanted = set(labels)
        return {key: rows[-1] + 1 for key, rows in self.table.items() if key.topic in wanted and rows}

    def commit(self, _files: LandedFiles, ranges: Sequence[Range]) -> Committed:
        """As `TableWriter`: each record once."""
        if self.before_commit is not None:
            self.before_commit()
        if self.error is not None:
            raise self.error
        ahead, added = {}, 0
        for row in self.landed:
            key = TopicPartition(row["topic"], row["partition"])
            assert any(one.key == key and one.begin <= row["offset"] < one.end for one in ranges)
            mine = self.table.setdefault(key, [])
            if not mine or row["offset"] > mine[-1]:
                mine.append(row["offset"])
                added += 1
        for one in ranges:
            at = self.table[one.key][-1] + 1
            if at != one.end:
                ahead[one.key] = at
        return Committed(rows=added, ahead=ahead)

    def ends(self, keys: Iterable[TopicPartition]) -> dict[TopicPartition, int]:
        """As `PartitionOffsets`; each question to a silent leader takes some seconds."""
        asked = list(keys)
        self.questions += asked
        return {key: self.ends_at[key] for key in asked if key in self.ends_at and key not in self.silent}

    def beginnings(self, keys: Iterable[TopicPartition]) -> dict[TopicPartition, int]:
        """As `PartitionOffsets`; as `ends`."""
        asked = list(keys)
        self.questions += asked
        return {key: self.begins_at.get(key, 0) for key in asked if key not in self.silent}

    def at_times(self, times_ms: Mapping[TopicPartition, int]) -> dict[TopicPartition, int | None]:
        """As `PartitionOffsets`: no record has a timestamp."""
        return dict.fromkeys(times_ms)

    def fetch(self, ranges: Sequence[Range]) -> Generator[pa.RecordBatch, None, None]:
        """As `spark_sink.fetch.range_reader.fetch`."""
        for one in ranges:
            yield records(one)


@dataclass
class Stage:
    """A world and jobs in it."""

    world: World
    address: str

    def job(self, **settings: Any) -> tuple[ClaimedIngest, PartitionClaims]:  # noqa: ANN401 -- those of the settings
        """Make a job."""
        given: dict[str, Any] = {"partitions": 3, "records": 100, "discover_s": 1e-9, **settings}
        lease, picking = given.pop("lease", Lease()), given.pop("picking", Picking())
        numbers, hint = given.pop("numbers", dict), given.pop("hint", lambda _: None)
        told = ClaimedSettings(name="n", table="t", database=self.address, kafka={}, **given)
        claims = PartitionClaims(self.address, cluster="c", lease=lease, picking=picking)
        world = self.world
        parts = JobParts(
            claims=claims,
            writer=world,
            logs=world,
            topics=world.topics,
            fetch=world.fetch,
            ids=world.ids,
            paused=lambda: world.paused,
            numbers=numbers,
            hint=hint,
        )
        return ClaimedIngest(told, parts), claims


@pytest.fixture
def stage(tmp_path: Path) -> Stage:
    """Two topics of two partitions, one of them empty."""
    ends = {TopicPartition("a", 0): 50, TopicPartition("a", 1): 250, TopicPartition("b", 0): 7}
    return Stage(World({**ends, TopicPartition("b", 1): 0}), f"sqlite:///{tmp_path}/claims.db")


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


def test_a_round_reads_no_more_than_asked(stage: Stage) -> None:
    """The limit is shared max-min fair: the large partition gets the rest that small ones leave."""
    job, _ = stage.job(partitions=4)
    done = job.round()
    assert (done.claimed, done.rows, done.lost) == (4, 100, 0)
    assert len(stage.world.table[TopicPartition("b", 0)]) == 7
    job.close()


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


@dataclass
class Apart(World):
    """Each topic has a table; topics that begin with `bad` fail at one step."""

    step: str = ""
    shared = False

    def apart(self, names: Iterable[str]) -> list[set[str]]:
        """As `TableWriter` with a table for each topic."""
        return [{name} for name in sorted(set(names))]

    def fail(self, step: str, names: Iterable[str]) -> None:
        """Raise at the step that a test chose."""
        if step == self.step and any(name.startswith("bad") for name in names):
            raise TableError("bad: refused")

    def label(self, topics: Collection[FleetTopic]) -> dict[FleetTopic, str]:
        """As `TableWriter`."""
        self.fail("label", [topic.name for topic in topics])
        return super().label(topics)

    def positions(self, labels: Collection[str]) -> dict[TopicPartition, int]:
        """As `TableWriter`."""
        self.fail("positions", labels)
        return super().positions(labels)

    def fetch(self, ranges: Sequence[Range]) -> Generator[pa.RecordBatch, None, None]:
        """As the real one: some batches may come before the error."""
        for one in ranges:
            yield records(one)
            self.fail("fetch", [one.topic])

    def land(self, rows: Landable, labels: Collection[str]) -> LandedFiles:
        """As `TableWriter`."""
        self.fail("land", labels)
        self.files = getattr(self, "files", {})
        found = super().land(rows, labels)
        self.files[frozenset(labels)] = self.landed
        return found

    def commit(self, files: LandedFiles, ranges: Sequence[Range]) -> Committed:
        """As `TableWriter`."""
        names = {one.topic for one in ranges}
        self.fail("commit", names)
        self.landed = self.files[frozenset(names)]
        return super().commit(files, ranges)


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
