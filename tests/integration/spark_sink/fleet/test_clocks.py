"""Agents whose clocks disagree."""

import time
import uuid
from pathlib import Path

import pytest

from spark_sink.demo.cluster import Cluster
from spark_sink.lake.holes_and_doubles import verify
from tests.integration.assignors.fleet.conftest import redis_server
from tests.integration.spark_sink.fleet.fleet_process import (
    Feed,
    FleetProcesses,
    delete_topics,
    make_topics,
    wait_until,
)
from tests.redis_server import RedisServer

pytestmark = pytest.mark.integration
__all__ = ["redis_server"]  # a fixture

TOPICS = 6
SESSION_S = 6
# Python runs a module of this name before anything else.
AHEAD = """
import time

_now = time.time
time.time = lambda: _now() + 3600
"""


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["kafka", "redis"])
def test_a_clock_that_is_an_hour_ahead_changes_nothing(
    cluster: Cluster, tmp_path: Path, request: pytest.FixtureRequest, kind: str
) -> None:
    """Both agents see each other for longer than a session, share the topics, and every record is there once."""
    name = f"clocks-{uuid.uuid4().hex[:8]}"
    server: RedisServer | None = request.getfixturevalue("redis_server") if kind == "redis" else None
    address = f'url = "redis://127.0.0.1:{server.port}/0"' if server else ""
    config = f"""
name = "{name}"
table = "{tmp_path}/lake/{{cluster}}"
session_s = {SESSION_S}
flush_s = 0.3
discover_s = 1
membership = {{ kind = "{kind}"{", " + address if address else ""} }}
[sources.home]
bootstrap_servers = "{cluster.bootstrap_servers}"
pattern = "{name}[.].*"
"""
    (tmp_path / "sitecustomize.py").write_text(AHEAD)
    topics = [f"{name}.t{n}" for n in range(TOPICS)]
    make_topics(cluster.bootstrap_servers, topics)
    with FleetProcesses(tmp_path, config) as fleet:
        fleet.start("a")
        fleet.start("b", more={"PYTHONPATH": str(tmp_path)})

        def shared() -> bool:
            mine, its = (set(fleet.status(agent).get("topics", [])) for agent in "ab")
            return bool(mine and its) and not mine & its and len(mine | its) == TOPICS

        with Feed({cluster.bootstrap_servers: topics}, 0.2) as feed:
            wait_until(shared, 60, "both share the topics")
            assert fleet.status("b")["at"] - fleet.status("a")["at"] > 3500, "the second clock is not ahead"
            until = time.monotonic() + 2 * SESSION_S
            while time.monotonic() < until:
                assert shared(), (fleet.status("a")["view"], fleet.status("b")["view"])
                time.sleep(0.2)
        wait_until(lambda: verify(str(tmp_path / "lake" / "home"), name).rows >= feed.sent, 30, "all arrived")
        assert fleet.stop() == {"a": 0, "b": 0}
    report = verify(str(tmp_path / "lake" / "home"), name)
    assert (report.rows, report.duplicates, report.missing) == (feed.sent, 0, 0)
    delete_topics(cluster.bootstrap_servers, topics)
