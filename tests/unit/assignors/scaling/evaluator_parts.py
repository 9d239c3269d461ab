"""A source and a publisher in memory, and a settings file, for the evaluator."""

import json
from collections.abc import Collection, Mapping
from pathlib import Path
from typing import Any

import numpy as np

from assignors.errors import LagError
from assignors.scaling import UNKNOWN, Observation, ScaledTopic, WorkersRecord
from assignors.scaling.kafka_lag import TopicFacts

NAME = ScaledTopic("cluster", "ingest", "flights")


class Source:
    """Topics with rates of arrivals and reads that a test changes; time advances at each observation."""

    def __init__(self) -> None:
        self.partitions, self.arriving, self.leaving = 8, 100.0, 100.0
        self.now_s, self.end, self.committed = 1e6, 1e6, 1e6
        self.gone = self.silent = self.unknown = False
        self.names = ["flights"]

    def cluster_id(self) -> str:
        """As in `LagSource`."""
        return "cluster"

    def topics(self, names: Collection[str], pattern: str | None) -> dict[str, TopicFacts]:  # noqa: ARG002 -- the contract's
        """As in `LagSource`."""
        if self.silent:
            raise LagError("no broker answers")
        facts = TopicFacts(partitions=self.partitions, retention_s=None)
        return {} if self.gone else dict.fromkeys(self.names, facts)

    def observe(self, group: str, topics: Mapping[str, TopicFacts]) -> dict[str, Observation]:  # noqa: ARG002 -- the contract's
        """As in `LagSource`."""
        self.now_s += 30.0
        self.end += 30.0 * self.arriving
        self.committed = min(self.committed + 30.0 * self.leaving, self.end)

        def column(value: float) -> Any:
            return np.full(self.partitions, UNKNOWN if self.unknown else int(value), dtype=np.int64)

        one = Observation(time_s=self.now_s, start=column(0), end=column(self.end), committed=column(self.committed))
        return dict.fromkeys(topics, one)


class Publisher:
    """Stores published numbers."""

    def __init__(self) -> None:
        self.published: list[tuple[ScaledTopic, WorkersRecord | None]] = []

    def publish(self, name: ScaledTopic, record: WorkersRecord | None) -> None:
        """As in the contract."""
        self.published.append((name, record))


def write(path: Path, **pipeline: object) -> Path:
    """A settings file with one pipeline."""
    lines = [f"{name} = {json.dumps(value)}" for name, value in pipeline.items()]
    head = f'bootstrap_servers = "localhost:1"\njournal = "{path.parent}/decisions.jsonl"\n[pipelines.flights]\n'
    path.write_text(head + "\n".join(lines))
    return path
