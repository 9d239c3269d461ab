"""Each part of an agent is killed or stopped separately: no member is left that holds partitions and reads nothing."""

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import psutil
import pytest
from confluent_kafka import KafkaException, Producer
from confluent_kafka.admin import AdminClient, MemberDescription  # type: ignore[attr-defined]  # its stub has no __all__

from spark_sink import positions
from spark_sink.demo.cluster import Cluster
from tests.integration.spark_sink.tied import tied

pytestmark = [pytest.mark.integration, pytest.mark.slow]
MakeTopic = Callable[..., str]
StartAgent = Callable[[int], "Agent"]


class Agent:
    """`azimuth sink` in processes of its own."""

    def __init__(self, admin: AdminClient, group: str, table: str, process: psutil.Popen) -> None:
        self._admin, self._group, self.driver = admin, group, process
        # A fault must hit a query that works: its first batch starts workers for seconds, and asks for nothing.
        self.until(lambda: bool(positions(table, group)), 300)
        parts = process.children(recursive=True)
        self.jvm = next(one for one in parts if one.name() == "java")
        self.reader = next(one for one in parts if "streaming_source_runner" in " ".join(command(one)))

    @property
    def members(self) -> int:
        """How many members the group has."""
        return len(self._describe())

    @property
    def owned(self) -> int:
        """How many partitions the group has given out."""
        return sum(len(one.assignment.topic_partitions) for one in self._describe())

    def _describe(self) -> list[MemberDescription]:
        deadline = time.monotonic() + 20
        while True:
            try:
                return list(self._admin.describe_consumer_groups([self._group])[self._group].result().members)
            except KafkaException:
                # The coordinator of a new group is just being chosen.
                assert time.monotonic() < deadline
                time.sleep(0.1)

    def until(self, condition: Callable[[], bool], seconds: float) -> float:
        """Wait for a condition; returns how long it took."""
        began = time.monotonic()
        while not condition():
            assert time.monotonic() < began + seconds, f"did not happen within {seconds:g} s"
            time.sleep(0.1)
        return time.monotonic() - began


def command(process: psutil.Process) -> list[str]:
    """The command line; empty where the process has just ended."""
    try:
        return process.cmdline()
    except psutil.Error:
        return []


def end_tree(process: psutil.Popen, parts: list[psutil.Process]) -> None:
    """Leave nothing behind, whatever the test did."""
    for one in [*parts, process]:
        try:
            one.kill()
        except psutil.NoSuchProcess:
            continue
    psutil.wait_procs([*parts, process], timeout=10)


@pytest.fixture
def start(
    cluster: Cluster, admin: AdminClient, topic: MakeTopic, producer: Producer, tmp_path: Path
) -> Iterator[StartAgent]:
    """Start an agent whose session times out after so many seconds."""
    name = topic("read", partitions=3)
    producer.produce(name, value=b"x")
    producer.flush()
    started: list[tuple[psutil.Popen, list[psutil.Process]]] = []

    def begin(session_s: int) -> Agent:
        settings = tmp_path / "sink.toml"
        settings.write_text(
            f"bootstrap_servers = {json.dumps(cluster.bootstrap_servers)}\n"
            f'group = "{name}"\nsubscribe = "{name}"\nmaster = "local[1]"\ntrigger = "500 milliseconds"\n'
            f'table = "{tmp_path}/table"\ncheckpoint = "{tmp_path}/checkpoint"\n'
            f'[kafka]\n"session.timeout.ms" = "{session_s * 1000}"\n"heartbeat.interval.ms" = "500"\n'
        )
        with (tmp_path / "agent.log").open("w") as log:
            process = psutil.Popen(
                tied([sys.executable, "-m", "spark_sink", "sink", "--config", str(settings)]),
                env={**os.environ, "PYSPARK_PYTHON": sys.executable},
                stdout=subprocess.DEVNULL,
                stderr=log,
                start_new_session=True,
            )
        started.append((process, []))
        agent = Agent(admin, name, f"{tmp_path}/table", process)
        started[-1] = (process, process.children(recursive=True))
        return agent

    yield begin
    for process, parts in started:
        end_tree(process, parts)


@pytest.mark.parametrize("victim", ["driver", "jvm"])
def test_the_reader_leaves_when_a_part_of_its_query_is_killed(start: StartAgent, victim: str) -> None:
    """Long before the session of 45 s would have ended; and the reader's process ends as well."""
    agent = start(45)
    os.kill((agent.driver if victim == "driver" else agent.jvm).pid, signal.SIGKILL)
    assert agent.until(lambda: agent.members == 0, 30) < 20
    agent.until(lambda: not agent.reader.is_running(), 20)


def test_a_query_that_is_stopped_gives_its_partitions_away_and_a_reader_that_is_killed_ends_it(
    start: StartAgent,
) -> None:
    """Only the JVM is stopped for longer than the session, resumes, joins again; then its reader is killed."""
    agent = start(6)
    agent.jvm.send_signal(signal.SIGSTOP)
    agent.until(lambda: agent.members == 0, 30)
    agent.jvm.send_signal(signal.SIGCONT)
    agent.until(lambda: agent.owned == 3, 60)
    agent.reader.kill()
    agent.until(lambda: agent.members == 0, 30)
    assert agent.driver.wait(60) != 0, "the query has failed, and the agent says so"
