"""A fleet whose agents follow `azimuth autoscale`: both as people run them, on real brokers."""

import subprocess
import sys
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from assignors.scaling.decision_journal import journal_entries
from spark_sink.demo.cluster import Cluster
from spark_sink.lake.holes_and_doubles import verify
from tests.integration.spark_sink.fleet.fleet_process import (
    Feed,
    FleetProcesses,
    delete_topics,
    make_topics,
    rows,
    wait_until,
)

pytestmark = pytest.mark.integration
PARTITIONS = 6


@pytest.mark.slow
def test_running_agents_take_up_the_numbers_of_the_autoscaler(cluster: Cluster, tmp_path: Path) -> None:
    """It sees the commits of the fleet's lanes; what it publishes is read by so many agents soon; every record once."""
    name = f"fleet-{uuid.uuid4().hex[:8]}"
    topic, numbers = f"{name}.t", f"{name}.workers"
    make_topics(cluster.bootstrap_servers, [topic], partitions=PARTITIONS)
    fleet_file = f"""
name = "{name}"
table = "{tmp_path}/lake"
session_s = 6
flush_s = 0.3
discover_s = 1
lanes = 2
[workers]
default = 1
topic = "{numbers}"
[sources.home]
bootstrap_servers = "{cluster.bootstrap_servers}"
topics = ["{topic}"]
"""
    lake = [tmp_path / "lake"]

    def readers() -> int:
        return sum(topic in str(fleet.status(agent).get("topics")) for agent in "abc")

    def joined() -> bool:
        """All agents see three: until then the topic may move to an agent that joins, and both read it meanwhile."""
        views = [fleet.status(agent).get("view") or {} for agent in "abc"]
        return all(len(view.get("members", ())) == 3 for view in views)

    def committed() -> bool:
        if not journal.exists():
            return False
        last = list(journal_entries(journal, topic))[-1]
        return not last["findings"] and min(last["inputs"]["committed"]) >= 0

    with FleetProcesses(tmp_path, fleet_file) as fleet:
        fleet.start("a", "b", "c")
        with Feed({cluster.bootstrap_servers: [topic]}, 0.05) as feed:
            wait_until(lambda: joined() and readers() == 1 and rows(lake) > 0, 60, "one of three agents reads")
            with autoscale(cluster, tmp_path, name, workers=2) as journal:
                took_s = wait_until(lambda: readers() == 2, 60, "two agents read")
                wait_until(committed, 60, "the commits of the lanes are seen")
            with autoscale(cluster, tmp_path, name, workers=3):
                wait_until(lambda: readers() == 3, 60, "three agents read")
        wait_until(lambda: rows(lake) >= feed.sent, 30, "all arrived")
        assert fleet.stop() == {"a": 0, "b": 0, "c": 0}
    print(f"two agents read {took_s:.1f} s after the autoscaler was started")  # noqa: T201 - a figure
    report = verify(str(lake[0]), name)
    assert (report.rows, report.duplicates, report.missing) == (feed.sent, 0, 0)
    delete_topics(cluster.bootstrap_servers, [topic, numbers])


@contextmanager
def autoscale(cluster: Cluster, folder: Path, name: str, workers: int) -> Iterator[Path]:
    """`azimuth autoscale --apply` with a number of workers at least; gives its journal."""
    journal = folder / "scaling.jsonl"
    (folder / "scaling.toml").write_text(f"""
bootstrap_servers = "{cluster.bootstrap_servers}"
interval_s = 0.5
journal = "{journal}"
workers_topic = "{name}.workers"
[pipelines.fleet]
group = "{name}"
topics = ["{name}.t"]
worker_rate = 1000
min_workers = {workers}
""")
    command = [sys.executable, "-m", "spark_sink", "autoscale", "--config", str(folder / "scaling.toml"), "--apply"]
    with (folder / "autoscale.log").open("ab") as log:
        process = subprocess.Popen(command, stdout=log, stderr=log)
    try:
        yield journal
        process.terminate()
        assert process.wait(30) == 0, (folder / "autoscale.log").read_text()
    finally:
        process.kill()
        process.wait()
