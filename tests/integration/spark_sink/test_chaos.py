"""Agents as real processes on the cluster, records produced all the while, and faults: every record once.

`make chaos` runs more seeds and longer: AZIMUTH_CHAOS_SEEDS=1,2,3 AZIMUTH_CHAOS_SECONDS=60. AZIMUTH_CHAOS_FAULTS
names some of the faults only.
"""

import contextlib
import json
import os
import random
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

import psutil
import pytest
from confluent_kafka import Consumer, Producer, TopicPartition

from spark_sink import positions
from spark_sink.agent import worker_daemon
from spark_sink.demo.cluster import Cluster
from spark_sink.lake.verification import verify
from spark_sink.ranges.batch_offset import TopicPartition as Key
from tests.integration.spark_sink.tied import launch

pytestmark = [pytest.mark.integration, pytest.mark.slow]

SEEDS = [int(one) for one in os.environ.get("AZIMUTH_CHAOS_SEEDS", "1").split(",")]
SECONDS = float(os.environ.get("AZIMUTH_CHAOS_SECONDS", "60"))
PATIENCE_S = float(os.environ.get("AZIMUTH_CHAOS_PATIENCE", "180"))
SESSION_S = 6.0
TOPICS, PARTITIONS = 3, 3

MakeTopic = Callable[..., str]


@dataclass
class Agent:
    """`azimuth sink` and everything below it."""

    name: str
    arguments: list[str]
    log: Path
    process: subprocess.Popen[bytes] | None = None
    seen: set[psutil.Process] = field(default_factory=set)

    def start(self) -> None:
        """Start it, for the first time or again; what is left of the last time goes on living."""
        command = [sys.executable, "-m", "spark_sink", "sink", "--agent", self.name, *self.arguments]
        self.process = launch(command, self.log)

    @property
    def alive(self) -> bool:
        """Whether the driver runs."""
        return self.process is not None and self.process.poll() is None

    def tree(self) -> list[psutil.Process]:
        """Every process of it, the driver first."""
        if not self.alive or self.process is None:
            return []
        with contextlib.suppress(psutil.NoSuchProcess):
            driver = psutil.Process(self.process.pid)
            tree = [driver, *driver.children(recursive=True)]
            self.seen.update(tree)
            return tree
        return []

    def part(self, name: str) -> list[psutil.Process]:
        """The processes that a fault hits: all, the driver, the JVM, the reader, or Spark's Python workers."""
        tree = self.tree()
        if name in {"tree", "driver"}:
            return tree if name == "tree" else tree[:1]
        return [process for process in tree[1:] if _kind(process) == name]

    def end(self) -> None:
        """Kill all of it that was ever seen."""
        self.tree()
        for process in self.seen:
            with contextlib.suppress(psutil.NoSuchProcess):
                process.kill()
        if self.process is not None:
            self.process.wait()


def _kind(process: psutil.Process) -> str:
    with contextlib.suppress(psutil.Error):
        command = process.cmdline()
        if command and Path(command[0]).name == "java":
            return "jvm"
        if any("python_streaming_source_runner" in word for word in command):
            return "reader"
        if {"pyspark.daemon", worker_daemon.MODULE} & set(command) and process.ppid() != 1:
            return "worker"
    return ""


def _send(processes: list[psutil.Process], number: signal.Signals) -> None:
    for process in processes:
        with contextlib.suppress(psutil.NoSuchProcess):
            process.send_signal(number)


class Stream:
    """Writes records until it is told to end."""

    def __init__(self, servers: str, topics: list[str]) -> None:
        self._producer = Producer({"bootstrap.servers": servers, "enable.idempotence": True, "linger.ms": 20})
        self._topics = topics
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._run)
        self._thread.start()

    def _run(self) -> None:
        number = 0
        while not self._ended.wait(0.1):
            for topic in self._topics:
                for partition in range(PARTITIONS):
                    self._producer.produce(topic, value=str(number), partition=partition)
                    number += 1
            self._producer.poll(0)

    def end(self) -> None:
        """Write no more; what was written is acknowledged when this returns."""
        self._ended.set()
        self._thread.join()
        assert self._producer.flush(60) == 0


