"""Direct landing on real brokers: an agent as people run it, with decoded values and poison among them."""

import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from confluent_kafka import Producer
from deltalake import DeltaTable
from pyspark.sql import SparkSession
from pyspark.sql.streaming.query import StreamingQuery

from spark_sink import positions
from spark_sink.agent.agent_settings import AgentSettings
from spark_sink.agent.spark_agent import start
from spark_sink.demo.cluster import Cluster
from spark_sink.lake.holes_and_doubles import verify
from spark_sink.sink.quarantine.quarantine_replay import waiting

pytestmark = [pytest.mark.integration, pytest.mark.slow]

MakeTopic = Callable[..., str]

CONFIG = """
bootstrap_servers = "{servers}"
group = "{topic}"
table = "{root}/table"
checkpoint = "{root}/checkpoint"
subscribe = "{topic}"
trigger = "available-now"
master = "local[2]"
landing = "direct"
[source]
valueFormat = "json"
valueSchema = '{{"flight": "string", "delay": "bigint"}}'
[sink]
partitionBy = "partition"
"""


def test_an_agent_lands_decoded_records_and_keeps_the_poison(
    cluster: Cluster, topic: MakeTopic, producer: Producer, tmp_path: Path
) -> None:
    """Good records are columns of the table, bad ones wait in quarantine, and the exit code says that all is done."""
    name = topic("flights", partitions=2)
    poison = {3: b"{", 7: b'{"delay": "late"}', 11: b"\xff\xfe", 12: None}
    for number in range(40):
        value = poison.get(number, json.dumps({"flight": f"AA{number}", "delay": number}).encode())
        producer.produce(name, value=value, partition=number % 2)
    producer.flush()
    config = tmp_path / "sink.toml"
    config.write_text(CONFIG.format(servers=cluster.bootstrap_servers, topic=name, root=tmp_path))
    for _ in range(2):  # the second run finds nothing new
        command = [sys.executable, "-m", "spark_sink", "sink", "--config", str(config)]
        done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=300)
        assert done.returncode == 0, done.stderr[-3000:]
    report = verify(str(tmp_path / "table"))
    assert report.ok
    assert positions(str(tmp_path / "table"), name) == {(name, 0): 20, (name, 1): 20}
    rows = DeltaTable(str(tmp_path / "table")).to_pyarrow_table()
    good = {row["flight"]: row["delay"] for row in rows.to_pylist() if row["flight"] is not None}
    assert good == {f"AA{number}": number for number in range(40) if number not in poison}
    left = [row for part in waiting(str(tmp_path / "table"), name) for row in part.to_pylist()]
    assert rows.num_rows + len(left) == 40
    assert {3, 7, 11} <= {row["offset"] * 2 + row["partition"] for row in left}
    assert all(row["error_class"] and row["error_text"] and row["run_id"] for row in left)


def _start_without_filter(spark: SparkSession, settings: AgentSettings) -> StreamingQuery:
    """A query of a user's own with the options of an agent: the sink gets all rows of the source."""
    rows = spark.readStream.format("kafka-group").options(**settings.source_options(land=True)).load()
    writer = rows.writeStream.format(f"{settings.table_format}-exactly-once").options(**settings.sink_options())
    return writer.trigger(availableNow=True).start()


@pytest.mark.filterwarnings("ignore::ResourceWarning")
@pytest.mark.filterwarnings("ignore::DeprecationWarning")
@pytest.mark.parametrize("form", ["delta", pytest.param("iceberg", marks=pytest.mark.matrix)])
def test_spark_counts_the_records_that_its_tasks_land(  # noqa: PLR0913, PLR0917 -- fixtures
    spark: SparkSession, cluster: Cluster, topic: MakeTopic, producer: Producer, tmp_path: Path, form: str
) -> None:
    """`numInputRows`, and the rates and pages that Spark computes from it, would otherwise show the number of tasks."""
    for run, begin in ("agent", start), ("own", _start_without_filter):
        name = topic(run, partitions=2)
        for number in range(40):
            producer.produce(name, value=str(number), partition=number % 2)
        producer.flush()
        given = {
            "bootstrap_servers": cluster.bootstrap_servers,
            "group": name,
            "table": f"lake.raw.{run}" if form == "iceberg" else str(tmp_path / run / "table"),
            "table_format": form,
            "catalog": {"warehouse": str(tmp_path / "warehouse")} if form == "iceberg" else {},
            "checkpoint": str(tmp_path / run / "checkpoint"),
            "subscribe": name,
            "trigger": "available-now",
            "landing": "direct",
            "max_offsets_per_trigger": 15,
        }
        settings = AgentSettings.model_validate(given)
        query = begin(spark, settings)
        assert query.awaitTermination(180), "AvailableNow did not end"
        assert [one.numInputRows for one in query.recentProgress if one.numInputRows] == [15, 15, 10]
        report = verify(settings.address, name, settings.table_storage)
        assert (report.rows, report.ok) == (40, True)
