"""How the cost of a batch grows with topics and tables, and the cost of a commit with the commits before it.

AZIMUTH_BENCH_TOPICS, AZIMUTH_BENCH_TABLES and AZIMUTH_BENCH_COMMITS set the sizes, AZIMUTH_BENCH_RUNS how often a batch
is measured after one run to warm up. Writers of one table (agents) are in `test_lake_contention`, partitions in
`test_spark_source`.
"""

import json
import os
import shutil
import statistics
import time
import uuid
from pathlib import Path

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession

from spark_sink import positions
from spark_sink.agent.agent_settings import AVAILABLE_NOW, AgentSettings
from spark_sink.agent.spark_agent import start
from spark_sink.demo.cluster import Cluster
from spark_sink.fetch.raw_columns import arrow_schema
from spark_sink.lake.parquet_landing import normal_schema
from spark_sink.ranges.batch_offset import Offset, Range
from spark_sink.sink.query_tables import Tables
from spark_sink.sink.rows_by_table import Sorting
from spark_sink.sink.sink_options import SinkOptions
from tests.benchmarks import lake_report, spark_report
from tests.benchmarks.spark_session import MARKS
from tests.benchmarks.spark_topics import delete, make, send

pytestmark = MARKS
RUNS = int(os.environ.get("AZIMUTH_BENCH_RUNS", "3"))


def _sizes(variable: str, default: str) -> list[int]:
    return [int(one) for one in os.environ.get(variable, default).split(",")]


TOPICS = _sizes("AZIMUTH_BENCH_TOPICS", "10,100,500,2000")
TABLES = _sizes("AZIMUTH_BENCH_TABLES", "1,10,100,300")
COMMITS = _sizes("AZIMUTH_BENCH_COMMITS", "1,100,1000,5000,20000")
RECORDS, TABLE_RECORDS, VALUE = 200_000, 1_000_000, b"v" * 300
SCHEMA = normal_schema(arrow_schema(headers=False))


class Topics:
    """Topics of one prefix with the same number of records each."""

    def __init__(self, cluster: Cluster, count: int, records: int) -> None:
        self._cluster = cluster
        self.prefix = f"grow{uuid.uuid4().hex[:6]}"
        self.names = [f"{self.prefix}.{number:04d}" for number in range(count)]
        self.records = records // count * count
        producer = make(cluster, dict.fromkeys(self.names, 1))
        for number in range(self.records):
            send(producer, self.names[number % count], VALUE, None, 0)
        assert producer.flush(300) == 0

    def land(self, spark: SparkSession, root: Path, table: str, **more: object) -> tuple[list[float], float]:
        """Land all records in tables by the tasks; seconds of each batch, and of the query."""
        flags = {
            "bootstrap_servers": self._cluster.bootstrap_servers,
            "group": root.name,
            "table": table,
            "checkpoint": str(root / "checkpoint"),
            "subscribe_pattern": rf"{self.prefix}\..*",
            "trigger": AVAILABLE_NOW,
            **more,
        }
        settings = AgentSettings.load(None, flags)
        begun = time.perf_counter()
        query = start(spark, settings)
        query.awaitTermination()
        wall = time.perf_counter() - begun
        tables = settings.source_options()["positions"]
        landed = sum(positions(tables, settings.group, settings.table_storage).values())
        assert landed == self.records
        shutil.rmtree(root)
        return [one["durationMs"]["triggerExecution"] / 1000 for one in query.recentProgress], wall

    def delete(self) -> None:
        """Free the disk."""
        delete(self._cluster, self.names)


def _medians(runs: list[dict[str, float]]) -> dict[str, float]:
    return {part: round(statistics.median(one[part] for one in runs), 2) for part in runs[0]}


def test_a_batch_of_the_same_records_from_more_topics(spark: SparkSession, cluster: Cluster, tmp_path: Path) -> None:
    """One partition a topic, one table."""
    found = {}
    for count in TOPICS:
        topics = Topics(cluster, count, RECORDS)
        roots = [tmp_path / uuid.uuid4().hex for _ in range(RUNS + 1)]
        landed = [topics.land(spark, root, str(root / "table")) for root in roots]
        runs = [{"batch_s": sum(batches), "wall_s": wall} for batches, wall in landed]
        found[str(count)] = _medians(runs[1:])
        topics.delete()
    spark_report.save("cost by topics", {"records": RECORDS, "runs": RUNS, "topics": found})


def test_a_batch_of_the_same_records_into_more_tables(spark: SparkSession, cluster: Cluster, tmp_path: Path) -> None:
    """As many topics each time, in two batches: the first one creates the tables."""
    topics = Topics(cluster, max(TABLES), 2 * TABLE_RECORDS)
    half = {"max_offsets_per_trigger": topics.records // 2}
    found: dict[str, list[dict[str, float]]] = {str(count): [] for count in TABLES}
    for _ in range(RUNS + 1):
        for count in TABLES:
            root = tmp_path / uuid.uuid4().hex
            routes = {"|".join(topics.names[number::count]): f"{root}/{number}" for number in range(count)}
            table, more = f"{root}/other", {"sink": {"routes": json.dumps(routes)}}
            if count in {1, max(TABLES)}:
                table, more = f"{root}/{'table' if count == 1 else '{topic}'}", {}
            (first, later), wall = topics.land(spark, root, table, **half, **more)
            found[str(count)].append({"batch_s": first, "later_batch_s": later, "wall_s": wall})
    topics.delete()
    medians = {count: _medians(runs[1:]) for count, runs in found.items()}
    megabytes = topics.records // 2 * len(VALUE) / 1e6
    for one in medians.values():
        one["MB_per_s"] = round(megabytes / one["batch_s"], 1)
        one["later_MB_per_s"] = round(megabytes / one["later_batch_s"], 1)
    about = {"records of a batch": topics.records // 2, "MB": megabytes, "topics": max(TABLES), "runs": RUNS}
    spark_report.save("cost by tables", {**about, "tables": medians})


@pytest.mark.parametrize("table_format", ["delta", "iceberg"])
def test_a_commit_after_more_commits(tmp_path: Path, table_format: str) -> None:
    """Processor time of this process for a commit of ten partitions, medians of the commits before each size."""
    given = {"path": str(tmp_path / "table"), "kafka.group.id": "g", "checkpointLocation": "c", "compactEvery": "100"}
    if table_format == "iceberg":
        given |= {"path": "lake.raw.table", "tableFormat": "iceberg", "catalog.warehouse": str(tmp_path)}
    options = SinkOptions.parse(given)
    tables = Tables(options)
    taken = []
    for number in range(max(COMMITS)):
        rows = [{"topic": "t", "partition": one, "offset": number, "value": b"v"} for one in range(10)]
        sorting = Sorting(options, SCHEMA, "run")
        sorting.write(pa.RecordBatch.from_pylist(rows, schema=SCHEMA))
        files = sorting.close()
        begun = time.process_time()
        tables.commit(Offset.of(Range("t", one, number, number + 1) for one in range(10)), files, SCHEMA, number)
        taken.append((time.process_time() - begun) * 1000)
    found = {str(size): round(statistics.median(taken[max(0, size - 100) : size]), 2) for size in COMMITS}
    lake_report.save(f"cost by commits, {table_format}", {"cpu_ms": found})
