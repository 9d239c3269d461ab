"""`azimuth agent`: agents of a fleet, brokers and the membership's server die, sleep and come back."""

import json
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import ClassVar

import pytest

from spark_sink.demo.cluster import Cluster
from spark_sink.ranges.batch_offset import TopicPartition
from tests.integration.spark_sink.chaos.agents import Agent
from tests.integration.spark_sink.chaos.draws import ALSO_SLOW, SEEDS
from tests.integration.spark_sink.chaos.torment import BROKER_FAULTS, SESSION_S, Torment
from tests.redis_server import RedisServer

pytestmark = pytest.mark.chaos

MakeTopic = Callable[..., str]


class Fleet(Torment):
    """Three light agents."""

    form = "fleet"
    faults = (
        "kill agent",
        "lose agent",
        "stop agent",
        "term agent",
        "kill membership",
        "flush membership",
        "break overrides",
        "change overrides",
        *BROKER_FAULTS,
    )
    factors: ClassVar[dict[str, tuple[str, ...]]] = {
        "membership": ("kafka", "redis"),
        "table": ("one", "topic"),
        "workers": ("1", "2"),
        "headers": ("false", "true"),
    }
    redis: RedisServer | None = None

    def make_agents(self) -> list[Agent]:
        """Agents of one file."""
        self.group = self.topics[0].rpartition(".")[0]
        self.table = self.lake.table("{topic}" if self.variant["table"] == "topic" else "all")
        config = self.root / "fleet.toml"
        self.overrides = self.root / "overrides.json"
        self.overrides.write_text("{}")
        membership = '[membership]\nkind = "kafka"'
        if self.variant["membership"] == "redis":
            self.redis = RedisServer(self.root)
            membership = f'[membership]\nkind = "redis"\nurl = "redis://127.0.0.1:{self.redis.port}/0"'
        config.write_text(
            f"""
name = "{self.group}"
table = "{self.table}"
{self.lake.config}
session_s = {SESSION_S}
flush_s = 0.3
discover_s = 1
lanes = 2
include_headers = {self.variant["headers"]}
{membership}
[workers]
default = {self.variant["workers"]}
file = "overrides.json"
[sources.home]
bootstrap_servers = "{self.cluster.bootstrap_servers}"
topics = {json.dumps(self.topics)}
"""
        )
        command = [sys.executable, "-m", "spark_sink", "agent", "--config", str(config), "--agent"]
        return [Agent(name, [*command, name], self.root / f"{name}.log") for name in ("one", "two", "three")]

    def positions(self) -> Mapping[TopicPartition, int]:
        """Of all tables."""
        return self.lake.positions([self.table], self.group)

    def known_faults(self) -> Sequence[str]:
        """A membership by Kafka has no server of its own."""
        return [kind for kind in self.faults if self.redis is not None or not kind.endswith("membership")]

    def fault(self, kind: str) -> None:
        """Faults of the membership's server and of the configuration."""
        if kind.endswith("overrides"):
            wanted = {topic: self.random.choice((1, 2, 3)) for topic in self.random.sample(self.topics, 2)}
            self.overrides.write_text("{" if kind.startswith("break") else json.dumps(wanted))
        elif self.redis is not None and kind == "flush membership":
            self.redis.flush()
        elif self.redis is not None:
            self.redis.kill()
            self.wait_for_commits()
            self.redis.start()

    def __exit__(self, *error: object) -> None:
        super().__exit__(*error)
        if self.redis is not None:
            self.redis.kill()


@pytest.fixture
def fleet(cluster: Cluster, tmp_path: Path, topic: MakeTopic, request: pytest.FixtureRequest) -> Iterator[Fleet]:
    """Six topics, and agents that are gone when the test ends."""
    topics = [topic(f"t{number}", partitions=2, replication=3) for number in range(6)]
    with Fleet(cluster, tmp_path, topics, 2, request.param) as made:
        yield made


@pytest.mark.parametrize("fleet", [pytest.param(seed, marks=ALSO_SLOW) for seed in SEEDS], indirect=True)
def test_every_record_once_whatever_happens_to_a_fleet(fleet: Fleet) -> None:
    """Agents disagree about their fleet while parts of it are away; the tables take each record once."""
    found = fleet.run()
    assert found.ok, f"seed {fleet.seed}: {found}"
