"""A topic is paused and resumed while agents and jobs run and restart: no record is lost or doubled."""

import json
import subprocess
import sys
import urllib.request
import uuid
from pathlib import Path
from typing import Any

import pytest

from spark_sink.demo.cluster import Cluster
from spark_sink.demo.cluster.ports import choose_ports
from spark_sink.lake.holes_and_doubles import verify
from spark_sink.lake.positions_in_delta_log import positions
from tests.integration.spark_sink.fleet.fleet_process import (
    FleetProcesses,
    config,
    delete_topics,
    make_topics,
    send,
    wait_until,
)

pytestmark = pytest.mark.integration


def azimuth(*arguments: str) -> tuple[int, str]:
    """Run a command; its exit code and its output."""
    done = subprocess.run(
        [sys.executable, "-m", "spark_sink", *arguments], capture_output=True, text=True, check=False, timeout=120
    )
    return done.returncode, done.stdout + done.stderr


@pytest.mark.slow
def test_a_paused_topic_stays_unread_also_after_a_restart(cluster: Cluster, tmp_path: Path, name: str) -> None:
    """Agents follow the pause within seconds, the status and the lag show it, and all records arrive in the end."""
    topics = [f"{name}.a", f"{name}.b"]
    make_topics(cluster.bootstrap_servers, topics, 2)
    table, file = tmp_path / "lake" / "home", str(tmp_path / "fleet.toml")

    def read(topic: str) -> int:
        found = positions(str(table), name, {}) if (table / "_delta_log").exists() else {}
        return sum(at for key, at in found.items() if key.topic == topic)

    def paused(fleet: FleetProcesses) -> Any:
        return fleet.status("a").get("paused")

    [port] = choose_ports(1)
    with FleetProcesses(tmp_path, config(name, tmp_path, cluster)) as fleet:
        fleet.start("a", http=f"127.0.0.1:{port}")
        send(cluster.bootstrap_servers, dict.fromkeys(topics, 100))
        wait_until(lambda: read(topics[0]) == read(topics[1]) == 100, 60, "first records")
        assert azimuth("pause", topics[0], "--fleet", file, "--reason", "the table moves")[0] == 0
        assert "it is paused since" in azimuth("pause", topics[0], "--fleet", file)[1]
        wait_until(lambda: paused(fleet) == [f"home/{topics[0]}"], 20, "the pause is followed")
        send(cluster.bootstrap_servers, dict.fromkeys(topics, 50))
        wait_until(lambda: read(topics[1]) == 150, 60, "the other topic goes on")
        assert fleet.end("a")[0] == 0
        fleet.start("a", http=f"127.0.0.1:{port}")
        send(cluster.bootstrap_servers, {topics[1]: 50})
        wait_until(lambda: read(topics[1]) == 200, 60, "the restarted agent reads")
        assert read(topics[0]) == 100
        code, status = azimuth("fleet", "status", "--config", file, "--json")
        told = json.loads(status)
        assert told["paused"][f"home/{topics[0]}"]["reason"] == "the table moves", (code, status)
        assert told["figures"][f"home/{topics[0]}"]["lag"] == 50
        assert told["figures"][f"home/{topics[0]}"]["lag_s"] > 0
        assert told["figures"][f"home/{topics[1]}"] == {"lag": 0, "lag_s": 0.0, "rate": 0.0}
        with urllib.request.urlopen(f"http://127.0.0.1:{port}/fleet.json", timeout=10) as answer:
            assert set(json.load(answer)["owners"]) == {f"home/{topic}" for topic in topics}

        def shown() -> int | None:
            with urllib.request.urlopen(f"http://127.0.0.1:{port}/fleet.json", timeout=10) as answer:
                lag: int | None = json.load(answer)["figures"].get(f"home/{topics[0]}", {}).get("lag")
            return lag

        wait_until(lambda: shown() == 50, 30, "the page of the fleet has the lag")
        _, lag = azimuth("lag", "--fleet", file)
        assert "50)" not in lag
        assert "50, paused)" in lag
        assert azimuth("resume", f"home/{topics[0]}", "--fleet", file)[0] == 0
        assert "was not paused" in azimuth("resume", topics[0], "--fleet", file)[1]
        wait_until(lambda: read(topics[0]) == 150, 60, "the resumed topic")
        code, said = azimuth("pause", f"{name}.c", "--fleet", file)
        assert (code, said.count("\n")) == (2, 1)
        assert f"there is no topic '{name}.c' on home; did you mean" in said
    report = verify(str(table), name)
    assert (report.rows, report.duplicates, report.missing) == (350, 0, 0)
    delete_topics(cluster.bootstrap_servers, topics)


def test_jobs_with_claims_follow_pauses(cluster: Cluster, tmp_path: Path) -> None:
    """A job that starts while a topic is paused reads the others only."""
    name = f"claims-{uuid.uuid4().hex[:8]}"
    topics = [f"{name}.a", f"{name}.b"]
    make_topics(cluster.bootstrap_servers, topics, 2)
    send(cluster.bootstrap_servers, dict.fromkeys(topics, 100))
    where = ["--bootstrap-servers", cluster.bootstrap_servers, "--group", name]
    assert azimuth("pause", topics[0], *where)[0] == 0
    table = str(tmp_path / "table")
    command = [sys.executable, "-m", "spark_sink", "claims", "run", *where, "--table", table, "--longest-s", "0.5"]
    command += ["--database", f"sqlite:///{tmp_path}/claims.db", "--subscribe", ",".join(topics)]

    def read() -> dict[str, int]:
        found = positions(table, name) if (tmp_path / "table" / "_delta_log").exists() else {}
        return {topic: sum(at for key, at in found.items() if key.topic == topic) for topic in topics}

    with subprocess.Popen(command) as job:
        try:
            wait_until(lambda: read()[topics[1]] == 100, 60, "the other topic")
            assert read()[topics[0]] == 0
            assert azimuth("resume", topics[0], *where)[0] == 0
            wait_until(lambda: read()[topics[0]] == 100, 60, "the resumed topic")
        finally:
            job.terminate()
    report = verify(table, name)
    assert (report.rows, report.duplicates, report.missing) == (200, 0, 0)
    delete_topics(cluster.bootstrap_servers, topics)
