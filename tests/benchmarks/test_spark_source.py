"""The source and Spark's own connector, in one session, interleaved: batch seconds of warm queries, no-op sink.

A query's batch seconds are the sum of its triggers' `triggerExecution`; beside them stands the wall time, which holds
the start of the reader's process. AZIMUTH_BENCH_SPARK=defaults measures the peer at its defaults too (minutes);
AZIMUTH_BENCH_RUNS sets how often, AZIMUTH_BENCH_TIMES how large the one topic is, AZIMUTH_BENCH_PARTITIONS how many
partitions.
"""

import os
import statistics
import time
import uuid
from pathlib import Path

import pytest
from pyspark.sql import SparkSession
from pyspark.sql.streaming.readwriter import DataStreamWriter

from spark_sink.demo.cluster import Cluster
from tests.benchmarks.spark_peer_jars import peer_jars
from tests.benchmarks.spark_report import save
from tests.benchmarks.spark_session import MARKS
from tests.benchmarks.spark_topics import Records, delete, flights, make, one_large_topic

pytestmark = MARKS
RUNS = int(os.environ.get("AZIMUTH_BENCH_RUNS", "3"))
TIMES = int(os.environ.get("AZIMUTH_BENCH_TIMES", "10"))
SIZES = [int(one) for one in os.environ.get("AZIMUTH_BENCH_PARTITIONS", "10,100,300,1000").split(",")]
IDLE_TRIGGERS, IDLE_PATIENCE_S = 20, 120.0


def readers() -> dict[str, tuple[str, dict[str, str]]]:
    """Format and options of each reader by its name; the peer only where it can be had."""
    peer = {"jvm, fetch.max.wait.ms=10": ("kafka", {"kafka.fetch.max.wait.ms": "10"})} if peer_jars() else {}
    return {"kafka-group": ("kafka-group", {}), **peer}


class Bench:
    """Runs queries to their end and times them."""

    def __init__(self, spark: SparkSession, cluster: Cluster, root: Path) -> None:
        self._spark, self._servers, self._root = spark, cluster.bootstrap_servers, root

    def seconds(self, reader: str, subscribe: tuple[str, str], rows: int, **more: str) -> dict[str, float]:
        """Read everything with one reader; checks that it was everything."""
        begun = time.perf_counter()
        query = self._writer(reader, subscribe, **more).trigger(availableNow=True).start()
        query.awaitTermination()
        wall = time.perf_counter() - begun
        batches = [one for one in query.recentProgress if one["numInputRows"]]
        assert sum(one["numInputRows"] for one in batches) == rows
        return {"batch": sum(one["durationMs"]["triggerExecution"] for one in batches) / 1000, "wall": wall}

    def idle(self, reader: str, subscribe: tuple[str, str], **more: str) -> float:
        """Median seconds of a trigger that finds nothing, as Spark tells them."""
        every = "spark.sql.streaming.noDataProgressEventInterval"
        self._spark.conf.set(every, "0")  # usually told of once in ten seconds
        writer = self._writer(reader, subscribe, **{"startingOffsets": "latest", **more})
        # Further apart than the source's own pause, which would be counted otherwise.
        query = writer.trigger(processingTime="300 milliseconds").start()
        found: list[float] = []
        deadline = time.monotonic() + IDLE_PATIENCE_S
        # The first triggers join the group and load classes.
        while len(found) < 2 * IDLE_TRIGGERS:
            assert time.monotonic() < deadline, f"{len(found)} idle triggers: {query.status}"
            time.sleep(0.2)
            found = [one["durationMs"]["triggerExecution"] / 1000 for one in query.recentProgress]
        assert not any(one["numInputRows"] for one in query.recentProgress)
        query.stop()
        self._spark.conf.unset(every)
        return statistics.median(found[-IDLE_TRIGGERS:])

    def _writer(self, reader: str, subscribe: tuple[str, str], **more: str) -> DataStreamWriter:
        name = uuid.uuid4().hex
        options = {
            "kafka.bootstrap.servers": self._servers,
            subscribe[0]: subscribe[1],
            "startingOffsets": "earliest",
            **({"kafka.group.id": name} if reader == "kafka-group" else {}),
            **more,
        }
        writer = self._spark.readStream.format(reader).options(**options).load().writeStream.format("noop")
        return writer.option("checkpointLocation", str(self._root / name))

    def beside(self, subscribe: tuple[str, str], rows: int) -> dict[str, object]:
        """Medians of interleaved runs of both readers, after one of each to warm up."""
        found: dict[str, list[dict[str, float]]] = {name: [] for name in readers()}
        for run in range(RUNS + 1):
            for name, (reader, more) in readers().items():
                one = self.seconds(reader, subscribe, rows, **more)
                if run:
                    found[name].append(one)
        if peer_jars() and os.environ.get("AZIMUTH_BENCH_SPARK") == "defaults":
            found["jvm, defaults"] = [self.seconds("kafka", subscribe, rows)]
        medians = {
            name: {
                **{part: statistics.median(one[part] for one in runs) for part in ("batch", "wall")},
                "start": statistics.median(one["wall"] - one["batch"] for one in runs),
            }
            for name, runs in found.items()
        }
        ours = medians["kafka-group"]
        ratios = {
            part: {name: parts[part] / ours[part] for name, parts in medians.items() if name != "kafka-group"}
            for part in ("batch", "wall")
        }
        return {
            "records": rows,
            "runs": RUNS,
            "seconds": medians,
            "times_faster_than": ratios["batch"],
            "times_faster_than_by_wall": ratios["wall"],
        }


