"""The README's query through Spark Connect, on a local server from pyspark's own jars."""

import os
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from confluent_kafka import Producer
from deltalake import DeltaTable

from spark_sink.demo.cluster import Cluster
from spark_sink.lake.iceberg.catalogs import open_catalog
from tests.integration.spark_sink.conftest import MakeTopic

pytestmark = [pytest.mark.integration, pytest.mark.slow]

DOCS = Path(__file__).parents[3]
README = DOCS / "README.md"
LANDING = DOCS / "docs" / "how-to" / "lake.md"
LISTENER = """from spark_sink import QueryMetrics
listener = QueryMetrics()
spark.streams.addListener(listener)
"""
COUNTED = """
import time
from prometheus_client import REGISTRY

def counted():
    return REGISTRY.get_sample_value("azimuth_query_rows_total", {"query": str(query.id)}) or 0

deadline = time.monotonic() + 60
while counted() < 10 and time.monotonic() < deadline:  # Spark calls its listeners from another thread
    time.sleep(0.2)
print("counted", counted())
spark.streams.removeListener(listener)
"""


def _iceberg(root: Path) -> dict[str, str]:
    """What the README says to change for a table in Iceberg."""
    catalog = f'.option("catalog.warehouse", "{root / "warehouse"}")'
    return {
        "DeltaExactlyOnceSink": "IcebergExactlyOnceSink",
        '"delta-exactly-once"': '"iceberg-exactly-once"',
        '.option("positions", table)': f'.option("positions", "iceberg://lake.raw.flights"){catalog}',
        '.option("path", table)': f'.option("path", "lake.raw.flights"){catalog}',
    }


@pytest.mark.parametrize("kind", ["delta", pytest.param("iceberg", marks=pytest.mark.matrix)])
def test_the_snippet_of_the_readme_runs_through_spark_connect(
    cluster: Cluster, topic: MakeTopic, producer: Producer, tmp_path: Path, kind: str
) -> None:
    """Only the session differs; the formats are registered in the server, which then runs source and sink.

    The client counts the rows.
    """
    pytest.importorskip("grpc", reason="Spark Connect needs grpcio, grpcio-status and googleapis-common-protos")
    pytest.importorskip("grpc_status", reason="Spark Connect needs grpcio-status")
    name = topic("flights", partitions=2)
    for number in range(10):
        producer.produce(name, value=str(number), partition=number % 2)
    producer.flush()
    snippet = _snippets(README)[3]
    changed = {
        "SparkSession.builder.getOrCreate()": 'SparkSession.builder.remote("local[2]").getOrCreate()',
        "localhost:9092": cluster.bootstrap_servers,
        r'r"flights\..*"': repr(re.escape(name)),
        '"ingest"': repr(name),
        "/tmp/azimuth": str(tmp_path),  # noqa: S108 -- the README's
        "query = (": f"{LISTENER}query = (",
        **(_iceberg(tmp_path) if kind == "iceberg" else {}),
    }
    assert "counted 10.0" in _run(snippet, changed, tmp_path, COUNTED)
    assert sorted(_keys(tmp_path, kind)) == [(n, at) for n in range(2) for at in range(5)]


def test_spark_landing_runs_through_spark_connect(
    cluster: Cluster, topic: MakeTopic, producer: Producer, tmp_path: Path
) -> None:
    """The server calls the function in another process; its write has no job group of the query."""
    pytest.importorskip("grpc", reason="Spark Connect needs grpcio, grpcio-status and googleapis-common-protos")
    pytest.importorskip("grpc_status", reason="Spark Connect needs grpcio-status")
    name = topic("delays", partitions=2)
    for number in range(10):
        producer.produce(name, value=f'{{"tail": "N1", "delay": {number}}}', partition=number % 2)
    producer.flush()
    (snippet,) = (one for one in _snippets(LANDING) if "SparkLanding(" in one)
    changed = {
        "SparkSession.builder.getOrCreate()": 'SparkSession.builder.remote("local[2]").getOrCreate()',
        "localhost:9092": cluster.bootstrap_servers,
        "flights.JFK-LAX": name,
        '"kafka.group.id": "howto-delays"': f'"kafka.group.id": "{name}"',
        "/tmp/azimuth/howto-delays": f"{tmp_path}/flights",  # noqa: S108 -- the page's
    }
    _run(snippet, changed, tmp_path)
    assert sorted(_keys(tmp_path, "delta")) == [(n, at) for n in range(2) for at in range(5)]


def _snippets(page: Path) -> list[str]:
    return re.findall(r"^```python\n(.*?)^```", page.read_text(encoding="utf-8"), flags=re.DOTALL | re.MULTILINE)


def _run(snippet: str, changed: dict[str, str], folder: Path, after: str = "") -> str:
    """Run a snippet with some changes, and check that its session is one of Spark Connect; return what it prints."""
    for old, new in changed.items():
        assert old in snippet
        snippet = snippet.replace(old, new)
    environment = os.environ | {"PYSPARK_PYTHON": sys.executable, "SPARK_LOCAL_IP": "127.0.0.1"}
    done = subprocess.run(
        [sys.executable, "-c", f"{snippet}\n{after}\nprint(type(spark).__module__)"],
        cwd=folder,
        env=environment,
        capture_output=True,
        text=True,
        timeout=400,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-3000:]
    assert "pyspark.sql.connect.session" in done.stdout
    return done.stdout


def _keys(root: Path, kind: str) -> Iterator[tuple[int, int]]:
    if kind == "iceberg":
        found = open_catalog("lake", {"catalog.warehouse": str(root / "warehouse")}).load_table(("raw", "flights"))
        rows = found.scan(selected_fields=("partition", "offset")).to_arrow()
    else:
        rows = DeltaTable(str(root / "flights")).to_pyarrow_table(columns=["partition", "offset"])
    for row in rows.to_pylist():
        yield row["partition"], row["offset"]
