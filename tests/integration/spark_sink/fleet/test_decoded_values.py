"""An agent and a job with claims decode JSON on real brokers; 3 % of the records are poison, one is a tombstone."""

import json
import subprocess
import sys
from pathlib import Path

import pyarrow as pa
import pytest
from confluent_kafka import Producer
from deltalake import DeltaTable

from spark_sink.demo.cluster import Cluster
from spark_sink.formats.quarantine_addresses import quarantine_of
from spark_sink.lake.holes_and_doubles import verify
from spark_sink.lake.iceberg.catalogs import open_catalog
from spark_sink.lake.positions_in_delta_log import positions
from spark_sink.sink.quarantine.quarantine_replay import waiting
from tests.integration.spark_sink.fleet.fleet_process import (
    FleetProcesses,
    config,
    delete_topics,
    make_topics,
    wait_until,
)

pytestmark = [pytest.mark.integration, pytest.mark.long]

SCHEMA = '{"id": "bigint"}'
RECORDS, EVERY = 1_000, 33  # each 33rd record is poison
TOMBSTONE = 500

Rows = dict[int, tuple[bytes, int | None]]  # key and id, by offset


def produce(servers: str, topic: str) -> Rows:
    """Put records into one partition; the rows of the good ones."""
    producer = Producer({"bootstrap.servers": servers, "linger.ms": 20, "log_level": 0})
    for n in range(RECORDS):
        value = b"{%d" % n if n % EVERY == 0 else json.dumps({"id": n}).encode()
        producer.produce(topic, None if n == TOMBSTONE else value, b"k%d" % n, partition=0)
    assert producer.flush(60) == 0
    return {n: (b"k%d" % n, None if n == TOMBSTONE else n) for n in range(RECORDS) if n % EVERY}


def rows_of(table: pa.Table) -> Rows:
    """The rows of a table."""
    return {row["offset"]: (row["key"], row["id"]) for row in table.select(["offset", "key", "id"]).to_pylist()}


def arrived(table: Path, group: str) -> bool:
    """Whether the table's position is at the end of the log."""
    known = positions(str(table), group) if DeltaTable.is_deltatable(str(table)) else {}
    return sum(known.values()) >= RECORDS


def compare(table: Path, group: str, good: Rows) -> None:
    """The good records are in the table, with the tombstone's key, and the others wait in its quarantine."""
    assert rows_of(DeltaTable(str(table)).to_pyarrow_table()) == good
    report = verify(str(table), group)
    assert report.ok
    assert report.rows == len(good)
    bad = DeltaTable(quarantine_of(str(table))).to_pyarrow_table(columns=["offset", "error_class"])
    assert sorted(bad["offset"].to_pylist()) == sorted(set(range(RECORDS)) - good.keys())
    assert set(bad["error_class"].to_pylist()) == {"NotJson"}
    assert sum(part.num_rows for part in waiting(str(table), group)) == RECORDS - len(good)


def test_an_agent_decodes_values_and_quarantines_poison(cluster: Cluster, tmp_path: Path, name: str) -> None:
    """`value_format` in the file of a fleet."""
    topic, table = f"{name}.t", tmp_path / "lake" / "home"
    make_topics(cluster.bootstrap_servers, [topic])
    good = produce(cluster.bootstrap_servers, topic)
    values = f'value_format = "json"\nvalue_schema = \'{SCHEMA}\'\nvalue_null = "keep"\nunknown_fields = "quarantine"'
    with FleetProcesses(tmp_path, config(name, tmp_path, cluster, values)) as fleet:
        fleet.start("a")
        wait_until(lambda: arrived(table, name), 120, "all arrived", lambda: fleet.log("a"))
        assert fleet.stop() == {"a": 0}
    compare(table, name, good)
    delete_topics(cluster.bootstrap_servers, [topic])


