"""The cost of metrics and the live page: agents read a backlog with and without them, in turns.

With them means a request every two seconds, as from a browser with the page. The cost of an answer is also measured
separately, because turns of the same kind differ by more than the bar. AZIMUTH_BENCH_TIMES sets how often the flights
are written (10, 3.4 million records), AZIMUTH_BENCH_RUNS the number of pairs of turns (5).
"""

import contextlib
import json
import os
import socket
import statistics
import subprocess
import sys
import threading
import time
import urllib.request
import uuid
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import psutil
import pytest

from spark_sink import positions
from spark_sink.demo.cluster import Cluster
from spark_sink.demo.topics import create_topics
from tests.benchmarks.spark_report import save
from tests.benchmarks.spark_session import MARKS
from tests.benchmarks.spark_topics import delete, flights, one_large_topic
from tests.integration.spark_sink.tied import kill, launch, tree

pytestmark = MARKS
TIMES = int(os.environ.get("AZIMUTH_BENCH_TIMES", "10"))
RUNS = int(os.environ.get("AZIMUTH_BENCH_RUNS", "5"))
BAR = 1.02
WARM, PATIENCE_S, LOOK_S, ASK_S = 0.1, 300.0, 0.25, 2.0
ANSWERS, IDLE_S = 300, 15.0

