"""The metrics of a job with claims, for Prometheus: `azimuth_claims_*`."""

import time
from collections.abc import Callable, Collection
from typing import Final

from prometheus_client import CollectorRegistry, Counter, Gauge

from spark_sink.claimed.job_progress import Round

_STALE_S: Final = 300.0


class JobMetrics:
    """Counters and gauges of one job.

    Args:
        registry: the registry of the metrics.
        stale_s: age of a topic's lag at which it is dropped, as another job has claimed the topic since, seconds.
        clock: seconds since 1970.
    """

    def __init__(
        self, registry: CollectorRegistry, stale_s: float = _STALE_S, clock: Callable[[], float] = time.time
    ) -> None:
        self._clock = clock
        self._stale_s = stale_s
        self._seen: dict[str, float] = {}  # time of the last lag, by topic
        self._rows = Counter("azimuth_claims_rows", "Records that this job wrote.", registry=registry)
        self._quarantined = Counter(
            "azimuth_claims_quarantined", "Of these, records that could not be decoded.", registry=registry
        )
        self._visits = Counter("azimuth_claims_visits", "Partitions that this job claimed.", registry=registry)
        self._lost = Counter("azimuth_claims_lost", "Claims that had ended before the commit.", registry=registry)
        self._refused = Gauge(
            "azimuth_claims_refused_topics", "Topics of the last round that were not written.", registry=registry
        )
        self._failed = Gauge("azimuth_claims_failed", "1 while rounds fail as a whole.", registry=registry)
        self._at = Gauge(
            "azimuth_claims_round_timestamp_seconds", "Time of the last round that did not fail.", registry=registry
        )
        self._late = Gauge(
            "azimuth_claims_lag_seconds",
            "Age of the oldest unread record when the topic was last claimed.",
            ["topic"],
            registry=registry,
        )

    def note(self, done: Round) -> None:
        """Add one round."""
        self._failed.set(float(done.failed))
        if done.failed:
            return
        self._rows.inc(done.rows)
        self._quarantined.inc(done.quarantined)
        self._visits.inc(done.claimed)
        self._lost.inc(done.lost)
        self._at.set(self._clock())
        if done.claimed:
            self._refused.set(len(done.refused))
        for topic, seconds in done.late_s.items():
            self._late.labels(topic).set(seconds)
            self._seen[topic] = self._clock()
        self._drop(done.topics)

    def _drop(self, present: Collection[str] | None) -> None:
        """Drop the lag of topics that are gone, and of those that this job has not claimed for long."""
        oldest = self._clock() - self._stale_s
        for topic, at in list(self._seen.items()):
            if at < oldest or (present is not None and topic not in present):
                self._late.remove(topic)
                del self._seen[topic]
