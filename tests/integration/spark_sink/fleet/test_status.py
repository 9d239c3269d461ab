"""How a fleet stands, seen from outside, while the numbers of its workers change."""

import json
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka.admin import AdminClient

from assignors.scaling.workers_records import ScaledTopic, WorkersRecord
from assignors.scaling.workers_topic_client import WorkersPublisher
from spark_sink.demo.cluster import Cluster
from tests.integration.spark_sink.fleet.fleet_process import (
    FleetProcesses,
    config,
    delete_topics,
    make_topics,
    wait_until,
)

pytestmark = pytest.mark.integration


_STATUS = [sys.executable, "-m", "spark_sink", "fleet", "status", "--json", "--config"]
_CAPTURED: dict[str, Any] = {"capture_output": True, "text": True, "timeout": 60}


def status_of(file: Path, topic: str) -> dict[str, Any]:
    """What `azimuth fleet status` says, with the line of a topic."""
    told = subprocess.run([*_STATUS, str(file), "--explain", topic], check=False, **_CAPTURED)
    assert told.returncode == 0, told.stdout + told.stderr
    found: dict[str, Any] = json.loads(told.stdout)
    return found


@pytest.mark.slow
def test_workers_of_the_autoscalers_topic_change_at_run_time(cluster: Cluster, tmp_path: Path, name: str) -> None:
    """One more worker is one more agent of that topic and of no other; taken back, it leaves; `fleet status` tells."""
    topics = [f"{name}.t{n}" for n in range(4)]
    make_topics(cluster.bootstrap_servers, topics, partitions=2)
    feed, kafka = f"{name}-workers", {"bootstrap.servers": cluster.bootstrap_servers}
    publisher = WorkersPublisher(kafka, feed)
    id_ = str(AdminClient({**kafka, "log_level": 0}).list_topics(timeout=10).cluster_id)
    scaled = ScaledTopic(id_, name, topics[0])
    with FleetProcesses(tmp_path, config(name, tmp_path, cluster, f'workers = {{ topic = "{feed}" }}')) as fleet:

        def readers() -> dict[str, str]:
            mine = {agent: fleet.status(agent).get("topics", []) for agent in "ab"}
            return {topic: "".join(a for a in "ab" if f"home/{topic}" in mine[a]) for topic in topics}

        fleet.start("a", "b")
        # Before this the first agent may read all, or both a topic that is being handed over.
        wait_until(lambda: sorted(readers().values()) == ["a", "a", "b", "b"], 60, "each reads its half")
        before = readers()
        publisher.publish(scaled, WorkersRecord(workers=2, at_ms=1))
        wait_until(lambda: readers() == {**before, topics[0]: "ab"}, 20, "the second worker reads")
        told = status_of(tmp_path / "fleet.toml", f"home/{topics[0]}")
        assert sorted(told["topics"][f"home/{topics[0]}"]) == ["a", "b"]
        publisher.publish(scaled, None)
        wait_until(lambda: readers() == before, 20, "the second worker left")
        told = status_of(tmp_path / "fleet.toml", f"home/{topics[0]}")
        assert told["connections"] == {"agent_topic": 4, "agent_cluster": 2, "all_to_all": 8}
        (line,) = told["lines"]
        assert line["next"] == {before[topics[0]]: line["added"]}
        # Not always the first place: the names are drawn, and its agent may read as many others as it should.
        assert [place["agent"] for place in line["places"] if place["reads"]] == [before[topics[0]]]
        assert all(place["reason"] for place in line["places"])
        assert sum(agent["topics"] for agent in told["agents"]) == 4
        assert "starts" in fleet.log("a")
        assert fleet.stop() == {"a": 0, "b": 0}
    delete_topics(cluster.bootstrap_servers, [*topics, feed])


@pytest.mark.slow
def test_who_looks_while_the_home_cluster_is_away_is_told_in_seconds(tmp_path: Path) -> None:
    """One sentence, exit code 2."""
    (tmp_path / "fleet.toml").write_text(
        f'name = "f"\ntable = "{tmp_path}"\n[sources.home]\nbootstrap_servers = "127.0.0.1:1"\ntopics = ["x"]'
    )
    began = time.monotonic()
    found = subprocess.run([*_STATUS, str(tmp_path / "fleet.toml")], check=False, **_CAPTURED)
    assert time.monotonic() - began < 12
    assert found.returncode == 2
    assert "home cluster" in found.stderr
    assert "does not answer" in found.stderr
    assert found.stderr.count("\n") == 1