AZIMUTH = [sys.executable, "-m", "spark_sink"]
FLEET = """
name = "{group}"
table = "{table}"
[membership]
kind = "static"
agents = [{{ id = "one" }}]
[sources.home]
bootstrap_servers = "{servers}"
topics = {topics}
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Backlog:
    """A complete topic: its address and its number of records."""

    servers: str
    topic: str
    records: int


def _sink(backlog: Backlog, root: Path, port: int | None) -> list[str]:
    flags = {
        "bootstrap-servers": backlog.servers,
        "subscribe": backlog.topic,
        "group": root.name,
        "table": f"{root}/table",
        "checkpoint": f"{root}/checkpoint",
        "max-offsets-per-trigger": "100000",
        "master": "local[2]",
    } | ({} if port is None else {"metrics-port": str(port)})
    return [*AZIMUTH, "sink", *(word for name, value in flags.items() for word in (f"--{name}", value))]


def _agent(backlog: Backlog, root: Path, port: int | None) -> list[str]:
    return _agent_of(backlog.servers, [backlog.topic], root, port)


def _agent_of(servers: str, topics: list[str], root: Path, port: int | None) -> list[str]:
    file = root / "fleet.toml"
    file.write_text(FLEET.format(group=root.name, table=f"{root}/table", servers=servers, topics=json.dumps(topics)))
    http = [] if port is None else ["--http", f":{port}"]
    return [*AZIMUTH, "agent", "--config", str(file), "--agent", "one", *http]


KINDS = {
    "azimuth sink --metrics-port": (_sink, ("/metrics",)),
    "azimuth agent --http": (_agent, ("/metrics", "/status.json")),
}


def _seconds(pid: int) -> dict[int, float]:
    """Processor seconds of a process and all below it."""
    found = {}
    for one in tree(pid):
        with contextlib.suppress(psutil.Error):
            times = one.cpu_times()
            found[one.pid] = times.user + times.system
    return found


@contextlib.contextmanager
def _asked(port: int | None, paths: tuple[str, ...]) -> Iterator[list[int]]:
    """Request these pages at intervals, and yield the sizes of the answers."""
    ended, answers = threading.Event(), list[int]()

    def ask() -> None:
        while port is not None and not ended.wait(ASK_S):
            for path in paths:
                with contextlib.suppress(OSError):
                    answers.append(len(_ask(port, path)))

    asking = threading.Thread(target=ask)
    asking.start()
    try:
        yield answers
    finally:
        ended.set()
        asking.join()


def _turn(kind: str, backlog: Backlog, root: Path, *, asked: bool) -> dict[str, float]:
    """Let one agent read the topic."""
    root.mkdir()
    make, paths = KINDS[kind]
    port = _free_port() if asked else None
    agent = launch(make(backlog, root, port), root / "log")
    below = tree(agent.pid)
    try:
        with _asked(port, paths) as answers:
            first, begin, before = (
                _reached(agent, root, WARM * backlog.records),
                time.perf_counter(),
                _seconds(agent.pid),
            )
            _reached(agent, root, backlog.records)
            seconds, after = time.perf_counter() - begin, _seconds(agent.pid)
        below = tree(agent.pid)
    finally:
        kill(below)
        agent.wait()
    assert bool(answers) == asked, (root / "log").read_text()[-2000:]
    used = sum(after[pid] - before.get(pid, 0) for pid in after)
    rate = (backlog.records - first) / seconds
    return {"seconds": seconds, "processor_s": used, "records_per_s": rate, "answers": len(answers)}


def _free_port() -> int:
    with socket.create_server(("localhost", 0)) as free:
        return int(free.getsockname()[1])


def _ask(port: int, path: str) -> bytes:
    with urllib.request.urlopen(f"http://localhost:{port}{path}") as answer:
        body: bytes = answer.read()
    return body


def _reached(agent: "subprocess.Popen[bytes]", root: Path, count: float) -> int:
    deadline = time.monotonic() + PATIENCE_S
    while True:
        there = (root / "table" / "_delta_log").exists()
        found = sum(positions(f"{root}/table", root.name).values()) if there else 0
        if found >= count:
            return found
        assert agent.poll() is None, (root / "log").read_text()[-2000:]
        assert time.monotonic() < deadline, (root / "log").read_text()[-2000:]
        time.sleep(LOOK_S)


@pytest.mark.parametrize("kind", KINDS)
def test_metrics_and_the_page(kind: str, cluster: Cluster, tmp_path: Path) -> None:
    """Ratios of neighbours in time, with to without."""
    records = flights()
    topic = one_large_topic(cluster, records, TIMES)
    backlog = Backlog(servers=cluster.bootstrap_servers, topic=topic, records=TIMES * len(records))
    turns: dict[bool, list[dict[str, float]]] = {True: [], False: []}
    for run in range(RUNS + 1):
        for asked in (True, False) if run % 2 else (False, True):
            root = tmp_path / f"overhead-{uuid.uuid4().hex[:8]}"
            found = _turn(kind, backlog, root, asked=asked)
            if run:
                turns[asked].append(found)
    delete(cluster, [topic])
    ratios = {
        part: [round(one[part] / other[part], 4) for one, other in zip(turns[True], turns[False], strict=True)]
        for part in ("seconds", "processor_s")
    }
    medians = {
        name: {part: round(statistics.median(one[part] for one in found), 3) for part in found[0]}
        for name, found in (("with", turns[True]), ("without", turns[False]))
    }
    of_pairs = {part: {"median": statistics.median(each), "each": each} for part, each in ratios.items()}
    save(
        f"overhead of {kind}",
        {"records": backlog.records, "runs": RUNS, "bar": BAR, "medians": medians, "ratios": of_pairs},
    )


@pytest.mark.parametrize("topics", [1, 224])
def test_an_answer(topics: int, cluster: Cluster, tmp_path: Path) -> None:
    """Processor time of an answer, beyond what the agent uses anyway; and its share of a core where a page is shown."""
    names = [f"answer-{uuid.uuid4().hex[:6]}.{number}" for number in range(topics)]
    create_topics(cluster.bootstrap_servers, names, partitions=3, replicas=1, config={})
    port = _free_port()
    agent = launch(_agent_of(cluster.bootstrap_servers, names, tmp_path, port), tmp_path / "log")
    try:
        deadline = time.monotonic() + PATIENCE_S
        while not _reads(port, topics):
            assert time.monotonic() < deadline, (tmp_path / "log").read_text()[-2000:]
            time.sleep(LOOK_S)
        begin, before = time.perf_counter(), sum(_seconds(agent.pid).values())
        time.sleep(IDLE_S)
        idle = (sum(_seconds(agent.pid).values()) - before) / (time.perf_counter() - begin)
        costs = {path: _cost(agent.pid, port, path, idle) for path in ("/metrics", "/status.json")}
    finally:
        kill(tree(agent.pid))
        agent.wait()
        delete(cluster, names)
    save(
        f"an answer of azimuth agent --http, {topics} topics",
        {
            "processor_ms": {path: round(seconds * 1e3, 3) for path, seconds in costs.items()},
            "share_of_a_core_asked_every_2_s": round(sum(costs.values()) / ASK_S, 6),
            "bar": round(BAR - 1, 4),
        },
    )


def _reads(port: int, topics: int) -> bool:
    with contextlib.suppress(OSError):
        status = json.loads(_ask(port, "/status.json"))
        return len(status["topics"]) == topics and not status["unready"]
    return False


def _cost(pid: int, port: int, path: str, idle: float) -> float:
    """Processor seconds of an answer."""
    begin, before = time.perf_counter(), sum(_seconds(pid).values())
    for _ in range(ANSWERS):
        _ask(port, path)
    return (sum(_seconds(pid).values()) - before - idle * (time.perf_counter() - begin)) / ANSWERS
