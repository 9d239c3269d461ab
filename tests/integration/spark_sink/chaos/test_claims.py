"""`azimuth claims run`: jobs, brokers and leases end while records are on their way."""

import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import ClassVar

import pytest

from spark_sink.demo.cluster import Cluster
from spark_sink.ranges.batch_offset import TopicPartition
from tests.integration.spark_sink.chaos.agents import Agent
from tests.integration.spark_sink.chaos.draws import SEEDS
from tests.integration.spark_sink.chaos.torment import BROKER_FAULTS, Torment

pytestmark = pytest.mark.chaos

MakeTopic = Callable[..., str]


class Claims(Torment):
    """Three jobs that claim in SQLite."""

    form = "claims"
    faults = ("kill agent", "lose agent", "stop agent", "term agent", *BROKER_FAULTS)
    factors: ClassVar[dict[str, tuple[str, ...]]] = {
        "form": ("locking", "optimistic"),
        "table": ("one", "topic"),
        "headers": ("no", "yes"),
        "partitions": ("2", "8"),
    }

    def make_agents(self) -> list[Agent]:
        """Jobs of one set."""
        self.group = self.topics[0].rpartition(".")[0]
        self.table = self.lake.table("{topic}" if self.variant["table"] == "topic" else "all")
        self.database = self.root / "claims.db"
        command = [sys.executable, "-m", "spark_sink", "claims", "run", "--group", self.group, "--table", self.table]
        command += ["--database", f"sqlite:///{self.database}", "--bootstrap-servers", self.cluster.bootstrap_servers]
        command += ["--subscribe", ",".join(self.topics), "--lease-s", "3", "--longest-s", "0.5", "--records", "2000"]
        command += ["--partitions", self.variant["partitions"], *self.lake.flags]
        command += ["--optimistic"] * (self.variant["form"] == "optimistic")
        command += ["--include-headers"] * (self.variant["headers"] == "yes")
        names = ("one", "two", "three")
        return [Agent(name, [*command, "--owner", name], self.root / f"{name}.log") for name in names]

    def positions(self) -> Mapping[TopicPartition, int]:
        """Of all tables."""
        return self.lake.positions([self.table], self.group)

    def databases(self) -> Sequence[Path]:
        """That of the claims, too."""
        return [*super().databases(), self.database]


@pytest.fixture
def claims(cluster: Cluster, tmp_path: Path, topic: MakeTopic, request: pytest.FixtureRequest) -> Iterator[Claims]:
    """Four topics, and jobs that are gone when the test ends."""
    topics = [topic(f"t{number}", partitions=2, replication=3) for number in range(4)]
    with Claims(cluster, tmp_path, topics, 2, request.param) as made:
        yield made


@pytest.mark.parametrize("claims", SEEDS, indirect=True)
def test_every_record_once_whatever_happens_to_jobs(claims: Claims) -> None:
    """A job that lost its claims may still write; the tables take each record once."""
    found = claims.run()
    assert found.ok, f"seed {claims.seed}: {found}"
