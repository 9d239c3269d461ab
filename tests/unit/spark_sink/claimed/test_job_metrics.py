"""The metrics of a job with claims."""

import urllib.request

from prometheus_client import CollectorRegistry

from spark_sink.claimed import Round
from spark_sink.claimed.job_metrics import JobMetrics
from spark_sink.monitoring.live import serve_metrics


def test_rounds_add_up_and_a_failure_is_seen() -> None:
    """A job whose database or brokers are away writes nothing, and its time of the last round stands still."""
    registry, now = CollectorRegistry(), [100.0]
    metrics = JobMetrics(registry, clock=lambda: now[0])
    metrics.note(Round(claimed=3, rows=10, quarantined=4, lost=1, late_s={"t": 2.5}, refused={"u": ValueError()}))
    now[0] = 200.0
    metrics.note(Round(failed=True))
    names = ("rows_total", "quarantined_total", "visits_total", "lost_total", "refused_topics", "failed")
    assert [registry.get_sample_value(f"azimuth_claims_{name}") for name in names] == [10, 4, 3, 1, 1, 1]
    assert registry.get_sample_value("azimuth_claims_round_timestamp_seconds") == 100
    assert registry.get_sample_value("azimuth_claims_lag_seconds", {"topic": "t"}) == 2.5
    metrics.note(Round())
    assert registry.get_sample_value("azimuth_claims_failed") == 0
    assert registry.get_sample_value("azimuth_claims_round_timestamp_seconds") == 200


def lags(registry: CollectorRegistry) -> dict[str, float]:
    """The lag of each topic in a scrape."""
    found = [sample for family in registry.collect() for sample in family.samples]
    return {one.labels["topic"]: one.value for one in found if one.name == "azimuth_claims_lag_seconds"}


def test_the_lag_of_a_topic_that_is_gone_is_dropped() -> None:
    """An alert on it would fire until the job ends; also if the job claims nothing any more."""
    registry = CollectorRegistry()
    metrics = JobMetrics(registry)
    metrics.note(Round(claimed=2, late_s={"t": 900.0, "u": 1.0}, topics={"t", "u"}))
    metrics.note(Round())  # one of the topics could not be described
    metrics.note(Round(failed=True, topics=()))
    assert lags(registry) == {"t": 900, "u": 1}
    metrics.note(Round(topics={"u"}))
    assert lags(registry) == {"u": 1}
    metrics.note(Round(claimed=1, late_s={"t": 2.0}, topics={"t", "u"}))
    assert lags(registry) == {"u": 1, "t": 2}


def test_the_lag_of_a_topic_that_other_jobs_claim_is_dropped() -> None:
    """Another job has read it since, so an old value of this one would be wrong."""
    registry, now = CollectorRegistry(), [100.0]
    metrics = JobMetrics(registry, stale_s=70, clock=lambda: now[0])
    metrics.note(Round(claimed=2, late_s={"t": 900.0, "u": 1.0}))
    now[0] = 170.0
    metrics.note(Round(claimed=1, late_s={"u": 1.0}))
    assert lags(registry) == {"t": 900, "u": 1}
    now[0] = 171.0
    metrics.note(Round())
    assert lags(registry) == {"u": 1}


def test_a_scrape_is_answered() -> None:
    """On a port of the job's own."""
    registry = CollectorRegistry()
    JobMetrics(registry).note(Round(claimed=1, rows=7))
    server = serve_metrics(0, registry)
    try:
        with urllib.request.urlopen(f"http://127.0.0.1:{server.server_address[1]}/metrics", timeout=5) as found:
            assert b"azimuth_claims_rows_total 7.0" in found.read()
    finally:
        server.shutdown()
        server.server_close()
