"""The same query on a Spark cluster: a standalone master and two workers, of which one is lost part-way."""

import json
import os
import re
import signal
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from pathlib import Path

import psutil
import pyspark
import pytest
from confluent_kafka import Producer

from spark_sink import positions
from spark_sink.demo.cluster import Cluster
from spark_sink.lake.holes_and_doubles import verify
from tests.integration.spark_sink.tied import kill, launch, tree

pytestmark = [pytest.mark.integration, pytest.mark.slow, pytest.mark.matrix]
MakeTopic = Callable[..., str]

# Cores of the Spark cluster: never as many as the driver's machine has.
CORES = 3 if len(os.sched_getaffinity(0)) != 3 else 4
BATCH = 2_000 * CORES  # records that are worth as many tasks
PARTITIONS, BATCHES = 4, 25
RECORDS = BATCH * BATCHES
MEMORY_MB = 512  # Spark refuses executors of less than 450


def _until(reached: Callable[[], object], what: str, log: Path, timeout_s: float = 240) -> None:
    deadline = time.monotonic() + timeout_s
    while not reached():
        assert time.monotonic() < deadline, f"{what} did not happen in time; {log.read_text()[-2000:]}"
        time.sleep(0.05)


def _says(log: Path, pattern: str) -> bool:
    return re.search(pattern, log.read_text()) is not None


class Standalone:
    """A master and workers with these numbers of cores, on ports that were free."""

    def __init__(self, root: Path, cores: Sequence[int]) -> None:
        self._root = root
        self._started: list[int] = []
        master = self._start("master", "org.apache.spark.deploy.master.Master", "--host", "127.0.0.1")
        _until(partial(_says, master, r"Starting Spark master at (spark://\S+)"), "a master", master)
        found = re.search(r"Starting Spark master at (spark://\S+)", master.read_text())
        assert found
        self.url = found[1]
        logs = []
        for worker, number in enumerate(cores):
            size = ["--cores", str(number), "--memory", f"{MEMORY_MB}m", "--work-dir", str(root / f"work-{worker}")]
            logs.append(self._start(f"worker-{worker}", "org.apache.spark.deploy.worker.Worker", *size, self.url))
        for log in logs:
            _until(partial(_says, log, "Successfully registered with master"), "a worker", log)
        self.workers = self._started[1:]

    def _start(self, name: str, java_class: str, *arguments: str) -> Path:
        home = Path(pyspark.__file__).parent
        environment = {
            **os.environ,
            "SPARK_HOME": str(home),
            "SPARK_LOCAL_IP": "127.0.0.1",
            "SPARK_DAEMON_MEMORY": "256m",
            "SPARK_DAEMON_JAVA_OPTS": "-XX:+UseSerialGC -XX:TieredStopAtLevel=1 -Xshare:auto",
        }
        log = self._root / f"{name}.log"
        ports = ["--port", "0", "--webui-port", "0"]
        process = launch([str(home / "bin" / "spark-class"), java_class, *ports, *arguments], log, environment)
        process.returncode = 0  # psutil reaps it
        self._started.append(process.pid)
        return log

    def python_workers(self, worker: int) -> list[psutil.Process]:
        """The Python processes that run tasks on a worker's machine."""
        return [one for one in tree(worker) if "python" in _name(one)]

    def end(self) -> None:
        """Kill all of it, executors first known to their worker."""
        kill([one for pid in self._started for one in tree(pid)])


def _name(process: psutil.Process) -> str:
    try:
        return process.name()
    except psutil.NoSuchProcess:
        return ""


@pytest.fixture
def standalone(tmp_path: Path) -> Iterator[Standalone]:
    """A Spark cluster that is gone when the test ends."""
    made = Standalone(tmp_path, (1, CORES - 1))
    yield made
    made.end()


def test_a_lost_worker_costs_no_record_and_doubles_none(
    standalone: Standalone, cluster: Cluster, topic: MakeTopic, producer: Producer, tmp_path: Path
) -> None:
    """A worker's machine dies, with the tasks that run on it: Spark runs them again, the table takes them once."""
    name = topic("ingest", partitions=PARTITIONS)
    for batch in range(BATCHES):
        for number in range(BATCH):
            producer.produce(name, value=b"%d" % (batch * BATCH + number), partition=number % PARTITIONS)
        producer.flush()
    command = [sys.executable, "-m", "spark_sink", "sink", "--bootstrap-servers", cluster.bootstrap_servers]
    command += ["--group", name, "--table", str(tmp_path / "table"), "--checkpoint", str(tmp_path / "checkpoint")]
    command += ["--subscribe", name, "--master", standalone.url, "--trigger", "0 seconds"]
    command += ["--spark", f"spark.executor.memory={MEMORY_MB}m", "--spark", "spark.driver.host=127.0.0.1"]
    command += ["--spark", "spark.executor.extraJavaOptions=-XX:+UseSerialGC", "--spark", f"spark.cores.max={CORES}"]
    # So few that many batches are still to come when the worker dies.
    command += ["--max-offsets-per-trigger", str(BATCH)]
    log = tmp_path / "agent.log"
    agent = launch(command, log)
    try:

        def came() -> int:
            assert agent.poll() is None, log.read_text()[-2000:]
            return sum(positions(str(tmp_path / "table"), name).values())

        _until(came, "a commit", log)
        _until(lambda: all(map(standalone.python_workers, standalone.workers)), "tasks on both workers", log)
        before = came()
        assert 0 < before < RECORDS, log.read_text()[-2000:]
        kill(tree(standalone.workers[0]))
        _until(lambda: came() == RECORDS, "the end of every partition", log)
        assert standalone.python_workers(standalone.workers[1]), "the other worker has done the rest"
        agent.send_signal(signal.SIGTERM)
        assert agent.wait(60) == 0, log.read_text()[-2000:]
    finally:
        kill(tree(agent.pid))
        agent.wait()
    report = verify(str(tmp_path / "table"))
    assert (report.rows, report.duplicates, report.missing) == (RECORDS, 0, 0)
    assert _files_by_commit(tmp_path / "table") == [CORES] * BATCHES, "a task for each core of the cluster"


def _files_by_commit(table: Path) -> list[int]:
    """Return how many files each commit with rows has added: each task writes one."""
    logs = [path.read_text().splitlines() for path in sorted((table / "_delta_log").glob("*.json"))]
    added = [sum(one.get("add", {}).get("dataChange", False) for one in map(json.loads, log)) for log in logs]
    return [files for files in added if files]
