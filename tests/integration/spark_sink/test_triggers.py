"""When a query's batches begin and how large they are, in real Spark, and what Spark and Prometheus say of them."""

import json
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from confluent_kafka import Producer
from confluent_kafka.admin import AdminClient
from prometheus_client import CollectorRegistry
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.functions import count, length, lit
from pyspark.sql.functions import sum as sum_of
from pyspark.sql.streaming.query import StreamingQuery

from spark_sink import QueryMetrics
from spark_sink.demo.cluster import Cluster
from tests.waiting import wait_until

pytestmark = [
    pytest.mark.integration,
    pytest.mark.slow,
    pytest.mark.matrix,
    pytest.mark.filterwarnings("ignore::ResourceWarning"),
    pytest.mark.filterwarnings("ignore::DeprecationWarning"),
]

SESSION_S = 6.0
WAIT_S = 180.0  # the first query of a session starts a JVM and Python workers

Write = Callable[[DataFrame, int], None]
Start = Callable[..., StreamingQuery]


def _count(batch: DataFrame, _number: int) -> None:
    batch.count()


@pytest.fixture
def name(topic: Callable[..., str]) -> str:
    """A topic with one partition."""
    return topic("t")


@pytest.fixture
def start(spark: SparkSession, cluster: Cluster, tmp_path: Path, name: str) -> Iterator[Start]:
    """Start a query of that topic: `start(write, **options)`; it is stopped when the test ends."""
    made: list[StreamingQuery] = []
    base = {
        "kafka.bootstrap.servers": cluster.bootstrap_servers,
        "kafka.group.id": name,
        "kafka.session.timeout.ms": str(int(SESSION_S * 1000)),
        "kafka.heartbeat.interval.ms": "500",
        "subscribe": name,
    }

    def started(write: Write = _count, **options: str) -> StreamingQuery:
        rows = spark.readStream.format("kafka-group").options(**{**base, **options}).load()
        writer = rows.writeStream.foreachBatch(write).queryName(name).trigger(processingTime="200 milliseconds")
        made.append(writer.option("checkpointLocation", str(tmp_path / "checkpoint")).start())
        return made[-1]

    yield started
    for query in made:
        query.stop()


def _fill(producer: Producer, topic: str, count: int, size: int = 1) -> None:
    for _ in range(count):
        producer.produce(topic, b"x" * size, partition=0)
    assert producer.flush(30) == 0


def _batches(query: StreamingQuery) -> list[int]:
    """Return the rows of the batches that had some."""
    assert query.exception() is None, query.exception()
    return [batch["numInputRows"] for batch in query.recentProgress if batch["numInputRows"]]


def _is_behind(query: StreamingQuery, topic: str, end: int) -> bool:
    """Return whether a trigger has seen records and read none of them."""
    last = query.lastProgress
    latest = json.loads(last["sources"][0]["latestOffset"] or "{}") if last else {}
    return latest == {topic: {"0": end}}


def test_a_small_batch_waits_for_more_records(start: Start, producer: Producer, name: str) -> None:
    """The first batch never waits; then 5 records are seen and left until there are 20."""
    _fill(producer, name, 3)
    query = start(minOffsetsPerTrigger="20", maxTriggerDelay="10m")
    wait_until(lambda: _batches(query) == [3], WAIT_S, "the first batch")
    _fill(producer, name, 5)
    wait_until(lambda: _is_behind(query, name, 8), WAIT_S, "the records are seen")
    assert _batches(query) == [3]
    _fill(producer, name, 15)
    wait_until(lambda: sum(_batches(query)) == 23, WAIT_S, "enough records")
    assert _batches(query) == [3, 20]


def test_a_small_batch_waits_no_longer_than_the_delay(start: Start, producer: Producer, name: str) -> None:
    """The number of records is never reached."""
    _fill(producer, name, 3)
    query = start(minOffsetsPerTrigger="1000000", maxTriggerDelay="5s")
    wait_until(lambda: _batches(query) == [3], WAIT_S, "the first batch")
    _fill(producer, name, 5)
    wait_until(lambda: _batches(query) == [3, 5], WAIT_S, "the delay is over")


def test_large_records_make_small_batches(start: Start, producer: Producer, name: str) -> None:
    """200 records of 10 kB with 300 kB a batch; one partition, so that each batch has about as many."""
    _fill(producer, name, 200, 10_000)
    query = start(maxBytesPerTrigger="300k")
    wait_until(lambda: sum(_batches(query)) == 200, WAIT_S, "all records")
    assert len(_batches(query)) >= 6
    assert max(_batches(query)) <= 31


