"""A fleet of real processes on real brokers, records that keep coming, and what arrived when."""

import json
import os
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, Self

import pyarrow.parquet as pq
from confluent_kafka import KafkaError, KafkaException, Message, Producer
from confluent_kafka.admin import AdminClient
from confluent_kafka.cimpl import NewTopic

from spark_sink.demo.cluster import Cluster
from tests.counted_records import SETTINGS


def make_topics(
    servers: str, names: Sequence[str], partitions: int = 1, config: Mapping[str, str] | None = None
) -> None:
    """Make topics and wait until each has a leader."""
    admin = AdminClient({"bootstrap.servers": servers, "log_level": 0})
    wanted = [NewTopic(name, partitions, 1, config=dict(config or {})) for name in names]
    for answer in admin.create_topics(wanted).values():
        answer.result(60)
    wait_until(lambda: _have_leaders(admin, names), 60, "topics without a leader")


def make_again(servers: str, names: Sequence[str], partitions: int = 1) -> None:
    """Make topics whose names were deleted a moment ago: brokers may still be at that."""
    wait_until(lambda: _made(servers, names, partitions), 30, "made again")


def _made(servers: str, names: Sequence[str], partitions: int) -> bool:
    try:
        make_topics(servers, names, partitions)
    except KafkaException as error:
        if error.args[0].code() != KafkaError.TOPIC_ALREADY_EXISTS:
            raise
        return False
    return True


def delete_topics(servers: str, names: Sequence[str]) -> None:
    """Delete topics."""
    admin = AdminClient({"bootstrap.servers": servers, "log_level": 0})
    for answer in admin.delete_topics(list(names)).values():
        answer.result(60)


def send(servers: str, counts: Mapping[str, int]) -> None:
    """Put so many records into the first partition of each topic, and see each of them delivered."""
    refused: list[str] = []

    def delivered(error: KafkaError | None, _: object) -> None:
        if error is not None:
            refused.append(str(error))

    # A new client, which knows no topic from before.
    producer = Producer({"bootstrap.servers": servers, "linger.ms": 5, "log_level": 0})
    for topic, count in counts.items():
        for number in range(count):
            producer.produce(topic, str(number).encode(), partition=0, on_delivery=delivered)
    assert producer.flush(60) == 0
    assert not refused


def _have_leaders(admin: AdminClient, names: Sequence[str]) -> bool:
    found = admin.list_topics(timeout=10).topics
    return all(name in found and all(p.leader >= 0 for p in found[name].partitions.values()) for name in names)


def wait_until(fits: Callable[[], bool], timeout_s: float, what: str, state: Callable[[], str] | None = None) -> float:
    """Wait for a condition.

    Args:
        fits: the condition.
        timeout_s: how long.
        what: is waited for.
        state: asked for more to say where it was waited for in vain.

    Returns:
        Seconds waited.
    """
    began = time.monotonic()
    while not fits():
        assert time.monotonic() - began < timeout_s, f"after {timeout_s} s: {what}{': ' + state() if state else ''}"
        time.sleep(0.05)
    return time.monotonic() - began


def config(name: str, root: Path, cluster: Cluster, more: str = "") -> str:
    """The fleet's file, with one source."""
    return f"""
name = "{name}"
table = "{root}/lake/{{cluster}}"
session_s = 6
flush_s = 0.3
discover_s = 1
lanes = 2
{more}
[sources.home]
bootstrap_servers = "{cluster.bootstrap_servers}"
pattern = "{name}[.].*"
"""


