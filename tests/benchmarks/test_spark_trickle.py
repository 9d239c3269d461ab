"""An agent on hundreds of topics that trickle: time of a micro-batch, age of records, and memory.

Beside it Spark's own connector into Parquet files, in the same session, by turns; both are processes of their own, and
records keep coming all the while. AZIMUTH_BENCH_TOPICS (300), AZIMUTH_BENCH_RATE (600 records a second over all),
AZIMUTH_BENCH_SECONDS (60 a turn) and AZIMUTH_BENCH_RUNS (3 turns of each) set the sizes, and AZIMUTH_BENCH_TRIGGER
the time between two batches (the agent's default). The bars stand in `bars.py`.
"""

import os
import re
import signal
import statistics
import sys
import time
import uuid
from collections.abc import Callable, Iterator
from datetime import datetime
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from spark_sink.agent.agent_settings import AgentSettings
from spark_sink.demo.cluster import Cluster
from tests.benchmarks.spark_freshness import Commits
from tests.benchmarks.spark_peer_jars import peer_jars
from tests.benchmarks.spark_report import save
from tests.benchmarks.spark_session import MARKS
from tests.benchmarks.spark_topics import delete, flights, make
from tests.benchmarks.spark_trickle import Memory, Trickle, batches
from tests.integration.spark_sink.tied import kill, launch, tree

pytestmark = MARKS
TOPICS = int(os.environ.get("AZIMUTH_BENCH_TOPICS", "300"))
RATE = int(os.environ.get("AZIMUTH_BENCH_RATE", "600"))
SECONDS = float(os.environ.get("AZIMUTH_BENCH_SECONDS", "60"))
RUNS = int(os.environ.get("AZIMUTH_BENCH_RUNS", "3"))
EACH = 2
WARM_COMMITS, PATIENCE_S = 5, 300.0
TRIGGER = os.environ.get("AZIMUTH_BENCH_TRIGGER", AgentSettings.model_fields["trigger"].default)
EVENTS = {
    "spark.eventLog.enabled": "true",
    "spark.eventLog.rolling.enabled": "false",
    "spark.eventLog.compress": "false",
    # One file for one batch, so that each says what it added.
    "spark.sql.streaming.fileSink.log.compactInterval": "1000000",
}
AGENT = [sys.executable, "-m", "spark_sink", "sink", "--starting-offsets", "latest", "--trigger", TRIGGER]
PEER = [sys.executable, str(Path(__file__).with_name("spark_peer_agent.py"))]

Figures = dict[str, Any]


@pytest.fixture
def trickle(cluster: Cluster) -> Iterator[tuple[str, Trickle]]:
    """Records that come all the while; the prefix of their topics beside them."""
    prefix = f"trickle-{uuid.uuid4().hex[:6]}"
    topics = {f"{prefix}.{number}": EACH for number in range(TOPICS)}
    places = [(name, number) for name in topics for number in range(EACH)]
    running = Trickle(make(cluster, topics), places, flights(), RATE)
    running.start()
    yield prefix, running
    running.end()
    delete(cluster, topics)


def _until(reached: Callable[[], bool], what: str, log: Path) -> None:
    deadline = time.monotonic() + PATIENCE_S
    while not reached():
        assert time.monotonic() < deadline, f"{what} within {PATIENCE_S:g} s: {log.read_text()[-2000:]}"
        time.sleep(0.5)


def _turn(command: list[str], flags: dict[str, str], trickle: Trickle, root: Path) -> Figures:
    """Let one reader run for a while; every record of that while must be in its table."""
    (root / "events").mkdir(parents=True)
    spark = {**EVENTS, "spark.eventLog.dir": (root / "events").as_uri(), "spark.jars": ",".join(map(str, peer_jars()))}
    own = {"group": root.name, "table": str(root / "table"), "checkpoint": str(root / "checkpoint")}
    command = [*command, *(word for name, value in (flags | own).items() for word in (f"--{name}", value))]
    command += [word for name, value in spark.items() for word in ("--spark", f"{name}={value}")]
    commits, log = Commits(root / "table"), root / "log"

    def look() -> Commits:
        commits.look()
        return commits

    agent = launch(command, log, {**os.environ, "PYTHONPATH": str(Path(__file__).parents[2])})
    below = tree(agent.pid)
    try:
        _until(lambda: look().count >= WARM_COMMITS, f"{WARM_COMMITS} commits", log)
        begin = time.time()
        with Memory(agent.pid) as memory:
            time.sleep(SECONDS)
        end = time.time()
        wanted = trickle.between(begin, end)
        _until(lambda: len(look().ages(begin, end)) >= wanted, f"{wanted} records in the table", log)
        below = tree(agent.pid)
        agent.send_signal(signal.SIGTERM)
        agent.wait(60)
    finally:
        kill(below)
        agent.wait()
    ages = commits.ages(begin, end)
    assert len(ages) == wanted
    return {"freshness_s": _percentiles(ages), "memory": memory.peak(), **_durations(root / "events", begin, end)}


def _durations(events: Path, begin: float, end: float) -> Figures:
    """What Spark says of the batches that began within that time, and of their parts."""
    found = [one for one in batches(events) if begin <= datetime.fromisoformat(one["timestamp"]).timestamp() < end]
    seconds = [one["durationMs"]["triggerExecution"] / 1000 for one in found]
    parts = sorted({name for one in found for name in one["durationMs"]} - {"triggerExecution"})
    medians = {name: statistics.median(one["durationMs"].get(name, 0) / 1000 for one in found) for name in parts}
    return {"batches": len(found), "batch_s": _percentiles(np.array(seconds)), "parts_s": medians}


def _percentiles(seconds: np.ndarray[Any, np.dtype[np.float64]]) -> dict[str, float]:
    return {f"p{at}": round(float(np.percentile(seconds, at)), 3) for at in (50, 95)} | {
        "max": round(float(seconds.max()), 3)
    }


def _medians(turns: list[Figures]) -> Figures:
    """The median of every figure over the turns."""
    return {
        name: _medians([one[name] for one in turns])
        if isinstance(value, dict)
        else round(statistics.median(one.get(name, 0) for one in turns), 3)
        for name, value in turns[0].items()
    }


def test_hundreds_of_topics_that_trickle(cluster: Cluster, trickle: tuple[str, Trickle], tmp_path: Path) -> None:
    """By turns, over the same records."""
    prefix, running = trickle
    flags = {
        "bootstrap-servers": cluster.bootstrap_servers,
        "subscribe-pattern": rf"{re.escape(prefix)}\..*",
        "master": "local[2]",
    }
    readers = {"azimuth sink": AGENT, **({"jvm, fetch.max.wait.ms=10, Parquet": PEER} if peer_jars() else {})}
    found: dict[str, list[Figures]] = {name: [] for name in readers}
    for _ in range(RUNS):
        for name, command in readers.items():
            found[name].append(_turn(command, flags, running, tmp_path / uuid.uuid4().hex))
    medians = {name: _medians(turns) for name, turns in found.items()}
    ours = medians["azimuth sink"]
    ratios = {name: one["batch_s"]["p50"] / ours["batch_s"]["p50"] for name, one in medians.items() if one is not ours}
    sizes = {
        "topics": TOPICS,
        "partitions": TOPICS * EACH,
        "records_per_s": RATE,
        "seconds": SECONDS,
        "runs": RUNS,
        "trigger": TRIGGER,
    }
    save(
        f"{TOPICS} topics, {TOPICS * EACH} partitions, trickling",
        {**sizes, "seconds": SECONDS, "runs": RUNS, "medians": medians, "times_shorter_batch_than": ratios},
    )
