"""The process that joins the group while Spark starts: it leaves whenever no reader comes of it."""

import os
import signal
import socket
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import psutil
import pytest
from confluent_kafka.admin import AdminClient

from spark_sink.agent.start.early_reader import READER
from spark_sink.demo.cluster import Cluster
from tests.integration.spark_sink.tied import kill, launch, tree
from tests.waiting import wait_until

pytestmark = [pytest.mark.integration, pytest.mark.long]
# Longer than a test waits, so that only a leave empties the group.
SESSION_MS = "300000"
_ASKS = """
import sys
from spark_sink.agent.start.early_reader import early_reader
from spark_sink.agent.start.warm_python import warm_python
with warm_python() as python:
    options = dict(one.split("=", 1) for one in sys.argv[1:])
    with early_reader(str(python), options):
        print(python, flush=True)
        sys.stdin.readline()
    sys.stdin.readline()
"""


class Asking:
    """A process that has asked for an early reader, as an agent does."""

    def __init__(self, cluster: Cluster, admin: AdminClient, topic: str, log: Path) -> None:
        self._admin, self.group, self.log = admin, topic, log
        given = {"kafka.bootstrap.servers": cluster.bootstrap_servers, "kafka.group.id": topic, "subscribe": topic}
        given["kafka.session.timeout.ms"] = SESSION_MS
        words = [f"{name}={value}" for name, value in given.items()]
        self.process = subprocess.Popen(
            [sys.executable, "-c", _ASKS, *words], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )
        assert self.process.stdout is not None
        self.python = self.process.stdout.readline().strip()
        wait_until(lambda: self.members() == 1, 60, "an early member")
        self.processes = tree(self.process.pid)

    def members(self) -> int:
        """Members of the group."""
        return len(self._admin.describe_consumer_groups([self.group])[self.group].result(10).members)

    def reader(self) -> psutil.Process:
        """The process that has joined: the youngest below the fork server."""
        return max(self.processes[1:], key=lambda one: (one.create_time(), one.pid))

    def go_on(self) -> None:
        """End the block of the early reader."""
        assert self.process.stdin is not None
        self.process.stdin.write("\n")
        self.process.stdin.flush()


@pytest.fixture
def asking(cluster: Cluster, admin: AdminClient, topic: Callable[..., str], tmp_path: Path) -> Iterator[Asking]:
    """A process whose early reader is a member."""
    found = Asking(cluster, admin, topic("early", 3), tmp_path / "log")
    yield found
    kill(found.processes)
    found.process.communicate()


def test_an_early_reader_leaves_with_the_block(asking: Asking) -> None:
    """As after a fault that ends the start of Spark."""
    asking.go_on()
    wait_until(lambda: asking.members() == 0, 60, "an empty group")
    assert not psutil.wait_procs([asking.reader()], timeout=30)[1]


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM], ids=lambda one: one.name)
def test_an_early_reader_leaves_when_the_agent_dies(asking: Asking, number: signal.Signals) -> None:
    """No other process can give its partitions back."""
    asking.process.send_signal(number)
    wait_until(lambda: asking.members() == 0, 60, "an empty group")
    assert not psutil.wait_procs(asking.processes[1:], timeout=30)[1]


def test_an_early_reader_leaves_when_the_server_dies(asking: Asking) -> None:
    """Then Spark starts the reader by itself, and a second member of its name would be refused."""
    server = asking.reader().parent()
    assert server is not None
    server.kill()
    wait_until(lambda: asking.members() == 0, 60, "an empty group")


@pytest.mark.parametrize("told", [True, False], ids=["SIGTERM", "no JVM"])
def test_a_reader_that_ends_before_it_is_asked_for_an_offset_leaves(asking: Asking, *, told: bool) -> None:
    """Between its start and the first request for an offset Spark may end the process, or be gone itself."""
    with socket.create_server(("127.0.0.1", 0)) as jvm:  # does not answer
        port = str(jvm.getsockname()[1]) if told else "none"
        environment = {**os.environ, "PYTHON_WORKER_FACTORY_PORT": port, "PYTHON_WORKER_FACTORY_SECRET": "s"}
        runner = launch([asking.python, "-m", READER], asking.log, environment)
        try:
            if told:
                jvm.accept()
                asking.reader().terminate()
            wait_until(lambda: asking.members() == 0, 60, "an empty group")
            assert not psutil.wait_procs([asking.reader()], timeout=30)[1]
        finally:
            runner.kill()
            runner.wait()


@pytest.mark.slow
@pytest.mark.parametrize("protocol", [f"session.timeout.ms={SESSION_MS}", "group.protocol=consumer"])
def test_an_agent_joins_once_and_reads_with_the_process_that_joined(
    cluster: Cluster, admin: AdminClient, topic: Callable[..., str], tmp_path: Path, protocol: str
) -> None:
    """The member that joined before Spark had started is the one that holds the partitions afterwards."""
    name = topic("joined", 3)
    command = [sys.executable, "-m", "spark_sink", "sink", "--bootstrap-servers", cluster.bootstrap_servers]
    command += ["--group", name, "--table", str(tmp_path / "table"), "--checkpoint", str(tmp_path / "checkpoint")]
    command += ["--subscribe", name, "--master", "local[1]", "--kafka", protocol]
    agent = launch(command, tmp_path / "log")

    def members() -> list[str]:
        return [one.member_id for one in admin.describe_consumer_groups([name])[name].result(10).members]

    try:
        wait_until(members, 120, "an early member")
        early = members()
        assert "started" not in (tmp_path / "log").read_text()
        wait_until(lambda: "partitions gained" in (tmp_path / "log").read_text(), 120, "partitions")
        assert members() == early
    finally:
        kill(tree(agent.pid))
        agent.wait()