class Chaos:
    """Two agents, one of each way to land, a stream and a table."""

    def __init__(self, cluster: Cluster, root: Path, topics: list[str], seed: int) -> None:
        self.cluster, self.topics, self.random = cluster, topics, random.Random(seed)
        self.table, self.group = root / "table", f"chaos-{topics[0]}"
        shared = ["--bootstrap-servers", cluster.bootstrap_servers, "--group", self.group, "--table", str(self.table)]
        shared += ["--subscribe", ",".join(topics), "--trigger", "300 milliseconds", "--master", "local[2]"]
        shared += ["--kafka", f"session.timeout.ms={int(SESSION_S * 1000)}", "--kafka", "heartbeat.interval.ms=1000"]
        shared += ["--max-offsets-per-trigger", "5000"]
        self.agents = [
            Agent(name, [*shared, *own, "--checkpoint", str(root / f"checkpoint-{name}")], root / f"{name}.log")
            for name, own in (("one", ["--landing", "direct"]), ("two", ["--landing", "rows"]))
        ]
        self.faults: list[str] = []

    def until(self, condition: Callable[[], object], what: str) -> None:
        """Wait for a condition; an agent that has ended is started again meanwhile."""
        deadline = time.monotonic() + PATIENCE_S
        while not condition():
            for agent in self.agents:
                agent.tree()
                if not agent.alive:
                    agent.start()
            if time.monotonic() >= deadline:
                ends = {one.name: one.log.read_text(errors="replace")[-1500:] for one in self.agents}
                pytest.fail(f"{what} did not happen within {PATIENCE_S:g} s after {self.faults}; {ends}")
            time.sleep(0.1)

    def wait_for_commits(self, of: Callable[[Iterable[bool]], bool] = all) -> None:
        """A fault must hit a working group: every partition moves on."""
        before = positions(str(self.table), self.group)
        keys = self.keys()

        def moved() -> bool:
            now = positions(str(self.table), self.group)
            return of(now.get(key, 0) > before.get(key, 0) for key in keys)

        self.until(moved, f"progress of {of.__name__} partitions")

    def keys(self) -> list[Key]:
        """Every partition."""
        return [Key(topic, partition) for topic in self.topics for partition in range(PARTITIONS)]

    def committers(self) -> set[str]:
        """The agents that have committed so far."""
        lines = (one.read_text().splitlines() for one in (self.table / "_delta_log").glob("*.json"))
        notes = (json.loads(line).get("commitInfo", {}) for found in lines for line in found if "commitInfo" in line)
        return {note["kafka-azimuth"]["agent"] for note in notes if "kafka-azimuth" in note}

    def fault(self, kind: str) -> None:
        """Do one of FAULTS."""
        victim = self.random.choice(self.agents)
        verb, part = kind.split()
        self.faults.append(f"{kind} {victim.name}")
        if part == "broker":
            number = self.random.choice(self.cluster.brokers).id
            self.cluster.kill(number)
            # A partition whose replicas were not all in sync may have to wait for its broker.
            self.wait_for_commits(of=any)
            self.cluster.start(number, timeout_s=PATIENCE_S)
        elif verb == "kill":
            _send(victim.part(part), signal.SIGKILL)
        elif verb == "term":
            _send(victim.part("driver"), signal.SIGTERM)
        else:
            stopped = victim.part(part)
            _send(stopped, signal.SIGSTOP)
            try:
                # The zombie goes on only after others have committed its partitions.
                self.wait_for_commits() if part in {"tree", "jvm"} else time.sleep(SESSION_S + 2)
            finally:
                _send(stopped, signal.SIGCONT)

    def watermarks(self) -> dict[Key, int]:
        """Where every partition ends in Kafka."""
        consumer = Consumer({"bootstrap.servers": self.cluster.bootstrap_servers, "group.id": "watermarks"})
        found = {key: consumer.get_watermark_offsets(TopicPartition(*key), timeout=20)[1] for key in self.keys()}
        consumer.close()
        return found


_ALL = (
    "kill tree,stop tree,kill reader,kill jvm,term driver,kill worker,kill driver,stop jvm,stop reader,stop worker,"
    "kill broker"
)
FAULTS = os.environ.get("AZIMUTH_CHAOS_FAULTS", _ALL).split(",")


@pytest.fixture
def chaos(cluster: Cluster, tmp_path: Path, topic: MakeTopic, request: pytest.FixtureRequest) -> Iterator[Chaos]:
    """Agents that are gone when the test ends, with all that is below them."""
    topics = [topic(f"t{number}", partitions=PARTITIONS, replication=3) for number in range(TOPICS)]
    made = Chaos(cluster, tmp_path, topics, request.param)
    try:
        yield made
    finally:
        for agent in made.agents:
            agent.end()


@pytest.mark.parametrize("chaos", SEEDS, indirect=True)
def test_every_record_once_whatever_is_killed(chaos: Chaos, request: pytest.FixtureRequest) -> None:
    """Agents, their parts and brokers die, sleep and come back; the table alone says that nothing is lost or double."""
    seed = request.node.callspec.params["chaos"]
    sys.stdout.write(f"chaos: seed {seed}, {SECONDS:g} s\n")
    stream = Stream(chaos.cluster.bootstrap_servers, chaos.topics)
    try:
        chaos.until(lambda: chaos.table.exists() and chaos.committers() == {"one", "two"}, "a commit of each agent")
        kinds = chaos.random.sample(FAULTS, len(FAULTS))
        ends = time.monotonic() + SECONDS
        while kinds and time.monotonic() < ends:
            chaos.fault(kinds.pop())
            chaos.wait_for_commits()
            kinds = kinds or chaos.random.sample(FAULTS, len(FAULTS))
    finally:
        stream.end()
    expected = chaos.watermarks()
    chaos.until(lambda: positions(str(chaos.table), chaos.group) == expected, "the end of every partition")
    report = verify(str(chaos.table))
    sys.stdout.write(f"chaos: {report.rows} rows after {', '.join(chaos.faults)}\n")
    assert (report.rows, report.duplicates, report.missing) == (sum(expected.values()), 0, 0), f"seed {seed}"
