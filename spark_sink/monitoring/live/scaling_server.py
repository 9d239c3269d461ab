"""The autoscaler's figures over HTTP: the agents that each group needs, metrics and a probe."""

import json
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from http import HTTPStatus
from typing import Any, ClassVar

from prometheus_client import CollectorRegistry
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric
from prometheus_client.exposition import CONTENT_TYPE_LATEST, generate_latest
from prometheus_client.registry import Collector

from spark_sink.monitoring.live.http_credentials import OPEN, Access
from spark_sink.monitoring.live.http_server import ReadOnly, Serving

_MISSED_ROUNDS = 4
_LEAST_STUCK_S = 120.0


@dataclass(frozen=True, slots=True)
class TopicFigures:
    """The last decision on a topic."""

    group: str
    topic: str
    workers: int
    lag_records: int


class ScalingFigures(Collector):
    """The figures of the last rounds, set by one thread and read by others.

    Args:
        interval_s: time between two rounds.
    """

    def __init__(self, interval_s: float) -> None:
        self._stuck_s = max(_MISSED_ROUNDS * interval_s, _LEAST_STUCK_S)
        self._changing = threading.Lock()
        self._agents: dict[str, tuple[int, str]] = {}
        self._topics: Sequence[TopicFigures] = ()
        self._rounds = self._failures = 0
        self._turned = time.monotonic()
        self._decided_at = 0.0

    def round(self, topics: Sequence[TopicFigures], *, complete: bool) -> None:
        """Record the result of a round.

        Args:
            topics: the decisions.
            complete: whether every pipeline could be observed.
        """
        with self._changing:
            self._turned = time.monotonic()
            self._rounds += 1
            self._failures += not complete
            self._topics = tuple(topics)
            if complete:
                self._decided_at = time.time()

    def needs(self, group: str, agents: int, reason: str) -> None:
        """Set the number of agents of a group; it stays until the next call."""
        with self._changing:
            self._agents[group] = (agents, reason)

    def present(self, group: str) -> int | None:
        """The last number of agents of a group."""
        found = self._agents.get(group)
        return found and found[0]

    @property
    def turns(self) -> bool:
        """Whether the last round is recent; if not, the autoscaler hangs."""
        return time.monotonic() - self._turned < self._stuck_s

    def agents(self) -> Mapping[str, Mapping[str, Any]]:
        """Return the agents that each group needs, with the reason; groups without a decision are absent."""
        with self._changing:
            return {group: {"agents": number, "reason": why} for group, (number, why) in self._agents.items()}

    def collect(self) -> Iterator[Metric]:
        """Yield `azimuth_scaling_*`."""
        with self._changing:
            agents, topics = dict(self._agents), self._topics
            rounds, failures, decided_at = self._rounds, self._failures, self._decided_at
        yield CounterMetricFamily("azimuth_scaling_rounds", "Rounds of decisions.", value=rounds)
        yield CounterMetricFamily(
            "azimuth_scaling_failed_rounds", "Rounds in which not every pipeline was observed.", value=failures
        )
        yield GaugeMetricFamily(
            "azimuth_scaling_decided_timestamp_seconds", "Time of the last round without a failure.", value=decided_at
        )
        needed = GaugeMetricFamily("azimuth_scaling_agents_needed", "Agents that a group needs.", labels=["group"])
        for group, (number, _) in agents.items():
            needed.add_metric([group], number)
        yield needed
        workers = GaugeMetricFamily("azimuth_scaling_workers", "Workers of a topic.", labels=["group", "topic"])
        lag = GaugeMetricFamily("azimuth_scaling_lag_records", "Records to read.", labels=["group", "topic"])
        for one in topics:
            workers.add_metric([one.group, one.topic], one.workers)
            lag.add_metric([one.group, one.topic], one.lag_records)
        yield workers
        yield lag

    def describe(self) -> Iterator[Metric]:
        """Yield nothing: names are known only at a scrape."""
        return iter(())


class ScalingServer(Serving):
    """Serves until it is closed.

    | path | content |
    |---|---|
    | `/agents.json` | `{"<group>": {"agents": 4, "reason": "..."}}`; 503 before the first decision |
    | `/metrics` | metrics for Prometheus |
    | `/healthz` | 200 while rounds continue; 503 if only a restart helps |
    | `/readyz` | 200 once a number of agents is known, else 503 |

    Args:
        address: host and port; port 0 chooses a free one.
        figures: the figures of the rounds.
        access: as for `Serving`.

    Raises:
        OptionError: the address is not available.
    """

    def __init__(self, address: tuple[str, int], figures: ScalingFigures, access: Access = OPEN) -> None:
        registry = CollectorRegistry()
        registry.register(figures)
        super().__init__(address, type("Handler", (_Handler,), {"figures": figures, "registry": registry}), access)


class _Handler(ReadOnly):
    figures: ClassVar[ScalingFigures]
    registry: ClassVar[CollectorRegistry]

    def get(self, path: str) -> None:
        """As documented in `ScalingServer`."""
        agents = self.figures.agents()
        if path in {"/agents.json", "/"}:
            code = HTTPStatus.OK if agents else HTTPStatus.SERVICE_UNAVAILABLE
            self.answer(code, "application/json", json.dumps(agents))
        elif path == "/metrics":
            self.answer(HTTPStatus.OK, CONTENT_TYPE_LATEST, generate_latest(self.registry))
        elif path == "/healthz":
            self.probe("" if self.figures.turns else "its rounds do not go on")
        elif path == "/readyz":
            self.probe("" if agents else "no group has a number of agents yet")
        else:
            self.answer(HTTPStatus.NOT_FOUND, "text/plain; charset=utf-8", "no such page")
