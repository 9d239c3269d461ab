"""Prometheus metrics of Spark's streaming queries, from the progress that Spark reports after each batch."""

import json
from collections.abc import Iterable, Mapping
from decimal import Decimal

from prometheus_client import REGISTRY, CollectorRegistry, Counter, Gauge
from pyspark.sql import Row
from pyspark.sql.streaming.listener import (
    QueryIdleEvent,
    QueryProgressEvent,
    QueryStartedEvent,
    QueryTerminatedEvent,
    SourceProgress,
    StreamingQueryListener,
    StreamingQueryProgress,
)

from spark_sink.errors import OffsetError
from spark_sink.ranges.batch_offset import Offset


class QueryMetrics(StreamingQueryListener):
    """Feeds Prometheus from Spark's progress: `spark.streams.addListener(QueryMetrics())`, then serve the registry.

    The label `query` is the query's name (`.queryName(...)`), or its id. `azimuth_query_offsets_total` counts what the
    query has read from Kafka, gaps included; `azimuth_query_rows_total` counts its rows. What the query observes itself
    (`DataFrame.observe`) is `azimuth_query_observed`, with the labels `observation` and `column`: the numbers of its
    last batch.

    Args:
        registry: the registry of the metrics.
    """

    def __init__(self, registry: CollectorRegistry = REGISTRY) -> None:
        query, topic = ["query"], ["query", "topic"]
        self._batches = Counter("azimuth_query_batches", "Batches that ran.", query, registry=registry)
        self._failures = Counter("azimuth_query_failures", "Runs that ended with an error.", query, registry=registry)
        self._rows = Counter("azimuth_query_rows", "Rows that Spark counted (numInputRows).", query, registry=registry)
        self._offsets = Counter("azimuth_query_offsets", "Offsets read, gaps included.", topic, registry=registry)
        self._seconds = Counter("azimuth_query_batch_seconds", "Time of the batches.", query, registry=registry)
        self._lag = Gauge(
            "azimuth_query_lag_records", "Offsets behind in the partitions of this query.", topic, registry=registry
        )
        self._observed = Gauge(
            "azimuth_query_observed",
            "Numbers of DataFrame.observe, of the last batch.",
            ["query", "observation", "column"],
            registry=registry,
        )
        self._running = Gauge("azimuth_query_running", "1 while the query runs.", query, registry=registry)
        self._names: dict[object, str] = {}  # by run, because the event of the end has no name
        self._topics: dict[str, set[str]] = {}  # by query, with a lag
        self._columns: dict[str, set[tuple[str, str]]] = {}  # by query, observed
        self._counted: dict[object, int] = {}  # the last batch by run

    def onQueryStarted(self, event: QueryStartedEvent) -> None:  # noqa: N802 -- Spark's name
        """Note that a query runs."""
        self._names[event.runId] = event.name or str(event.id)
        self._running.labels(self._names[event.runId]).set(1)

    def onQueryProgress(self, event: QueryProgressEvent) -> None:  # noqa: N802 -- Spark's name
        """Count a batch."""
        progress = event.progress
        name = progress.name or str(progress.id)
        if progress.batchId > self._counted.get(progress.runId, -1):
            self._counted[progress.runId] = progress.batchId
            self._count(name, progress)
        lag = lag_by_topic(progress.sources)
        for gone in self._topics.get(name, set()) - lag.keys():
            self._lag.remove(name, gone)
        self._topics[name] = set(lag)
        for key, number in observed_numbers(progress.observedMetrics).items():
            self._observed.labels(name, *key).set(number)
            self._columns.setdefault(name, set()).add(key)
        for topic, records in lag.items():
            self._lag.labels(name, topic).set(records)

    def onQueryIdle(self, event: QueryIdleEvent) -> None:  # noqa: N802 -- Spark's name
        """Do nothing: an idle query has no batch."""

    def onQueryTerminated(self, event: QueryTerminatedEvent) -> None:  # noqa: N802 -- Spark's name
        """Note that a query has ended, and remove its lag and its observations, which would look current."""
        name = self._names.pop(event.runId, str(event.id))
        self._counted.pop(event.runId, None)
        self._running.labels(name).set(0)
        if event.exception is not None:
            self._failures.labels(name).inc()
        for topic in self._topics.pop(name, set()):
            self._lag.remove(name, topic)
        for key in self._columns.pop(name, set()):
            self._observed.remove(name, *key)

    def _count(self, name: str, progress: StreamingQueryProgress) -> None:
        self._batches.labels(name).inc()
        self._rows.labels(name).inc(max(0, progress.numInputRows))
        self._seconds.labels(name).inc(progress.durationMs.get("triggerExecution", 0) / 1000)
        for topic, records in offsets_by_topic(progress.sources).items():
            self._offsets.labels(name, topic).inc(records)


def offsets_by_topic(sources: Iterable[SourceProgress]) -> dict[str, int]:
    """Add up the offsets that a batch read, by topic; sources other than kafka-group are left out."""
    found: dict[str, int] = {}
    for source in sources:
        for one in _batch(source):
            found[one.topic] = found.get(one.topic, 0) + one.records
    return found


def lag_by_topic(sources: Iterable[SourceProgress]) -> dict[str, int]:
    """Add up the offsets between the end of the batch and the ends of the logs, by topic."""
    found: dict[str, int] = {}
    for source in sources:
        batch = _batch(source)
        latest = (json.loads(source.latestOffset or "null") if batch else None) or {}
        for one in batch:
            end = latest.get(one.topic, {}).get(str(one.partition))
            if end is not None:
                found[one.topic] = found.get(one.topic, 0) + max(0, end - one.end)
    return found


def observed_numbers(observations: Mapping[str, Row]) -> dict[tuple[str, str], float]:
    """Return what a query observed, by observation and column; values that are no numbers are left out."""
    return {
        (observation, column): float(value)
        for observation, row in observations.items()
        for column, value in row.asDict().items()
        if isinstance(value, (int, float, Decimal))
    }


def _batch(source: SourceProgress) -> Offset:
    try:
        return Offset.parse(source.endOffset)
    except OffsetError:
        return Offset()
