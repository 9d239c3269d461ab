"""From one large topic into a table of either format: landed by the reading tasks or through Spark's rows.

The values are raw or decoded.
MB are those of keys and values in the topic; seconds are those of the batches (`triggerExecution`) of a warm session,
the wall time with the start of the reader's process beside them. AZIMUTH_BENCH_TIMES sets how often the flights are
written (10, 3.4 million records), AZIMUTH_BENCH_RUNS how often is measured after one run to warm up.
"""

import os
import shutil
import statistics
import time
import uuid
from collections.abc import Callable
from pathlib import Path

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.streaming.query import StreamingQuery

from spark_sink import positions
from spark_sink.agent.agent_settings import AVAILABLE_NOW, AgentSettings
from spark_sink.agent.spark_agent import start
from spark_sink.demo.cluster import Cluster
from spark_sink.lake.holes_and_doubles import verify
from tests.benchmarks.spark_report import save
from tests.benchmarks.spark_session import MARKS
from tests.benchmarks.spark_topics import delete, flights, one_large_topic

pytestmark = MARKS
TIMES = int(os.environ.get("AZIMUTH_BENCH_TIMES", "10"))
RUNS = int(os.environ.get("AZIMUTH_BENCH_RUNS", "3"))

Start = Callable[[SparkSession, AgentSettings], StreamingQuery]


def _with_sql(spark: SparkSession, settings: AgentSettings) -> StreamingQuery:
    """The query with a filter and two computed columns between source and sink."""
    rows: DataFrame = spark.readStream.format("kafka-group").options(**settings.source_options()).load()
    # The filter keeps every record, so that all figures here are of as many.
    rows = rows.where("_quarantine is not null or n >= 0").selectExpr(
        "*", "dep_delay > 15 as late", "concat(carrier, cast(flight as string)) as number"
    )
    writer = rows.writeStream.format("delta-exactly-once").options(**settings.sink_options())
    return writer.trigger(availableNow=True).start()


JSON = {"valueFormat": "json"}
ICEBERG = "raw into Iceberg, landed by the tasks"
WAYS: dict[str, tuple[Start, str, dict[str, str]]] = {
    "raw, landed by the tasks": (start, "direct", {}),
    ICEBERG: (start, "direct", {}),
    "raw, through Spark": (start, "rows", {}),
    "JSON, landed by the tasks": (start, "direct", JSON),
    "JSON, through Spark": (start, "rows", JSON),
    "JSON, SQL between": (_with_sql, "rows", JSON),
}


def test_one_large_topic_into_a_table(spark: SparkSession, cluster: Cluster, tmp_path: Path) -> None:
    """Interleaved; each run has a table of its own, and has every record."""
    records = flights()
    topic = one_large_topic(cluster, records, TIMES)
    bytes_ = TIMES * sum(len(key or b"") + len(value) for _, key, value in records)
    count = TIMES * len(records)
    found: dict[str, list[dict[str, float]]] = {name: [] for name in WAYS}
    for run in range(RUNS + 1):
        for name, (begin, landing, source) in WAYS.items():
            root = tmp_path / uuid.uuid4().hex
            flags = {
                "bootstrap_servers": cluster.bootstrap_servers,
                "group": root.name,
                "table": str(root / "table"),
                "checkpoint": str(root / "checkpoint"),
                "subscribe": topic,
                "trigger": AVAILABLE_NOW,
                "landing": landing,
                "source": source,
            }
            if name == ICEBERG:
                flags |= {"table": "lake.default.table", "table_format": "iceberg", "catalog": {"warehouse": str(root)}}
            settings = AgentSettings.load(None, flags)
            begun = time.perf_counter()
            query = begin(spark, settings)
            query.awaitTermination()
            wall = time.perf_counter() - begun
            assert sum(positions(settings.tables, settings.group, settings.table_storage).values()) == count
            if not run:
                report = verify(settings.address, storage_options=settings.table_storage)
                assert (report.rows, report.ok) == (count, True)
            seconds = sum(one["durationMs"]["triggerExecution"] for one in query.recentProgress) / 1000
            size = sum(one.stat().st_size for one in root.rglob("*.parquet"))
            if run:
                found[name].append({"batch_s": seconds, "wall_s": wall, "table_MB": size / 1e6})
            shutil.rmtree(root)
    delete(cluster, [topic])
    medians = {
        name: {part: round(statistics.median(one[part] for one in runs), 2) for part in runs[0]}
        for name, runs in found.items()
    }
    for one in medians.values():
        one["MB_per_s"] = round(bytes_ / 1e6 / one["batch_s"], 1)
    save(
        "landing, 1 topic, 6 partitions",
        {"records": count, "MB": round(bytes_ / 1e6, 1), "runs": RUNS, "ways": medians},
    )
