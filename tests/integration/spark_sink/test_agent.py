"""`azimuth sink` as a process: it ends on a signal."""

import contextlib
import os
import signal
import socket
import subprocess
import sys
import time
import urllib.request
from collections.abc import Callable
from pathlib import Path

import psutil
import pytest
from confluent_kafka import ConsumerGroupState, Producer
from confluent_kafka.admin import AdminClient

from assignors import GroupMember, HRWAssignor
from spark_sink import positions
from spark_sink.agent.start.worker_modules import DAEMON
from spark_sink.demo.cluster import Cluster
from tests.integration.spark_sink.tied import launch, tree
from tests.waiting import wait_until

pytestmark = pytest.mark.integration


LONGEST_END_S = 10.0


@pytest.mark.slow
@pytest.mark.parametrize(
    ("told", "form"), [(signal.SIGTERM, "json"), (signal.SIGINT, "text")], ids=lambda one: getattr(one, "name", one)
)
def test_an_agent_that_is_told_to_end_leaves_the_group_and_exits_with_0(  # noqa: PLR0913, PLR0917 -- fixtures
    cluster: Cluster, admin: AdminClient, topic: Callable[..., str], tmp_path: Path, told: signal.Signals, form: str
) -> None:
    """An immediate leave makes a rolling restart cheap: no agent has to wait for the session to time out."""
    group = f"agent-{told.name}"
    command = [sys.executable, "-m", "spark_sink", "sink", "--bootstrap-servers", cluster.bootstrap_servers]
    command += ["--group", group, "--table", str(tmp_path / "table"), "--checkpoint", str(tmp_path / "checkpoint")]
    # A session so long that it cannot be the reason why the group is empty.
    command += ["--subscribe", topic("end", 3), "--master", "local[1]", "--kafka", "session.timeout.ms=120000"]
    command += ["--log-format", form]
    log = tmp_path / "log"
    agent = launch(command, log)
    try:
        wait_until((tmp_path / "table").exists, 120)
        began = time.monotonic()
        agent.send_signal(told)
        assert agent.wait(30) == 0, log.read_text()[-2000:]
        ended_s = time.monotonic() - began
    finally:
        agent.kill()
        agent.wait()
    described = admin.describe_consumer_groups([group])[group].result(10)
    assert described.state == ConsumerGroupState.EMPTY
    assert "Traceback" not in log.read_text()
    sys.stdout.write(f"{told.name}, {form}: ended in {ended_s:.1f} s\n")
    assert ended_s <= LONGEST_END_S


@pytest.mark.slow
def test_a_signal_to_all_processes_of_an_agent_is_an_ordinary_end(
    cluster: Cluster, topic: Callable[..., str], tmp_path: Path
) -> None:
    """As systemd stops a service: the JVM and the readers may end before the agent hears of it."""
    command = [sys.executable, "-m", "spark_sink", "sink", "--bootstrap-servers", cluster.bootstrap_servers]
    command += [
        "--group",
        "all-processes",
        "--table",
        str(tmp_path / "table"),
        "--checkpoint",
        str(tmp_path / "points"),
    ]
    command += ["--subscribe", topic("all", 3), "--master", "local[1]"]
    with (tmp_path / "log").open("wb") as log:
        agent = subprocess.Popen(command, stdout=log, stderr=log, start_new_session=True)
    try:
        wait_until((tmp_path / "table").exists, 120)
        processes = psutil.Process(agent.pid).children(recursive=True)
        os.killpg(agent.pid, signal.SIGTERM)
        assert agent.wait(30) == 0, (tmp_path / "log").read_text()[-2000:]
        assert not psutil.wait_procs(processes, timeout=30)[1]
    finally:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(agent.pid, signal.SIGKILL)
        agent.wait()
    said = (tmp_path / "log").read_text()
    assert "Traceback" not in said
    assert "azimuth:" not in said


def _free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as server:
        return int(server.getsockname()[1])


def _partitions(port: int) -> float | None:
    with contextlib.suppress(OSError), urllib.request.urlopen(f"http://127.0.0.1:{port}/metrics") as answer:
        lines = answer.read().decode().splitlines()
        return next(float(line.split()[1]) for line in lines if line.startswith("azimuth_partitions "))
    return None


@pytest.mark.slow
def test_an_agent_with_nothing_to_read_says_what_it_holds(
    cluster: Cluster, topic: Callable[..., str], tmp_path: Path
) -> None:
    """At night, without records, a dashboard must still show that an agent holds its share, also a new agent."""
    name, port = topic("idle", 4), _free_port()
    command = [sys.executable, "-m", "spark_sink", "sink", "--bootstrap-servers", cluster.bootstrap_servers]
    command += ["--group", name, "--table", str(tmp_path / "table"), "--checkpoint", str(tmp_path / "checkpoint")]
    command += ["--subscribe", name, "--master", "local[1]", "--metrics-port", str(port), "--agent", "one"]
    agent = launch(command, tmp_path / "log")
    try:
        wait_until(lambda: _partitions(port) == 4, 120)
        config = {"bootstrap_servers": cluster.bootstrap_servers, "group_id": name}
        other = GroupMember(config, topics=[name], assignors=[HRWAssignor(agent="two")]).start()
        try:
            wait_until(lambda: _partitions(port) == 2, 60)
        finally:
            other.close()
        wait_until(lambda: _partitions(port) == 4, 60)
        assert positions(str(tmp_path / "table"), name) == {}
    finally:
        agent.terminate()
        assert agent.wait(60) == 0


def _command(process: psutil.Process) -> list[str]:
    with contextlib.suppress(psutil.Error):  # it may end meanwhile
        return " ".join(process.cmdline()).split()  # the title of a forked process is one word
    return []


@pytest.mark.slow
def test_tasks_run_in_processes_forked_from_one_that_has_loaded_everything(
    cluster: Cluster, topic: Callable[..., str], producer: Producer, tmp_path: Path
) -> None:
    """Four workers on two cores: each would load Arrow, librdkafka and delta-rs for itself."""
    name, table = topic("few", 2), str(tmp_path / "table")
    for number in range(20):
        producer.produce(name, value=str(number), partition=number % 2)
    producer.flush()
    command = [sys.executable, "-m", "spark_sink", "sink", "--bootstrap-servers", cluster.bootstrap_servers]
    command += ["--group", name, "--table", table, "--checkpoint", str(tmp_path / "checkpoint")]
    command += ["--subscribe", name, "--master", "local[1]"]
    agent = launch(command, tmp_path / "log")
    try:
        wait_until(lambda: sum(positions(table, name).values()) == 20, 120)
        forked = [one for one in tree(agent.pid) if _command(one)[1:] == ["-m", DAEMON, "pyspark.worker"]]
        # Spark's daemon, which the server has forked, and at least one that was forked from it and is called the same.
        assert len(forked) > 1
        assert {forked[0].pid} == {one.ppid() for one in forked[1:]}
        server = forked[0].parent()
        assert server is not None
        assert any("fork_server" in word for word in _command(server))
    finally:
        agent.terminate()
        agent.wait(60)
