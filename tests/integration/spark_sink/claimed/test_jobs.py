"""Two jobs on real brokers share partitions by claims; one is killed, one is stopped: no record twice, none missing."""

import os
import signal
import subprocess
import sys
import uuid
from collections.abc import Iterator
from pathlib import Path

import pytest
from confluent_kafka import Producer

from assignors.claims import standings
from spark_sink.demo.cluster import Cluster
from spark_sink.lake.holes_and_doubles import verify
from spark_sink.lake.positions_in_delta_log import positions
from tests.integration.spark_sink.chaos.lakes import unlocked
from tests.integration.spark_sink.fleet.fleet_process import (
    delete_topics,
    make_again,
    make_topics,
    send,
    wait_until,
)

pytestmark = [pytest.mark.integration, pytest.mark.long]

TOPICS, PARTITIONS, RECORDS = 6, 4, 2_000
LEASE_S = 3.0


class Jobs:
    """Processes of one set."""

    def __init__(self, name: str, root: Path, cluster: Cluster) -> None:
        self.database = f"sqlite:///{root}/claims.db"
        self.table = str(root / "table")
        self._root = root
        self._command = [sys.executable, "-m", "spark_sink", "claims", "run", "--group", name, "--table", self.table]
        self._command += ["--database", self.database, "--bootstrap-servers", cluster.bootstrap_servers]
        self._command += ["--subscribe-pattern", f"{name}[.].*", "--lease-s", str(LEASE_S), "--partitions", "8"]
        self._command += ["--records", "2000", "--longest-s", "0.5"]
        self.running: dict[str, subprocess.Popen[bytes]] = {}

    def start(self, owner: str) -> None:
        """Start a job."""
        with (self._root / f"{owner}.log").open("ab") as log:
            self.running[owner] = subprocess.Popen([*self._command, "--owner", owner], stdout=log, stderr=log)

    def stop(self, owner: str) -> None:
        """SIGSTOP a job where it does not hold SQLite's one lock: with it, it would keep all the others waiting."""
        while True:
            self.running[owner].send_signal(signal.SIGSTOP)
            if unlocked(Path(self.database.removeprefix("sqlite:///"))):
                return
            self.running[owner].send_signal(signal.SIGCONT)

    def logs(self) -> str:
        """The output of the jobs."""
        return "\n".join(log.read_text()[-2000:] for log in self._root.glob("*.log"))

    def rows(self, name: str) -> int:
        """In the table, as its positions say: every log begins at 0. A job that ended by itself is a fault."""
        assert self.running["lasting"].poll() is None, self.logs()
        return sum(positions(self.table, name).values())


@pytest.fixture
def name(cluster: Cluster) -> Iterator[str]:
    """Of a set of jobs with topics of its own."""
    found = f"claimed-{uuid.uuid4().hex[:6]}"
    topics = [f"{found}.{n}" for n in range(TOPICS)]
    make_topics(cluster.bootstrap_servers, topics, PARTITIONS)
    yield found
    delete_topics(cluster.bootstrap_servers, topics)


def produce(cluster: Cluster, name: str) -> int:
    """Put records into each partition; how many in all."""
    producer = Producer({"bootstrap.servers": cluster.bootstrap_servers, "linger.ms": 50, "log_level": 0})
    for n in range(RECORDS):
        for topic in range(TOPICS):
            producer.produce(f"{name}.{topic}", str(n).encode(), partition=n % PARTITIONS)
        producer.poll(0)
    assert producer.flush(60) == 0
    return RECORDS * TOPICS


def test_a_killed_and_a_stopped_job_double_nothing_and_lose_nothing(
    name: str, cluster: Cluster, tmp_path: Path
) -> None:
    """Of three jobs one gets SIGKILL and one SIGSTOP in the middle; the last brings in the rest, the zombie no row."""
    sent = produce(cluster, name)
    jobs = Jobs(name, tmp_path, cluster)
    try:
        for owner in ("killed", "stopped", "lasting"):
            jobs.start(owner)
        wait_until(lambda: jobs.rows(name) > 0, 180, "the first rows", jobs.logs)
        jobs.stop("stopped")
        os.kill(jobs.running["killed"].pid, signal.SIGKILL)
        sent += produce(cluster, name)
        wait_until(lambda: jobs.rows(name) >= sent, 180, "all rows in the table", jobs.logs)
        jobs.running["stopped"].send_signal(signal.SIGCONT)
        sent += produce(cluster, name)
        wait_until(lambda: jobs.rows(name) >= sent, 180, "all rows in the table, again", jobs.logs)
        for owner in ("stopped", "lasting"):
            jobs.running[owner].terminate()
        assert [jobs.running[owner].wait(60) for owner in ("stopped", "lasting")] == [0, 0], jobs.logs()
    finally:
        for job in jobs.running.values():
            job.kill()
            job.wait()
    report = verify(jobs.table, name)
    assert (report.rows, report.duplicates, report.missing) == (sent, 0, 0), jobs.logs()
    found = standings(jobs.database)
    assert len(found) == TOPICS * PARTITIONS
    assert sum(one.committed_offset or 0 for one in found) == sent
    assert not [one for one in found if one.owner and "lasting" in one.owner]


@pytest.mark.slow
def test_topics_made_anew_while_a_job_runs_are_read_from_their_beginning(
    name: str, cluster: Cluster, tmp_path: Path
) -> None:
    """A job knows the topics of half a minute ago: no record is there twice, missing, or under the old name."""
    topics = [f"{name}.{n}" for n in range(TOPICS)]
    jobs = Jobs(name, tmp_path, cluster)
    try:
        jobs.start("lasting")
        send(cluster.bootstrap_servers, dict.fromkeys(topics, 10))
        wait_until(lambda: jobs.rows(name) == 10 * TOPICS, 60, "all arrived", jobs.logs)
        delete_topics(cluster.bootstrap_servers, topics[:3])
        make_again(cluster.bootstrap_servers, topics[:3], PARTITIONS)
        send(cluster.bootstrap_servers, {**dict.fromkeys(topics[:3], 40), topics[3]: 5})
        wait_until(lambda: jobs.rows(name) >= 10 * TOPICS + 125, 120, "the new topics' records", jobs.logs)
        jobs.running["lasting"].terminate()
        assert jobs.running["lasting"].wait(60) == 0, jobs.logs()
    finally:
        for job in jobs.running.values():
            job.kill()
            job.wait()
    report = verify(jobs.table, name)
    assert (report.rows, report.duplicates, report.missing) == (10 * TOPICS + 125, 0, 0)
    found = {one.topic: one.rows for one in report.findings if one.rows}
    assert [found.pop(topic) for topic in topics] == [10, 10, 10, 15, 10, 10]
    assert list(found.values()) == [40] * 3
