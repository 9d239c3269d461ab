"""The ordinary Spark query: JSON, a filter and two computed columns, beside Spark's own connector.

`SparkLanding` and the connector with `from_json` write by the same Parquet writer with the same codec, interleaved in
one warm session: the connector into Parquet files alone, and into a Delta table by Delta's own writer. The sink's
tasks, which take the rows into Python, stand beside them. MB are those of keys and values in the topic; seconds are
those of the batches (`triggerExecution`), and the wall time. The tables of the run to warm up are compared, every
column of every row. AZIMUTH_BENCH_TIMES sets how often the flights are written (10, 3.4 million records),
AZIMUTH_BENCH_RUNS how often is measured after that run.
"""

import os
import shutil
import statistics
import time
import uuid
from collections.abc import Callable
from functools import partial
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.dataset as pa_dataset
import pytest
from deltalake import DeltaTable
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.streaming.query import StreamingQuery
from pyspark.sql.streaming.readwriter import DataStreamWriter

from spark_sink import SparkLanding
from spark_sink.demo.cluster import Cluster
from tests.benchmarks.spark_peer_jars import delta_jars, peer_jars
from tests.benchmarks.spark_report import save
from tests.benchmarks.spark_session import MARKS
from tests.benchmarks.spark_topics import delete, flights, one_large_topic

pytestmark = MARKS
TIMES = int(os.environ.get("AZIMUTH_BENCH_TIMES", "10"))
RUNS = int(os.environ.get("AZIMUTH_BENCH_RUNS", "3"))
OF_RECORD = ("topic", "partition", "offset", "timestamp", "key")
NOT_VALUES = {*OF_RECORD, "_rescued", "_quarantine"}
COMPUTED = ("*", "dep_delay > 15 as late", "concat(carrier, cast(flight as string)) as number")
PARQUET, DELTA = "jvm, from_json, Parquet", "jvm, from_json, Delta"

Start = Callable[[Path], StreamingQuery]


class Queries:
    """The same query in several ways, each run with a table of its own."""

    def __init__(self, spark: SparkSession, servers: str, topic: str) -> None:
        self._spark, self._topic = spark, topic
        self._servers = {"kafka.bootstrap.servers": servers, "subscribe": topic, "startingOffsets": "earliest"}
        # As the sink writes: the codec is a setting of the comparison, not its object.
        spark.conf.set("spark.sql.parquet.compression.codec", "zstd")
        spark.conf.set("parquet.compression.codec.zstd.level", "1")
        # Delta's SQL commands are an extension of the whole session, and an append needs none of them.
        spark.conf.set("spark.databricks.delta.requiredSparkConfsCheck.enabled", "false")
        self._values: dict[str, str] = {}

    @property
    def columns(self) -> list[str]:
        """The columns that every way writes, once a query of our source was started."""
        return [*OF_RECORD, *self._values, "late", "number"]

    def ways(self) -> dict[str, Start]:
        """The ways that can be measured here, by their names in the report; one of our own comes first."""
        found: dict[str, Start] = {"SparkLanding": self.by_spark, "sink's tasks": self.by_tasks}
        if peer_jars():
            found[PARQUET] = partial(self.by_connector, format="parquet")
            if delta_jars():
                found[DELTA] = partial(self.by_connector, format="delta")
        return found

    def by_spark(self, root: Path) -> StreamingQuery:
        """The source's decoder, Spark's writer, and our commit."""
        options = {**self._options(root), "path": str(root / "table")}
        land = SparkLanding("delta-exactly-once", options)
        return self._start(self._decoded(root).writeStream.foreachBatch(land), root)

    def by_tasks(self, root: Path) -> StreamingQuery:
        """The source's decoder, and the sink's tasks in Python."""
        writer = self._decoded(root).writeStream.format("delta-exactly-once").options(**self._options(root))
        return self._start(writer.option("path", str(root / "table")), root)

    def by_connector(self, root: Path, format: str) -> StreamingQuery:  # noqa: A002 -- Spark's word
        """Spark's own connector and decoder, into a format of the JVM's; it does not know which records are bad."""
        options = {**self._servers, "kafka.fetch.max.wait.ms": "10"}
        rows = self._spark.readStream.format("kafka").options(**options).load()
        fields = ", ".join(f"{name} {type_}" for name, type_ in self._values.items())
        rows = rows.selectExpr(*OF_RECORD, f"from_json(cast(value as string), '{fields}') as v")
        rows = rows.selectExpr(*OF_RECORD, "v.*").where("n >= 0")
        writer = rows.selectExpr(*COMPUTED).writeStream.format(format).option("path", str(root / "table"))
        return self._start(writer, root)

    def _decoded(self, root: Path) -> DataFrame:
        options = {**self._servers, "kafka.group.id": root.name, "valueFormat": "json"}
        rows = self._spark.readStream.format("kafka-group").options(**options).load()
        self._values = {one.name: one.dataType.simpleString() for one in rows.schema if one.name not in NOT_VALUES}
        # The filter keeps every record, so that all figures here are of as many.
        return rows.where("_quarantine is not null or n >= 0").selectExpr(*COMPUTED)

    def _options(self, root: Path) -> dict[str, str]:
        return {"kafka.group.id": root.name, "checkpointLocation": str(root / "checkpoint")}

    def _start(self, writer: DataStreamWriter, root: Path) -> StreamingQuery:
        writer = writer.option("checkpointLocation", str(root / "checkpoint"))
        return writer.trigger(availableNow=True).start()


