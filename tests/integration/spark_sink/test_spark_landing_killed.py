"""A query with `SparkLanding` whose processes are killed, against real brokers."""

import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from confluent_kafka import Producer
from deltalake import DeltaTable

from spark_sink.demo.cluster import Cluster
from spark_sink.lake.holes_and_doubles import verify
from tests.integration.spark_sink.tied import kill, launch, tree
from tests.waiting import wait_until

pytestmark = [pytest.mark.integration, pytest.mark.slow]
RECORDS, BAD = 60_000, 500


class Query:
    """A query that is started again and again.

    Args:
        servers: of the brokers.
        topic: the topic that it reads, with two partitions.
        root: of table and checkpoint.
    """

    def __init__(self, servers: str, topic: str, root: Path) -> None:
        self.table = root / "table"
        both = {"kafka.group.id": topic}
        self._sink = {**both, "path": str(self.table), "checkpointLocation": str(root / "checkpoint")}
        self._source = {
            **both,
            "kafka.bootstrap.servers": servers,
            "kafka.session.timeout.ms": "6000",
            "subscribe": topic,
            "positions": str(self.table),
            "valueFormat": "json",
            "valueSchema": '{"n": "bigint", "text": "string"}',
            "maxOffsetsPerTrigger": "5000",
        }
        self._log = root / "query.log"

    def start(self) -> "subprocess.Popen[bytes]":
        """Start it, with its JVM and Python workers."""
        command = [sys.executable, "-m", "tests.integration.spark_sink.landing_query"]
        return launch([*command, json.dumps(self._source), json.dumps(self._sink)], self._log)

    def kill_when(self, reached: Callable[[], object], what: str) -> None:
        """Run it until it comes to a point, and kill all its processes there."""
        process = self.start()
        try:
            wait_until(lambda: reached() or process.poll() is not None, 120, what)
            assert process.poll() is None, f"it ended before {what}: {self._log.read_text()[-2000:]}"
        finally:
            kill(tree(process.pid))
            process.wait()

    def finish(self) -> None:
        """Run it to its end."""
        process = self.start()
        try:
            assert process.wait(180) == 0, self._log.read_text()[-3000:]
        finally:
            kill(tree(process.pid))

    def folders(self) -> set[Path]:
        """Folders in which Spark writes."""
        return set(self.table.glob("spark-*"))

    def files(self) -> set[Path]:
        """Data files that were moved to the table, committed or not."""
        return set(self.table.glob("part-*.parquet"))


def test_every_record_is_once_in_table_or_quarantine_wherever_a_query_is_killed(
    cluster: Cluster, tmp_path: Path, topic: Callable[..., str]
) -> None:
    """While Spark writes, when its tasks have ended, when files are moved, and after commits."""
    name = topic("killed", partitions=2)
    producer = Producer({"bootstrap.servers": cluster.bootstrap_servers, "linger.ms": 5})
    for number in range(RECORDS):
        value = b"{" if number % (RECORDS // BAD) == 0 else json.dumps({"n": number, "text": "x" * 50}).encode()
        producer.produce(name, value, partition=number % 2)
        producer.poll(0)
    assert producer.flush(60) == 0
    query = Query(cluster.bootstrap_servers, name, tmp_path)

    query.kill_when(query.folders, "Spark writes")
    left = query.folders()
    query.kill_when(lambda: list((query.folders() - left or {query.table}).pop().glob("*/*.parquet")), "a task ends")
    before = query.files()
    query.kill_when(lambda: query.files() - before, "a file is moved")
    log = query.table / "_delta_log"
    query.kill_when(lambda: len(list(log.glob("*.json"))) > 4, "some batches are committed")
    query.finish()

    report = verify(str(query.table))
    assert (report.rows, report.duplicates, report.ok) == (RECORDS - BAD, 0, True), report
    rows = DeltaTable(str(query.table)).to_pyarrow_table(columns=["n", "seventh"])
    assert sorted(rows.column("n").to_pylist()) == [n for n in range(RECORDS) if n % (RECORDS // BAD)]
    assert DeltaTable(f"{query.table}_quarantine").to_pyarrow_table().num_rows == BAD