@pytest.fixture(scope="module")
def bench(spark: SparkSession, cluster: Cluster, tmp_path_factory: pytest.TempPathFactory) -> Bench:
    """Queries of this module."""
    return Bench(spark, cluster, tmp_path_factory.mktemp("bench"))


@pytest.fixture(scope="module")
def records() -> Records:
    """The flights: topic, key, value."""
    return flights()


def test_hundreds_of_small_topics(bench: Bench, cluster: Cluster, records: Records) -> None:
    """224 topics of three partitions, every flight of a year."""
    prefix = f"small-{uuid.uuid4().hex[:6]}"
    producer = make(cluster, {f"{prefix}.{route}": 3 for route in {route for route, _, _ in records}})
    for route, key, value in records:
        producer.produce(f"{prefix}.{route}", value, key)
    producer.flush()
    save("224 topics x 3 partitions", bench.beside(("subscribePattern", rf"{prefix}\..*"), len(records)))
    delete(cluster, {f"{prefix}.{route}" for route, _, _ in records})


def test_one_large_topic(bench: Bench, cluster: Cluster, records: Records) -> None:
    """Six partitions, 3.4 million records; AZIMUTH_BENCH_TIMES=1 for a tenth of them."""
    name = one_large_topic(cluster, records, TIMES)
    save(f"1 topic, 6 partitions, {TIMES} x flights", bench.beside(("subscribe", name), TIMES * len(records)))
    delete(cluster, [name])


@pytest.mark.parametrize("partitions", SIZES)
def test_what_a_batch_costs_as_partitions_grow(bench: Bench, cluster: Cluster, partitions: int) -> None:
    """An idle trigger, and a batch of ten records a partition, one partition a topic up to 300."""
    prefix = f"many{partitions}-{uuid.uuid4().hex[:6]}"
    count = min(partitions, 300)
    topics = {f"{prefix}.{number}": len(range(number, partitions, count)) for number in range(count)}
    producer = make(cluster, topics)
    for _ in range(10):
        for name, each in topics.items():
            for partition in range(each):
                producer.produce(name, b"v" * 100, partition=partition)
    producer.flush()
    pattern = ("subscribePattern", rf"{prefix}\..*")
    ten = bench.beside(pattern, 10 * partitions)
    idle = {name: bench.idle(reader, pattern, **more) for name, (reader, more) in readers().items()}
    save(f"{partitions} partitions", {"batch_of_10_each": ten, "idle_trigger_s": idle})
    delete(cluster, topics)
