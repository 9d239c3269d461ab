"""An agent's status as Prometheus metrics, computed at a scrape."""

from collections.abc import Callable, Iterator, Mapping
from typing import Any

from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric
from prometheus_client.registry import Collector

_COUNTERS = {
    "rows": "Rows that this agent committed.",
    "bad_records": "Records that this agent put in quarantine.",
    "commits": "Commits of this agent.",
    "rebalances": "Times that partitions were given to this agent or taken from it.",
}
_STANDINGS = ("joining", "member", "unreachable", "isolated", "refused", "left")
_GAUGES = {
    "lanes": "Groups of topics that this agent reads.",
    "consumers": "Consumers of this agent.",
}


class StatusCollector(Collector):
    """Metrics of one agent: `azimuth_fleet_*`.

    Args:
        status: as for `LiveServer`.
    """

    def __init__(self, status: Callable[[], Mapping[str, Any]]) -> None:
        self._status = status

    def collect(self) -> Iterator[Metric]:
        """Read the status once, and yield all metrics."""
        found = self._status()
        for name, help_ in _COUNTERS.items():
            yield CounterMetricFamily(f"azimuth_fleet_{name}", help_, value=found.get(name, 0))
        for name, help_ in _GAUGES.items():
            yield GaugeMetricFamily(f"azimuth_fleet_{name}", help_, value=found.get(name, 0))
        yield GaugeMetricFamily("azimuth_fleet_topics", "Topics that this agent reads.", value=len(found["topics"]))
        yield GaugeMetricFamily("azimuth_fleet_problems", "What does not go well now.", value=len(found["problems"]))
        yield GaugeMetricFamily("azimuth_fleet_reads", "1 while the agent may read.", value=float(found["reads"]))
        ready = float(not found["unready"])
        yield GaugeMetricFamily("azimuth_fleet_ready", "1 while the agent ingests, as /readyz.", value=ready)
        standing = GaugeMetricFamily(
            "azimuth_fleet_standing", "1 for the agent's standing in the fleet.", labels=["standing"]
        )
        for one in _STANDINGS:
            standing.add_metric([one], float(one == found["standing"]))
        yield standing
        if found.get("committed_at"):
            yield GaugeMetricFamily(
                "azimuth_fleet_commit_timestamp_seconds", "Time of its last commit.", value=found["committed_at"]
            )
        members = found["view"]["members"] if found["view"] else ()
        yield GaugeMetricFamily("azimuth_fleet_agents", "Living agents in this agent's view.", value=len(members))
        lag = GaugeMetricFamily("azimuth_fleet_lag_records", "Records behind, by topic.", labels=["topic"])
        for topic, records in found.get("lag", {}).items():
            lag.add_metric([topic], records)
        yield lag
        lag_s = GaugeMetricFamily(
            "azimuth_fleet_lag_seconds", "Age of the oldest unread record, by topic.", labels=["topic"]
        )
        for topic, seconds in found.get("lag_s", {}).items():
            lag_s.add_metric([topic], seconds)
        yield lag_s
        received = CounterMetricFamily(
            "azimuth_fleet_received_bytes", "Bytes that came from brokers, by their zone.", labels=["zone"]
        )
        for zone, size in found.get("received", {}).items():
            received.add_metric([zone], size)
        yield received
        cost = found.get("crossing", {}).get("cost", 0.0)
        yield CounterMetricFamily("azimuth_fleet_cost", "Money for bytes that came from other zones.", value=cost)
        crossed = CounterMetricFamily("azimuth_fleet_cross_zone_bytes", "Bytes that came from other zones.", labels=[])
        share = GaugeMetricFamily("azimuth_fleet_cross_zone_share", "Part of the bytes from other zones.", labels=[])
        if found.get("crossing"):  # empty if the agent's zone is unknown
            crossed.add_metric([], found["crossing"]["bytes"])
            share.add_metric([], found["crossing"]["share"])
        yield crossed
        yield share
        if found.get("quarantined") is not None:  # not counted yet
            yield GaugeMetricFamily(
                "azimuth_fleet_quarantined", "Records in the quarantines of its tables.", value=found["quarantined"]
            )

    def describe(self) -> Iterator[Metric]:
        """Yield nothing: otherwise the registry would read the status before there is one."""
        return iter(())