def test_the_progress_tells_the_ends_of_the_logs_and_prometheus_the_lag(
    start: Start, spark: SparkSession, producer: Producer, name: str
) -> None:
    """While batches are small, the end of the log is ahead of them; the listener gets each batch from Spark itself."""
    registry = CollectorRegistry()
    metrics = QueryMetrics(registry)
    spark.streams.addListener(metrics)
    go_on, inside = threading.Event(), threading.Event()

    def write(batch: DataFrame, number: int) -> None:
        batch.count()
        if number == 1:
            inside.set()
            assert go_on.wait(WAIT_S)

    def value(metric: str, **more: str) -> float | None:
        return registry.get_sample_value(f"azimuth_query_{metric}", {"query": name, **more})

    try:
        _fill(producer, name, 12)
        query = start(write, maxOffsetsPerTrigger="5")
        assert inside.wait(WAIT_S)
        wait_until(lambda: value("rows_total") == 5, WAIT_S, "the listener's first batch")
        assert value("lag_records", topic=name) == 7
        go_on.set()
        wait_until(lambda: value("rows_total") == 12, WAIT_S, "the listener's last batch")
        assert (value("batches_total"), value("offsets_total", topic=name)) == (3, 12)
        assert (value("lag_records", topic=name), value("running")) == (0, 1)
        read = [batch for batch in query.recentProgress if batch["numInputRows"]]
        ends = [json.loads(batch["sources"][0]["latestOffset"]) for batch in read]
        assert ends == [{name: {"0": 12}}] * 3
        query.stop()
        wait_until(lambda: value("running") == 0, WAIT_S, "the listener's end")
        assert value("lag_records", topic=name) is None
    finally:
        go_on.set()
        spark.streams.removeListener(metrics)


@pytest.mark.parametrize("table_format", ["delta", "iceberg"])
def test_what_a_query_observes_of_a_batch_is_in_its_progress(  # noqa: PLR0913, PLR0917 -- fixtures
    spark: SparkSession, cluster: Cluster, producer: Producer, name: str, tmp_path: Path, table_format: str
) -> None:
    """Spark takes no metrics from a source in Python; `DataFrame.observe` counts the rows that the sink commits."""
    _fill(producer, name, 12, size=10)
    source = {"kafka.bootstrap.servers": cluster.bootstrap_servers, "kafka.group.id": name, "subscribe": name}
    rows = spark.readStream.format("kafka-group").options(**source, maxOffsetsPerTrigger="5").load()
    rows = rows.observe("read", count(lit(1)).alias("records"), sum_of(length("value")).alias("bytes"))
    table = str(tmp_path / "t") if table_format == "delta" else "lake.observed.t"
    catalog = {"catalog.warehouse": str(tmp_path)} if table_format == "iceberg" else {}
    options = {"path": table, "kafka.group.id": name, "checkpointLocation": str(tmp_path / "c"), **catalog}
    writer = rows.writeStream.format(f"{table_format}-exactly-once").options(**options)
    registry = CollectorRegistry()
    metrics = QueryMetrics(registry)
    spark.streams.addListener(metrics)
    try:
        query = writer.queryName(name).trigger(availableNow=True).start()
        assert query.awaitTermination(int(WAIT_S))
        read = [batch.observedMetrics["read"].asDict() for batch in query.recentProgress if batch.numInputRows]
        assert read == [{"records": rows, "bytes": 10 * rows} for rows in (5, 5, 2)]
        wait_until(
            lambda: registry.get_sample_value("azimuth_query_batches_total", {"query": name}) == 3, WAIT_S, "events"
        )
    finally:
        spark.streams.removeListener(metrics)


def test_a_batch_longer_than_the_session_keeps_the_membership(
    start: Start, producer: Producer, admin: AdminClient, name: str
) -> None:
    """The reader's process goes on with its heartbeats while Spark computes: no rebalance, and no record twice."""
    inside, seen = threading.Event(), list[int]()

    def members() -> list[str]:
        return [one.member_id for one in admin.describe_consumer_groups([name])[name].result().members]

    def write(batch: DataFrame, _number: int) -> None:
        seen.extend(row.offset for row in batch.select("offset").collect())
        if len(seen) == 4:
            until = time.monotonic() + 2.5 * SESSION_S
            inside.set()
            wait_until(lambda: time.monotonic() > until, WAIT_S, "longer than the session")

    _fill(producer, name, 4)
    query = start(write, maxOffsetsPerTrigger="4")
    assert inside.wait(WAIT_S)
    before = members()
    _fill(producer, name, 4)
    wait_until(lambda: len(_batches(query)) == 2, WAIT_S, "the batch after the long one")
    assert members() == before
    assert len(before) == 1
    assert seen == list(range(8))