def test_a_job_with_claims_decodes_values_and_quarantines_poison(cluster: Cluster, tmp_path: Path, name: str) -> None:
    """The same by the flags of `azimuth claims run`."""
    topic, table, log = f"{name}.t", tmp_path / "table", tmp_path / "job.log"
    make_topics(cluster.bootstrap_servers, [topic])
    good = produce(cluster.bootstrap_servers, topic)
    command = [sys.executable, "-m", "spark_sink", "claims", "run", "--group", name, "--table", str(table)]
    command += ["--database", f"sqlite:///{tmp_path}/claims.db", "--bootstrap-servers", cluster.bootstrap_servers]
    command += ["--subscribe", topic, "--longest-s", "0.5", "--value-format", "json", "--value-schema", SCHEMA]
    command += ["--value-null", "keep"]
    with log.open("wb") as out:
        job = subprocess.Popen(command, stdout=out, stderr=out)
    try:
        wait_until(lambda: arrived(table, name), 120, "all arrived", log.read_text)
        job.terminate()
        assert job.wait(60) == 0, log.read_text()
    finally:
        job.kill()
        job.wait()
    compare(table, name, good)
    delete_topics(cluster.bootstrap_servers, [topic])


def compare_iceberg(root: Path, group: str, good: Rows) -> None:
    """The same for an Iceberg table of the catalog in this folder."""
    storage = {"catalog.warehouse": str(root / "warehouse")}
    report = verify("iceberg://lake.raw.home", group, storage)
    assert (report.ok, report.rows) == (True, len(good))
    catalog = open_catalog("lake", storage)
    assert rows_of(catalog.load_table("raw.home").scan().to_arrow()) == good
    bad = catalog.load_table("raw.home_quarantine").scan().to_arrow()
    assert sorted(bad["offset"].to_pylist()) == sorted(set(range(RECORDS)) - good.keys())


def arrived_in_iceberg(root: Path, group: str) -> bool:
    """Whether the position of the Iceberg table is at the end of the log."""
    if not (root / "warehouse" / "catalog.db").exists():
        return False
    known = positions("iceberg://lake.raw.home", group, {"catalog.warehouse": str(root / "warehouse")})
    return sum(known.values()) >= RECORDS


def test_an_agent_writes_an_iceberg_table(cluster: Cluster, tmp_path: Path, name: str) -> None:
    """`table_format` and `catalog` in the file of a fleet."""
    topic = f"{name}.t"
    make_topics(cluster.bootstrap_servers, [topic])
    good = produce(cluster.bootstrap_servers, topic)
    values = f'value_format = "json"\nvalue_schema = \'{SCHEMA}\'\nvalue_null = "keep"\ntable_format = "iceberg"'
    catalog = f'[catalog]\nwarehouse = "{tmp_path}/warehouse"'
    file = config(name, tmp_path, cluster, f"{values}\n{catalog}")
    file = file.replace(f"{tmp_path}/lake/{{cluster}}", "lake.raw.{cluster}")
    with FleetProcesses(tmp_path, file) as fleet:
        fleet.start("a")
        wait_until(lambda: arrived_in_iceberg(tmp_path, name), 180, "all arrived", lambda: fleet.log("a"))
        assert fleet.stop() == {"a": 0}
    compare_iceberg(tmp_path, name, good)
    delete_topics(cluster.bootstrap_servers, [topic])


def test_a_job_with_claims_writes_an_iceberg_table(cluster: Cluster, tmp_path: Path, name: str) -> None:
    """The same by the flags of `azimuth claims run`; with `--once` it ends when all is in the table."""
    topic, log = f"{name}.t", tmp_path / "job.log"
    make_topics(cluster.bootstrap_servers, [topic])
    good = produce(cluster.bootstrap_servers, topic)
    command = [sys.executable, "-m", "spark_sink", "claims", "run", "--group", name, "--table", "lake.raw.home"]
    command += ["--table-format", "iceberg", "--catalog", f"warehouse={tmp_path}/warehouse", "--once"]
    command += ["--database", f"sqlite:///{tmp_path}/claims.db", "--bootstrap-servers", cluster.bootstrap_servers]
    command += ["--subscribe", topic, "--longest-s", "0.5", "--value-format", "json", "--value-schema", SCHEMA]
    command += ["--value-null", "keep"]
    with log.open("wb") as out:
        done = subprocess.run(command, stdout=out, stderr=out, check=False, timeout=300)
    assert done.returncode == 0, log.read_text()
    compare_iceberg(tmp_path, name, good)
    delete_topics(cluster.bootstrap_servers, [topic])
