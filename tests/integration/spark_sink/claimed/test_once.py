"""`azimuth claims run --once`, as cron runs it: real processes, real brokers, and their exit codes."""

import os
import signal
import subprocess
import sys
import uuid
from collections.abc import Iterator
from pathlib import Path

import pytest

from assignors.claims import standings
from spark_sink.demo.cluster import Cluster
from spark_sink.lake.holes_and_doubles import verify
from spark_sink.lake.positions_in_delta_log import positions
from tests.integration.spark_sink.fleet.fleet_process import Feed, delete_topics, make_topics, send, wait_until

pytestmark = pytest.mark.integration

TOPICS, PARTITIONS, RECORDS = 4, 2, 500


@pytest.fixture
def name(cluster: Cluster) -> Iterator[str]:
    """Of a set of jobs with topics of its own, each with records in its first partition."""
    found = f"once-{uuid.uuid4().hex[:6]}"
    topics = [f"{found}.{n}" for n in range(TOPICS)]
    make_topics(cluster.bootstrap_servers, topics, PARTITIONS)
    send(cluster.bootstrap_servers, dict.fromkeys(topics, RECORDS))
    yield found
    delete_topics(cluster.bootstrap_servers, topics)


class Crontab:
    """Jobs of one set."""

    def __init__(self, name: str, root: Path, cluster: Cluster, table: str = "table") -> None:
        self.name, self.table = name, str(root / table)
        self.database = f"sqlite:///{root}/claims.db"
        self._log = root / "jobs.log"
        self._command = [sys.executable, "-m", "spark_sink", "claims", "run", "--group", name, "--table", self.table]
        self._command += ["--database", self.database, "--bootstrap-servers", cluster.bootstrap_servers]
        self._command += ["--subscribe-pattern", f"{name}[.].*", "--longest-s", "3000", "--lease-s", "4", "--once"]

    def start(self, *flags: str) -> subprocess.Popen[bytes]:
        """Start a job."""
        with self._log.open("ab") as log:
            return subprocess.Popen([*self._command, *flags], stdout=log, stderr=log)

    def code(self, *flags: str) -> int:
        """Run a job to its end."""
        return self.start(*flags).wait(180)

    def log(self) -> str:
        """The output of all jobs."""
        return self._log.read_text()

    def read(self) -> int:
        """The sum of the table's positions."""
        try:
            return sum(positions(self.table, self.name).values())
        except Exception:  # noqa: BLE001 -- the table is not there yet, or half made
            return 0

    def held(self) -> list[str]:
        """The partitions that a job holds."""
        return [one.topic for one in standings(self.database) if one.held]


def test_each_run_reads_what_was_there_and_ends_with_0(cluster: Cluster, tmp_path: Path, name: str) -> None:
    """Also if it is not due for an hour; no claim stays."""
    jobs = Crontab(name, tmp_path, cluster)
    for turn in (1, 2):
        assert jobs.code("--max-runtime", "150") == 0, jobs.log()
        report = verify(jobs.table, name)
        assert (report.rows, report.duplicates, report.missing) == (turn * RECORDS * TOPICS, 0, 0), jobs.log()
        assert not jobs.held()
        if turn == 1:
            send(cluster.bootstrap_servers, {f"{name}.{n}": RECORDS for n in range(TOPICS)})
    assert jobs.code() == 0, jobs.log()


def test_a_run_ends_while_records_keep_coming(cluster: Cluster, tmp_path: Path, name: str) -> None:
    """They are the next run's."""
    jobs = Crontab(name, tmp_path, cluster)
    with Feed({cluster.bootstrap_servers: [f"{name}.0"]}, 0.02):
        assert jobs.code("--max-runtime", "150", "--worth-records", "1") == 0, jobs.log()
    assert jobs.read() >= RECORDS * TOPICS


def test_the_end_of_the_time_is_3_and_the_next_run_goes_on(cluster: Cluster, tmp_path: Path, name: str) -> None:
    """Nothing is held, lost or doubled."""
    jobs = Crontab(name, tmp_path, cluster)
    assert jobs.code("--max-runtime", "0.1") == 3, jobs.log()
    assert "the time is over" in jobs.log()
    assert not jobs.held() if Path(jobs.database.removeprefix("sqlite:///")).exists() else True
    assert jobs.code() == 0, jobs.log()
    report = verify(jobs.table, name)
    assert (report.rows, report.duplicates, report.missing) == (RECORDS * TOPICS, 0, 0)


def test_a_killed_run_beside_another_holds_up_only_its_leases(cluster: Cluster, tmp_path: Path, name: str) -> None:
    """Two runs overlap, and one dies: the other reads all of it after the lease."""
    jobs = Crontab(name, tmp_path, cluster)
    killed, lasting = (jobs.start("--records", "200") for _ in range(2))
    try:
        wait_until(lambda: jobs.read() > 0 or lasting.poll() is not None, 150, "the first rows", jobs.log)
        os.kill(killed.pid, signal.SIGKILL)
        assert lasting.wait(150) == 0, jobs.log()
    finally:
        for job in (killed, lasting):
            job.kill()
            job.wait()
    report = verify(jobs.table, name)
    assert (report.rows, report.duplicates, report.missing) == (RECORDS * TOPICS, 0, 0)


def test_a_signal_ends_a_run_with_3_or_0(cluster: Cluster, tmp_path: Path, name: str) -> None:
    """3 if records were left; it holds nothing."""
    jobs = Crontab(name, tmp_path, cluster)
    job = jobs.start("--records", "100")
    try:
        wait_until(lambda: jobs.read() > 0, 150, "the first rows", jobs.log)
        job.terminate()
        code = job.wait(60)
    finally:
        job.kill()
        job.wait()
    assert code == (3 if jobs.read() < RECORDS * TOPICS else 0), jobs.log()
    assert not jobs.held()


@pytest.mark.slow
def test_a_topic_whose_table_refuses_is_1(cluster: Cluster, tmp_path: Path, name: str) -> None:
    """The others are read."""
    jobs = Crontab(name, tmp_path, cluster, "{topic}")
    (tmp_path / f"{name}.0").write_text("in the way")
    assert jobs.code("--max-runtime", "20") == 1, jobs.log()
    assert all(verify(str(tmp_path / f"{name}.{n}"), name).rows == RECORDS for n in range(1, TOPICS)), jobs.log()


@pytest.mark.long
def test_no_broker_and_no_settings_are_2(cluster: Cluster, tmp_path: Path, name: str) -> None:
    """As without --once."""
    jobs = Crontab(name, tmp_path, cluster)
    assert jobs.code("--bootstrap-servers", "127.0.0.1:9") == 2, jobs.log()
    assert jobs.code("--max-runtime", "-1") == 2, jobs.log()