class Feed:
    """A record for each topic, again and again, from a thread: `value`, filled with the present time in seconds."""

    def __init__(self, topics: Mapping[str, Sequence[str]], interval_s: float, value: str = "%s") -> None:
        self._producers = {servers: Producer({"bootstrap.servers": servers, **SETTINGS}) for servers in topics}
        self._topics = topics
        self._value = value
        self._interval_s = interval_s
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)
        self.sent = 0  # records that their broker acknowledged

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._ended.set()
        self._thread.join()
        for producer in self._producers.values():
            producer.flush(60)

    def _run(self) -> None:
        due = time.monotonic()
        while not self._ended.is_set():
            for servers, names in self._topics.items():
                producer = self._producers[servers]
                for name in names:
                    producer.produce(name, (self._value % time.time()).encode(), on_delivery=self._delivered)
                producer.poll(0)
            due += self._interval_s
            self._ended.wait(max(0.0, due - time.monotonic()))

    def _delivered(self, error: KafkaError | None, _message: Message) -> None:
        self.sent += error is None


class FleetProcesses:
    """Agents as people run them, each a process."""

    def __init__(self, root: Path, config: str) -> None:
        self.root = root
        root.mkdir(exist_ok=True)
        self._config = root / "fleet.toml"
        self._config.write_text(config)
        self._running: dict[str, subprocess.Popen[bytes]] = {}

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        for process in self._running.values():
            process.kill()
            process.wait()

    def start(
        self, *agents: str, config: Path | None = None, more: Mapping[str, str] | None = None, http: str | None = None
    ) -> None:
        """Start agents; `more` is their environment's, `http` the address of the page of the only one."""
        for agent in agents:
            environment = {
                **os.environ,
                "AZIMUTH_FLEET_AGENT": agent,
                "AZIMUTH_FLEET_STATUS_FILE": str(self.root / f"{agent}.json"),
                **(more or {}),
            }
            command = [sys.executable, "-m", "spark_sink", "agent", "--config", str(config or self._config)]
            command += [] if http is None else ["--http", http]
            with (self.root / f"{agent}.log").open("ab") as log:
                self._running[agent] = subprocess.Popen(command, env=environment, stdout=log, stderr=log)

    def kill(self, agent: str) -> float:
        """SIGKILL; when it was, seconds since 1970."""
        process = self._running.pop(agent)
        process.kill()
        killed = time.time()
        process.wait()
        return killed

    def end(self, agent: str) -> tuple[int, float]:
        """SIGTERM; the exit code, and the seconds until the process has ended."""
        process = self._running.pop(agent)
        began = time.monotonic()
        process.terminate()
        code = process.wait(60)
        return code, time.monotonic() - began

    def stop(self) -> dict[str, int]:
        """SIGTERM to all; their exit codes."""
        for process in self._running.values():
            process.terminate()
        codes = {agent: process.wait(60) for agent, process in self._running.items()}
        self._running = {}
        return codes

    def status(self, agent: str) -> dict[str, Any]:
        """What it wrote of itself last; empty before."""
        file = self.root / f"{agent}.json"
        found: dict[str, Any] = json.loads(file.read_text()) if file.exists() else {}
        return found

    def log(self, agent: str) -> str:
        """The output of the process."""
        return (self.root / f"{agent}.log").read_text()


def arrivals(table: Path) -> dict[str, list[tuple[float, str, int]]]:
    """When records became visible: by topic (commit time in seconds since 1970, agent, records), from the log only."""
    found: dict[str, list[tuple[float, str, int]]] = {}
    for file in sorted((table / "_delta_log").glob("*.json")):
        actions = [json.loads(line) for line in file.read_text().splitlines()]
        info = next(one["commitInfo"] for one in actions if "commitInfo" in one)
        agent = (info.get("kafka-azimuth") or {}).get("agent", "")
        for added in (one["add"] for one in actions if "add" in one and one["add"]["dataChange"]):
            topics = pq.read_table(table / added["path"], columns=["topic"]).column("topic")
            for one in topics.value_counts().to_pylist():
                found.setdefault(one["values"], []).append((info["timestamp"] / 1000, agent, one["counts"]))
    return {topic: sorted(times) for topic, times in found.items()}


def rows(tables: Sequence[Path]) -> int:
    """Records in the tables, from their logs."""
    return sum(count for table in tables for times in arrivals(table).values() for _, _, count in times)
