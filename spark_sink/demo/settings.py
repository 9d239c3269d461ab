"""The settings of a run of the demo."""

import json
import re
from dataclasses import dataclass
from pathlib import Path

from spark_sink.demo.agents import Part
from spark_sink.demo.cluster import ZONES
from spark_sink.demo.flights import TOPIC_PREFIX
from spark_sink.errors import DemoError

_FEWEST = 30_000


@dataclass(frozen=True, slots=True, kw_only=True)
class DemoSettings:
    """One run, from the cluster to the report.

    Attributes:
        directory: for all files of the run; the report stays, the cluster's data is removed.
        flights: use only this many, the first of the data set; None for all.
        zones: each has one broker, one producer and at most one agent.
        group: the consumer group of the agents.
        kill: the part of an agent that is killed.
        kill_at: fraction of all rows that is committed before the kill, 0 to 1.
        bulk: fraction of the flights that is produced while the agents start; the rest arrives while they run.
        live_rate: records per second of the rest.
        default_share: smallest fraction of the records for the measurement of the default partitioner.
        replicas: replication factor of the topics.
        workers: maximum number of agents per topic; one keeps the number of connections small.
        max_offsets_per_trigger: maximum number of records that an agent reads in a batch.
        limit_s: a step of the ingestion that takes longer has failed.
    """

    directory: Path = Path("build/demo")
    flights: int | None = None
    zones: tuple[str, ...] = ZONES
    group: str = "ingest"
    kill: Part = Part.WHOLE
    kill_at: float = 0.3
    bulk: float = 0.8
    live_rate: float = 1000.0
    default_share: float = 0.2
    replicas: int = 3
    workers: int = 1
    max_offsets_per_trigger: int = 20_000
    limit_s: float = 300.0

    def __post_init__(self) -> None:
        for name in ("kill_at", "bulk", "default_share"):
            if not 0 < getattr(self, name) < 1:
                raise DemoError(f"{name}={getattr(self, name)!r}, need a number between 0 and 1")
        if not self.live_rate > 0:
            raise DemoError(f"live_rate={self.live_rate!r}, need more than 0 records per second")
        if self.flights is not None and self.flights < _FEWEST:
            raise DemoError(f"flights={self.flights}, need {_FEWEST} or more: the kill comes in the middle")
        if self.max_offsets_per_trigger < 1:
            raise DemoError(f"max_offsets_per_trigger={self.max_offsets_per_trigger!r}, need 1 or more")

    @property
    def table(self) -> Path:
        """The Delta table."""
        return self.directory / "table"

    def telemetry(self, agent: str) -> Path:
        """Return the file to which an agent appends its ownership."""
        return self.directory / "telemetry" / f"{agent}.jsonl"


def agent_config(settings: DemoSettings, agent: str, rack: str, bootstrap_servers: str) -> str:
    """Return the content of the file for `azimuth sink --config`, for one agent of the demo.

    Args:
        settings: settings of the run.
        agent: the agent's name; with it the agent keeps its partitions over a restart.
        rack: the agent's zone.
        bootstrap_servers: addresses of the cluster.
    """
    directory = settings.directory.absolute()
    top = {
        "agent": agent,
        "rack": rack,
        "bootstrap_servers": bootstrap_servers,
        "group": settings.group,
        "subscribe_pattern": f"{re.escape(TOPIC_PREFIX)}.*",
        "table": str(directory / "table"),
        "checkpoint": str(directory / "checkpoints" / agent),
        "assignor": "hrw",
        "workers": str(settings.workers),
        "max_offsets_per_trigger": settings.max_offsets_per_trigger,
        "trigger": "1 second",
        "master": "local[2]",
    }
    tables = {
        "kafka": {"session.timeout.ms": "6000", "heartbeat.interval.ms": "1000"},
        "source": {"telemetry": str(settings.telemetry(agent).absolute())},
    }
    lines = [f"{name} = {json.dumps(value)}" for name, value in top.items()]
    for table, values in tables.items():
        lines += ["", f"[{table}]", *(f"{json.dumps(name)} = {json.dumps(value)}" for name, value in values.items())]
    return "\n".join(lines) + "\n"
