"""`azimuth sink`: agents on Spark, their parts and brokers die, sleep and come back; values are raw or decoded."""

import json
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import ClassVar, Self

import pytest

from spark_sink.demo.cluster import Cluster
from spark_sink.ranges.batch_offset import TopicPartition
from tests.integration.spark_sink.chaos.agents import Agent
from tests.integration.spark_sink.chaos.draws import SEEDS, Factors
from tests.integration.spark_sink.chaos.lakes import foreign_command
from tests.integration.spark_sink.chaos.stream import Values
from tests.integration.spark_sink.chaos.torment import BROKER_FAULTS, SESSION_S, Torment

pytestmark = pytest.mark.chaos

MakeTopic = Callable[..., str]
SCHEMA = {"number": "long", "name": "string", "amount": "double", "place": {"zone": "string"}}


class Sink(Torment):
    """Two agents of one group."""

    form = "raw"
    faults = (
        "kill agent",
        "stop agent",
        "kill reader",
        "kill jvm",
        "term driver",
        "kill worker",
        "kill driver",
        "stop jvm",
        "stop reader",
        "stop worker",
        *BROKER_FAULTS,
    )
    # Two programs that run delta-rs' OPTIMIZE or compact at once are outside the promise: one of them is off.
    factors: ClassVar[Factors] = {
        "landing": ("mixed", "direct", "rows"),
        "table": ("one", "topic", "routes"),
        "compaction": ("ours", "foreign"),
        "headers": ("false", "true"),
    }

    def make_agents(self) -> list[Agent]:
        """Agents of one group, and the other program's process where the variant has one."""
        self.group = f"chaos-{self.topics[0]}"
        path = self.lake.table("{topic}" if self.variant["table"] == "topic" else "all")
        self.tables = [path]
        shared = ["--bootstrap-servers", self.cluster.bootstrap_servers, "--group", self.group, "--table", path]
        shared += ["--subscribe", ",".join(self.topics), "--trigger", "300 milliseconds", "--master", "local[2]"]
        shared += ["--kafka", f"session.timeout.ms={int(SESSION_S * 1000)}", "--kafka", "heartbeat.interval.ms=1000"]
        shared += ["--max-offsets-per-trigger", "5000", *self.format(), *self.lake.flags]
        # Half of the seeds read from the leaders themselves; no factor, so that a seed keeps the variant that it had.
        shared += ["--source", f"fetchRecordBatches={'false' if self.seed % 2 else 'true'}"]
        if self.variant["table"] == "routes":
            self.tables.append(self.lake.table("routed"))
            shared += ["--sink", f"routes={json.dumps({self.topics[0]: self.tables[-1]})}"]
        ours = self.variant["compaction"] == "ours"
        shared += ["--sink", f"compactEvery={5 if ours else 0}"]
        landing = self.landing()
        ways = ("direct", "rows") if landing == "mixed" else (landing, landing)
        command = [sys.executable, "-m", "spark_sink", "sink", *shared]
        self.foreign: list[Agent] = []
        if not ours:
            self.foreign = [Agent("foreign", foreign_command(self.lake), self.root / "foreign.log")]
        return [
            Agent(
                name,
                [*command, "--agent", name, "--landing", way, "--checkpoint", str(self.root / f"checkpoint-{name}")],
                self.root / f"{name}.log",
            )
            for name, way in zip(("one", "two"), ways, strict=True)
        ]

    def landing(self) -> str:
        """Which processes write the data files."""
        return self.variant["landing"]

    def format(self) -> Sequence[str]:
        """Options that say what is in a value."""
        return ["--source", f"includeHeaders={self.variant['headers']}"]

    def positions(self) -> Mapping[TopicPartition, int]:
        """Of all tables."""
        return self.lake.positions(self.tables, self.group)

    def __enter__(self) -> Self:
        for one in self.foreign:
            one.start()
        return self

    def __exit__(self, *error: object) -> None:
        super().__exit__(*error)
        for one in self.foreign:
            one.end()


class Decoded(Sink):
    """JSON of which a part cannot be decoded, and a field that comes in mid-run."""

    form = "decoded"
    factors: ClassVar[Factors] = {
        "unknown": ("rescue", "quarantine", "evolve", "ignore"),
        "landing": ("mixed", "direct", "rows"),
        "table": ("topic", "one", "routes"),
        "compaction": ("ours", "foreign"),
    }

    def landing(self) -> str:
        """Rows of one query have the same columns, so only the tasks can give each table its own."""
        own_columns = self.variant["unknown"] == "evolve" and self.variant["table"] != "one"
        return "direct" if own_columns else super().landing()

    def format(self) -> Sequence[str]:
        """JSON; only inferred columns can evolve."""
        unknown = self.variant["unknown"]
        given = {"valueFormat": "json", "unknownFields": unknown}
        given |= {} if unknown == "evolve" else {"valueSchema": json.dumps(SCHEMA)}
        options = [part for name, value in given.items() for part in ("--source", f"{name}={value}")]
        return [*options, "--sink", "mergeSchema=true"]

    def values(self) -> Values:
        """A sample with values of wrong types would widen inferred columns."""
        unknown = self.variant["unknown"]
        return Values(decoded=True, misfits=unknown != "evolve", unknown_is_bad=unknown == "quarantine")


@pytest.fixture
def sink(cluster: Cluster, tmp_path: Path, topic: MakeTopic, request: pytest.FixtureRequest) -> Iterator[Sink]:
    """Three topics, and agents that are gone when the test ends, with all that is below them."""
    form, seed = request.param
    topics = [topic(f"t{number}", partitions=3, replication=3) for number in range(3)]
    with form(cluster, tmp_path, topics, 3, seed) as made:
        yield made


RAW = [pytest.param((Sink, seed), id=f"{seed}") for seed in SEEDS]
DECODED = [pytest.param((Decoded, seed), id=f"{seed}") for seed in SEEDS]


@pytest.mark.parametrize("sink", RAW, indirect=True)
def test_every_raw_record_once_whatever_is_killed(sink: Sink) -> None:
    """The tables, one for all topics or several, prove that no record is lost or doubled."""
    found = sink.run()
    assert found.ok, f"seed {sink.seed}: {found}"


@pytest.mark.parametrize("sink", DECODED, indirect=True)
def test_every_decoded_record_once_whatever_is_killed(sink: Sink) -> None:
    """A record is decoded twice after a crash, by agents that may know other columns: it still has one place."""
    found = sink.run()
    assert found.ok, f"seed {sink.seed}: {found}"
