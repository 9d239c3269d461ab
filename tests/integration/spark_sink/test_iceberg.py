"""Iceberg tables on real brokers: an agent as people run it, read back by DuckDB and pyiceberg."""

import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import duckdb
import pytest
from confluent_kafka import Producer
from pyiceberg.catalog import load_catalog
from pyiceberg.table import Table

from spark_sink import positions
from spark_sink.demo.cluster import Cluster

pytestmark = [pytest.mark.integration, pytest.mark.slow]

MakeTopic = Callable[..., str]

CONFIG = """
bootstrap_servers = "{servers}"
group = "{topic}"
table = "lake.raw.events"
table_format = "iceberg"
checkpoint = "{root}/checkpoint"
subscribe = "{topic}"
trigger = "available-now"
master = "local[1]"
[catalog]
warehouse = "{root}/warehouse"
[source]
valueFormat = "json"
valueSchema = '{"flight": "string", "delay": "bigint"}'
"""


def _agent(root: Path, cluster: Cluster, topic: str) -> list[str]:
    config = root / "sink.toml"
    text = CONFIG.replace("{servers}", cluster.bootstrap_servers).replace("{topic}", topic)
    config.write_text(text.replace("{root}", str(root)))
    return [sys.executable, "-m", "spark_sink", "sink", "--config", str(config)]


def _table(root: Path, name: str) -> Table:
    """Return the table as any other reader opens it: pyiceberg, with the default catalog's own properties."""
    database = root / "warehouse" / "catalog.db"
    return load_catalog("lake", type="sql", uri=f"sqlite:///{database}").load_table(("raw", name))


def _queried(root: Path, name: str, query: str) -> list[Any]:
    """Query the table's files by DuckDB."""
    files = [task.file.file_path.removeprefix("file://") for task in _table(root, name).scan().plan_files()]
    return duckdb.execute(query.format(rows=f"read_parquet({files!r})")).fetchall()


def test_an_agent_lands_decoded_records_and_keeps_the_poison(
    cluster: Cluster, topic: MakeTopic, producer: Producer, tmp_path: Path
) -> None:
    """Good records are columns of the table, bad ones wait in quarantine, and a second run finds nothing new."""
    name = topic("flights", partitions=2)
    poison = {3: b"{", 7: b'{"delay": "late"}', 11: b"\xff\xfe"}
    for number in range(40):
        value = poison.get(number, json.dumps({"flight": f"AA{number}", "delay": number}).encode())
        producer.produce(name, value=value, partition=number % 2)
    producer.flush()
    command = _agent(tmp_path, cluster, name)
    for _ in range(2):
        done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=300)
        assert done.returncode == 0, done.stderr[-3000:]
    storage = {"catalog.warehouse": str(tmp_path / "warehouse")}
    assert positions("iceberg://lake.raw.events", name, storage) == {(name, 0): 20, (name, 1): 20}
    good = dict(_queried(tmp_path, "events", "select flight, delay from {rows}"))
    assert good == {f"AA{number}": number for number in range(40) if number not in poison}
    bad = _queried(tmp_path, "events_quarantine", 'select "offset" * 2 + "partition" from {rows}')
    assert sorted(bad) == [(3,), (7,), (11,)]
