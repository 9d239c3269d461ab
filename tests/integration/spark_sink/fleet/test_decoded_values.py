"""An agent and a job with claims decode JSON on real brokers; 3 % of the records are poison."""

import json
import subprocess
import sys
from pathlib import Path

import pytest
from confluent_kafka import Producer
from deltalake import DeltaTable

from spark_sink.demo.cluster import Cluster
from spark_sink.formats.quarantined_rows import quarantine_of
from spark_sink.lake.positions import positions
from spark_sink.lake.verification import verify
from spark_sink.sink.quarantine_replay import waiting
from tests.integration.spark_sink.fleet.fleet_process import (
    FleetProcesses,
    config,
    delete_topics,
    make_topics,
    wait_until,
)

pytestmark = pytest.mark.integration

SCHEMA = '{"id": "bigint"}'
RECORDS, EVERY = 1_000, 33  # each 33rd record is poison


def produce(servers: str, topic: str) -> set[int]:
    """Put records into one partition; the ids of the good ones."""
    producer = Producer({"bootstrap.servers": servers, "linger.ms": 20, "log_level": 0})
    for n in range(RECORDS):
        producer.produce(topic, b"{%d" % n if n % EVERY == 0 else json.dumps({"id": n}).encode(), partition=0)
    assert producer.flush(60) == 0
    return {n for n in range(RECORDS) if n % EVERY}


def arrived(table: Path, group: str) -> bool:
    """Whether the table's position is at the end of the log."""
    known = positions(str(table), group) if DeltaTable.is_deltatable(str(table)) else {}
    return sum(known.values()) >= RECORDS


def compare(table: Path, group: str, good: set[int]) -> None:
    """The good records are in the table, the others wait in its quarantine."""
    assert set(DeltaTable(str(table)).to_pyarrow_table(columns=["id"])["id"].to_pylist()) == good
    report = verify(str(table), group)
    assert report.ok
    assert report.rows == len(good)
    bad = DeltaTable(quarantine_of(str(table))).to_pyarrow_table(columns=["offset", "error_class"])
    assert sorted(bad["offset"].to_pylist()) == sorted(set(range(RECORDS)) - good)
    assert set(bad["error_class"].to_pylist()) == {"NotJson"}
    assert sum(part.num_rows for part in waiting(str(table), group)) == RECORDS - len(good)


def test_an_agent_decodes_values_and_quarantines_poison(cluster: Cluster, tmp_path: Path, name: str) -> None:
    """`value_format` in the file of a fleet."""
    topic, table = f"{name}.t", tmp_path / "lake" / "home"
    make_topics(cluster.bootstrap_servers, [topic])
    good = produce(cluster.bootstrap_servers, topic)
    values = f'value_format = "json"\nvalue_schema = \'{SCHEMA}\'\nunknown_fields = "quarantine"'
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
