"""From the command to the first committed row: an agent of Spark, and an agent of a fleet, which needs none.

20,000 flights wait on their topics. AZIMUTH_BENCH_RUNS sets how often each agent starts, one after the other.
"""

import os
import statistics
import sys
import time
import uuid
from collections.abc import Callable, Mapping
from pathlib import Path

import psutil
import pytest

from spark_sink.demo.cluster import Cluster
from tests.benchmarks.spark_report import save
from tests.benchmarks.spark_topics import delete, flights, make
from tests.integration.spark_sink.tied import kill, launch, tree
from tests.waiting import wait_until

pytestmark = pytest.mark.benchmark
RUNS = int(os.environ.get("AZIMUTH_BENCH_RUNS", "3"))
RECORDS = 20_000

Command = Callable[[Path], list[str]]


def _sink(servers: str, prefix: str) -> Command:
    def command(root: Path) -> list[str]:
        return [
            "sink",
            *("--bootstrap-servers", servers, "--group", root.name, "--subscribe-pattern", rf"{prefix}\..*"),
            *("--table", str(root / "table"), "--checkpoint", str(root / "checkpoint")),
        ]

    return command


def _agent(servers: str, prefix: str) -> Command:
    def command(root: Path) -> list[str]:
        (root / "fleet.toml").write_text(
            f'name = "{root.name}"\ntable = "{root}/table"\n\n'
            f'[sources.home]\nbootstrap_servers = "{servers}"\npattern = "{prefix}[.].*"\n'
        )
        return ["agent", "--config", str(root / "fleet.toml"), "--agent", "a"]

    return command


def _commit_with_rows(table: Path) -> Path | None:
    logs = sorted((table / "_delta_log").glob("*.json"))
    return next((log for log in logs if '"add":' in log.read_text()), None)


def _start(root: Path, command: Command) -> dict[str, float]:
    """Start an agent, wait for its first row, and end it; seconds, and processor time of all its processes."""
    root.mkdir()
    given = command(root)
    began = time.time()
    process = launch([sys.executable, "-m", "spark_sink", *given], root / "log")
    try:
        wait_until(lambda: _commit_with_rows(root / "table") or process.poll() is not None, 120, "a row")
        log = _commit_with_rows(root / "table")
        assert log is not None, (root / "log").read_text()[-2000:]
        used = sum(sum(one.cpu_times()[:2]) for one in tree(process.pid) if one.status() != psutil.STATUS_ZOMBIE)
        return {"first_row_s": log.stat().st_mtime - began, "cpu_s": used}
    finally:
        kill(tree(process.pid))
        process.wait()


def test_an_agent_starts(cluster: Cluster, tmp_path: Path) -> None:
    """Alone on the machine but for the brokers, with a warm cache."""
    records = flights()[:RECORDS]
    prefix = f"start{uuid.uuid4().hex[:6]}"
    topics = {f"{prefix}.{topic}": 3 for topic, _, _ in records}
    producer = make(cluster, topics)
    for topic, key, value in records:
        producer.produce(f"{prefix}.{topic}", value, key)
    assert producer.flush(60) == 0
    kinds: Mapping[str, Command] = {
        "azimuth sink": _sink(cluster.bootstrap_servers, prefix),
        "azimuth agent": _agent(cluster.bootstrap_servers, prefix),
    }
    found: dict[str, list[dict[str, float]]] = {name: [] for name in kinds}
    for run in range(RUNS + 1):
        for name, command in kinds.items():
            one = _start(tmp_path / f"{prefix}-{run}-{name.split()[-1]}", command)
            if run:
                found[name].append(one)
    delete(cluster, topics)
    medians = {
        name: {part: round(statistics.median(one[part] for one in runs), 2) for part in runs[0]}
        for name, runs in found.items()
    }
    save("start of an agent", {"records": RECORDS, "topics": len(topics), "runs": RUNS, "agents": medians})