def rows_of(root: Path, columns: list[str]) -> pa.Table:
    """What a query has written, in the order of the offsets."""
    table = root / "table"
    if (table / "_delta_log").is_dir():
        found = DeltaTable(str(table)).to_pyarrow_table(columns=columns)
    else:
        # Spark stores a time of its own writer's default in nanoseconds without a zone.
        found = pa_dataset.dataset(table, format="parquet", exclude_invalid_files=True).to_table(columns=columns)
        at = found.schema.get_field_index("timestamp")
        times = pc.cast(found.column("timestamp"), pa.timestamp("us")).cast(pa.timestamp("us", "UTC"))
        found = found.set_column(at, "timestamp", times)
    return found.sort_by([("partition", "ascending"), ("offset", "ascending")])


def test_json_with_sql_between(spark: SparkSession, cluster: Cluster, tmp_path: Path) -> None:
    """>= 1.5 times the connector's rate into Parquet files, and the same rows."""
    records = flights()
    topic = one_large_topic(cluster, records, TIMES)
    megabytes = TIMES * sum(len(key or b"") + len(value) for _, key, value in records) / 1e6
    queries = Queries(spark, cluster.bootstrap_servers, topic)
    ways = queries.ways()
    found: dict[str, list[dict[str, float]]] = {name: [] for name in ways}
    reference: pa.Table | None = None
    for run in range(RUNS + 1):
        for name, start in ways.items():
            root = tmp_path / uuid.uuid4().hex
            seconds = _run(start, root)
            if run:
                found[name].append(seconds)
            else:
                rows = rows_of(root, queries.columns)
                assert len(rows) == TIMES * len(records), name
                reference = rows if reference is None else reference
                assert rows.cast(reference.schema).equals(reference), name
                del rows
            shutil.rmtree(root)
        reference = None
    delete(cluster, [topic])
    medians = {
        name: {part: round(statistics.median(one[part] for one in runs), 2) for part in runs[0]}
        for name, runs in found.items()
    }
    for one in medians.values():
        one["MB_per_s"] = round(megabytes / one["batch_s"], 1)
    figures = {"MB": round(megabytes, 1), "runs": RUNS, "ways": medians}
    for title, peer in {"times_faster_than_jvm": PARQUET, "times_faster_than_jvm_with_delta": DELTA}.items():
        if peer in medians:
            figures[title] = {name: medians[peer]["batch_s"] / one["batch_s"] for name, one in medians.items()}
    save("JSON with SQL between", {"records": TIMES * len(records), **figures})
    if DELTA not in medians:
        pytest.skip("the jars of Spark's connector or of Delta could not be had: not every peer was measured")


def _run(start: Start, root: Path) -> dict[str, float]:
    begun = time.perf_counter()
    query = start(root)
    query.awaitTermination()
    wall = time.perf_counter() - begun
    seconds = sum(one["durationMs"]["triggerExecution"] for one in query.recentProgress) / 1000
    return {"batch_s": seconds, "wall_s": wall}
