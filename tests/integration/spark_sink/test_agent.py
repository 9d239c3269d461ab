"""`azimuth sink` as a process: it ends when it is told to."""

import signal
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from confluent_kafka import ConsumerGroupState
from confluent_kafka.admin import AdminClient

from spark_sink.demo.cluster import Cluster
from tests.integration.spark_sink.tied import launch

pytestmark = pytest.mark.integration


def _wait(reached: Callable[[], bool], timeout_s: float) -> None:
    deadline = time.monotonic() + timeout_s
    while not reached():
        assert time.monotonic() < deadline, "the condition was not reached in time"
        time.sleep(0.05)


@pytest.mark.parametrize(
    "told", [signal.SIGTERM, pytest.param(signal.SIGINT, marks=pytest.mark.slow)], ids=lambda s: s.name
)
def test_an_agent_that_is_told_to_end_leaves_the_group_and_exits_with_0(
    cluster: Cluster, admin: AdminClient, topic: Callable[..., str], tmp_path: Path, told: signal.Signals
) -> None:
    """Leaving at once is what makes a rolling restart cheap: nobody has to wait for the session to time out."""
    group = f"agent-{told.name}"
    command = [sys.executable, "-m", "spark_sink", "sink", "--bootstrap-servers", cluster.bootstrap_servers]
    command += ["--group", group, "--table", str(tmp_path / "table"), "--checkpoint", str(tmp_path / "checkpoint")]
    # A session so long that it cannot be the reason why the group is empty.
    command += ["--subscribe", topic("end", 3), "--master", "local[1]", "--kafka", "session.timeout.ms=120000"]
    log = tmp_path / "log"
    agent = launch(command, log)
    try:
        _wait((tmp_path / "table").exists, 120)
        agent.send_signal(told)
        assert agent.wait(30) == 0, log.read_text()[-2000:]
    finally:
        agent.kill()
        agent.wait()
    described = admin.describe_consumer_groups([group])[group].result(10)
    assert described.state == ConsumerGroupState.EMPTY
    assert "Traceback" not in log.read_text()
