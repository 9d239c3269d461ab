"""Spark's progress becomes metrics: each batch once, and no number of a query that has ended."""

import json
import uuid
from typing import Any

import pytest
from prometheus_client import CollectorRegistry
from pyspark.sql.streaming.listener import QueryProgressEvent, QueryStartedEvent, QueryTerminatedEvent

from spark_sink.ranges.batch_offset import Offset, Range
from spark_sink.source.query_metrics import QueryMetrics

QUERY, RUN = str(uuid.uuid4()), str(uuid.uuid4())
TIMES = "2026-01-01T00:00:00.000Z"


def batch(
    number: int,
    *ranges: Range,
    latest: object = None,
    name: str | None = "flights",
    observed: dict[str, dict[str, object]] | None = None,
) -> QueryProgressEvent:
    """The event of one batch, beside a source of another kind."""
    other = {"description": "Kafka", "startOffset": None, "endOffset": '{"a": {"0": 9}}', "latestOffset": '{"a": 1}'}
    ours = {
        "description": "kafka-group",
        "startOffset": None,
        "endOffset": Offset.of(ranges).json(),
        "latestOffset": None if latest is None else json.dumps(latest),
    }
    rates: dict[str, Any] = {"numInputRows": 2, "inputRowsPerSecond": 0.0, "processedRowsPerSecond": 0.0, "metrics": {}}
    progress = {
        "id": QUERY,
        "runId": RUN,
        "name": name,
        "timestamp": TIMES,
        "batchId": number,
        "batchDuration": 500,
        "durationMs": {"triggerExecution": 500},
        "eventTime": {},
        "stateOperators": [],
        "sources": [{**other, **rates}, {**ours, **rates}],
        "sink": {"description": "s", "numOutputRows": 2, "metrics": {}},
        "observedMetrics": observed or {},
        **rates,
    }
    return QueryProgressEvent.fromJson({"progress": progress})


@pytest.fixture
def registry() -> CollectorRegistry:
    """A registry of its own."""
    return CollectorRegistry()


def test_each_batch_counts_once_and_the_lag_is_the_last_one(registry: CollectorRegistry) -> None:
    """Rows are what Spark counts; offsets are what was read, gaps included."""
    metrics = QueryMetrics(registry)
    ranges = Range("a", 0, 0, 10), Range("a", 1, 5, 5), Range("b", 0, 3, 6)
    for _ in range(2):  # an idle trigger reports the last batch again
        metrics.onQueryProgress(batch(0, *ranges, latest={"a": {"0": 12, "1": 9}, "b": {"0": 6}}))
    metrics.onQueryProgress(batch(1, Range("a", 0, 10, 12), latest={"a": {"0": 12, "1": 9}}))

    def value(name: str, **labels: str) -> float | None:
        return registry.get_sample_value(f"azimuth_query_{name}", {"query": "flights", **labels})

    assert value("batches_total") == 2
    assert value("rows_total") == 4
    assert value("batch_seconds_total") == 1.0
    assert value("offsets_total", topic="a") == 12
    assert value("offsets_total", topic="b") == 3
    assert value("lag_records", topic="a") == 0
    assert value("lag_records", topic="b") is None, "its partitions went to another query"


def test_the_lag_needs_the_ends_of_the_logs(registry: CollectorRegistry) -> None:
    """Spark before 4.2 does not ask for them; 0 would look like a query without lag."""
    metrics = QueryMetrics(registry)
    metrics.onQueryProgress(batch(0, Range("a", 0, 0, 4)))
    assert registry.get_sample_value("azimuth_query_lag_records", {"query": "flights", "topic": "a"}) is None
    metrics.onQueryProgress(batch(1, Range("a", 0, 4, 5), Range("a", 1, 0, 1), latest={"a": {"0": 9, "1": 3}}))
    assert registry.get_sample_value("azimuth_query_lag_records", {"query": "flights", "topic": "a"}) == 6


def test_what_a_query_observes_is_a_metric_of_its_last_batch(registry: CollectorRegistry) -> None:
    """A number that a batch does not observe keeps its value; a text is none; after the end there is no number."""
    metrics = QueryMetrics(registry)

    def observed(observation: str, column: str) -> float | None:
        labels = {"query": "flights", "observation": observation, "column": column}
        return registry.get_sample_value("azimuth_query_observed", labels)

    started: dict[str, Any] = {"id": QUERY, "runId": RUN, "name": "flights", "timestamp": TIMES, "jobTags": []}
    metrics.onQueryStarted(QueryStartedEvent.fromJson(started))
    first: dict[str, dict[str, object]] = {
        "sizes": {"bytes": 70, "mean": 3.5, "largest": "text", "none": None},
        "late": {"rows": 2},
    }
    metrics.onQueryProgress(batch(0, Range("a", 0, 0, 4), observed=first))
    metrics.onQueryProgress(batch(1, Range("a", 0, 4, 9), observed={"sizes": {"bytes": 80, "mean": None}}))
    assert observed("sizes", "bytes") == 80
    assert observed("sizes", "mean") == 3.5
    assert observed("sizes", "largest") is None
    assert observed("late", "rows") == 2
    ended = {"id": QUERY, "runId": RUN, "exception": None, "errorClassOnException": None}
    metrics.onQueryTerminated(QueryTerminatedEvent.fromJson(ended))
    assert observed("sizes", "bytes") is None
    assert observed("late", "rows") is None


@pytest.mark.parametrize(("error", "failures"), [(None, None), ("boom", 1.0)])
def test_an_ended_query_does_not_run_and_has_no_lag(
    registry: CollectorRegistry, error: str | None, failures: float | None
) -> None:
    """A query without a name has its id."""
    metrics = QueryMetrics(registry)
    started: dict[str, Any] = {"id": QUERY, "runId": RUN, "name": None, "timestamp": TIMES, "jobTags": []}
    metrics.onQueryStarted(QueryStartedEvent.fromJson(started))
    assert registry.get_sample_value("azimuth_query_running", {"query": QUERY}) == 1
    metrics.onQueryProgress(batch(0, Range("a", 0, 0, 4), latest={"a": {"0": 9}}, name=None))
    ended = {"id": QUERY, "runId": RUN, "exception": error, "errorClassOnException": None}
    metrics.onQueryTerminated(QueryTerminatedEvent.fromJson(ended))
    assert registry.get_sample_value("azimuth_query_running", {"query": QUERY}) == 0
    assert registry.get_sample_value("azimuth_query_lag_records", {"query": QUERY, "topic": "a"}) is None
    assert registry.get_sample_value("azimuth_query_failures_total", {"query": QUERY}) == failures
