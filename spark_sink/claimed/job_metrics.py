"""The metrics of a job with claims, for Prometheus: `azimuth_claims_*`."""

import time
from collections.abc import Callable

from prometheus_client import CollectorRegistry, Counter, Gauge

from spark_sink.claimed.job_round import Round


class JobMetrics:
    """Counters and gauges of one job.

    Args:
        registry: the registry of the metrics.
        clock: seconds since 1970.
    """

    def __init__(self, registry: CollectorRegistry, clock: Callable[[], float] = time.time) -> None:
        self._clock = clock
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
