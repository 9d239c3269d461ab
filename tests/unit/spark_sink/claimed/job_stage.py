"""Jobs on a claims database in a file, with a table in memory and logs that are lists."""

from collections.abc import Callable, Collection, Generator, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import pyarrow as pa

from assignors.claims import Lease, PartitionClaims, Picking
from assignors.fleet import FleetTopic, Sighting
from spark_sink.claimed.job_loop import ClaimedIngest
from spark_sink.claimed.job_parts import JobParts
from spark_sink.claimed.job_settings import ClaimedSettings
from spark_sink.errors import TableError
from spark_sink.fetch.raw_columns import arrow_schema
from spark_sink.fleet.decode_and_commit import Committed, LandedFiles
from spark_sink.fleet.table_writer import Landable
from spark_sink.lake.table_contract import DataFile, Span
from spark_sink.ranges.batch_offset import Range, TopicPartition

ENDS = {TopicPartition("a", 0): 50, TopicPartition("a", 1): 250, TopicPartition("b", 0): 7, TopicPartition("b", 1): 0}
"""Two topics of two partitions, one of them empty."""


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

    def job(self, **settings: Any) -> tuple[ClaimedIngest, PartitionClaims]:
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
