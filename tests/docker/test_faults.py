"""The whole pipeline, from AZ-aware producers to Delta, while brokers freeze, lose the network and die."""

import contextlib
import sys
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import psutil
import pytest
from confluent_kafka import Consumer, KafkaError, Message, TopicPartition
from deltalake import DeltaTable

from producer import AZAwareProducer
from spark_sink import positions
from spark_sink.demo.topics import create_topics
from spark_sink.lake.holes_and_doubles import verify
from spark_sink.ranges.batch_offset import TopicPartition as Key
from tests.docker.zones import RACKS, Zones

pytestmark = pytest.mark.docker

TOPICS, PARTITIONS = 4, 3
PATIENCE_S = 180.0
START_S = 2 * PATIENCE_S  # two Sparks and three brokers that begin together, on a machine that has other work
GROUP = "docker"


class Flow:
    """A producer per zone, each sending to all topics until `end`."""

    def __init__(self, servers: str, topics: list[str]) -> None:
        config = {"bootstrap.servers": servers, "enable.idempotence": True, "linger.ms": 20, "log_level": 2}
        # With more requests in flight librdkafka may repeat records once too few replicas are in sync (its issue 4953).
        config |= {"delivery.timeout.ms": int(2 * PATIENCE_S * 1000), "max.in.flight": 1}
        self.producers = [AZAwareProducer({**config, "client.rack": rack}, keys="local-hrw") for rack in RACKS]
        self.acknowledged = 0
        self.errors: list[str] = []
        self._topics = topics
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._run)
        self._thread.start()

    def _run(self) -> None:
        number = 0
        while not self._ended.wait(0.1):
            for producer in self.producers:
                for topic in self._topics:
                    number += 1
                    producer.produce(topic, str(number), str(number % 97), on_delivery=self._delivered)
                producer.poll(0)

    def _delivered(self, error: KafkaError | None, _message: Message) -> None:
        if error is None:
            self.acknowledged += 1
        else:
            self.errors.append(str(error))

    def end(self) -> None:
        """Stop sending; all sent records are acknowledged at the return."""
        self._ended.set()
        self._thread.join()
        while self.producers:
            producer = self.producers.pop()
            assert producer.flush(PATIENCE_S) == 0
            producer.close()


class Pipeline:
    """Two agents that read a group's topics into one table."""

    def __init__(self, zones: Zones, root: Path, topics: list[str]) -> None:
        self.keys = [Key(topic, partition) for topic in topics for partition in range(PARTITIONS)]
        self.table = str(root / "table")
        self.servers = zones.bootstrap_servers
        self._agents: list[psutil.Popen] = []
        self._logs = [root / f"{name}.log" for name in ("one", "two")]
        for name, log in zip(("one", "two"), self._logs, strict=True):
            command = [sys.executable, "-m", "spark_sink", "sink", "--agent", name, "--group", GROUP]
            command += ["--bootstrap-servers", self.servers, "--table", self.table, "--subscribe", ",".join(topics)]
            command += ["--trigger", "300 milliseconds", "--checkpoint", str(root / f"checkpoint-{name}")]
            command += ["--kafka", "session.timeout.ms=6000", "--kafka", "heartbeat.interval.ms=1000"]
            with log.open("wb") as output:
                self._agents.append(psutil.Popen(command, stdout=output, stderr=output, start_new_session=True))

    def until(self, condition: Callable[[], bool], what: str, patience_s: float = PATIENCE_S) -> None:
        """Wait for a condition; agents must survive all faults of the brokers."""
        deadline = time.monotonic() + patience_s
        while not condition():
            dead = [agent for agent in self._agents if agent.poll() is not None]
            if dead or time.monotonic() > deadline:
                ends = "\n".join(log.read_text(errors="replace")[-1500:] for log in self._logs)
                pytest.fail(f"{what}: {'an agent ended' if dead else f'not within {patience_s:g} s'}; {ends}")
            time.sleep(0.2)

    def positions(self) -> dict[Key, int]:
        """Return the table's positions."""
        return positions(self.table, GROUP) if Path(self.table).exists() else {}

    def progress(self, what: str, patience_s: float = PATIENCE_S) -> None:
        """Wait until every partition has made progress."""
        before = self.positions()

        def moved() -> bool:
            now = self.positions()
            return all(now.get(key, 0) > before.get(key, 0) for key in self.keys)

        self.until(moved, what, patience_s)

    def ends(self) -> dict[Key, int]:
        """Return the ends of the partitions in Kafka."""
        consumer = Consumer({"bootstrap.servers": self.servers, "group.id": "ends"})
        found = {key: consumer.get_watermark_offsets(TopicPartition(*key), timeout=20)[1] for key in self.keys}
        consumer.close()
        return found

    def close(self) -> None:
        """Kill the agents with their child processes."""
        for agent in self._agents:
            with contextlib.suppress(psutil.NoSuchProcess):
                for process in [*agent.children(recursive=True), agent]:
                    process.kill()
            agent.wait()


@pytest.fixture
def running(zones: Zones, tmp_path: Path) -> Iterator[tuple[Flow, Pipeline]]:
    """Records flow, and agents write them."""
    topics = [f"docker.{number}" for number in range(TOPICS)]
    create_topics(
        zones.bootstrap_servers, topics, partitions=PARTITIONS, replicas=3, config={"min.insync.replicas": "2"}
    )
    flow = Flow(zones.bootstrap_servers, topics)
    pipeline = Pipeline(zones, tmp_path, topics)
    try:
        yield flow, pipeline
    finally:
        pipeline.close()
        with contextlib.suppress(AssertionError):
            flow.end()


def test_every_record_once_whatever_happens_to_the_brokers(zones: Zones, running: tuple[Flow, Pipeline]) -> None:
    """Frozen, cut off, delayed, two of three dead: acknowledged records are in the table once, and none is refused."""
    flow, pipeline = running
    pipeline.progress("first commits", START_S)
    share = sum(p.traffic().cross.records for p in flow.producers)
    assert share == 0, f"{share} records left their zone although every zone leads"

    zones.pause(2)
    _some_progress(pipeline, "a frozen broker")
    zones.unpause(2)
    pipeline.progress("after a frozen broker")

    zones.cut(3)
    _some_progress(pipeline, "a broker off the network")
    zones.mend(3)
    pipeline.progress("after a broker off the network")

    refused = zones.delay(1, 40)
    sys.stdout.write("delay of 40 ms between zones: " + (refused or "on") + "\n")
    if refused is None:
        pipeline.progress("with a delay")
        assert zones.delay(1, 0) is None

    zones.kill(1, 2)  # no quorum, no leader, nothing moves
    zones.start(1, 2)
    pipeline.progress("after two of three brokers died")

    flow.end()
    expected = pipeline.ends()
    pipeline.until(lambda: pipeline.positions() == expected, "the end of every partition")
    report = verify(pipeline.table)
    sys.stdout.write(f"{report.rows} rows, {flow.acknowledged} acknowledged, {len(flow.errors)} refused\n")
    assert (report.duplicates, report.missing, flow.errors) == (0, 0, [])
    assert _repeated(pipeline.table) == []  # by the producers: the log itself would hold them twice
    assert report.rows == flow.acknowledged


def _repeated(table: str) -> list[dict[str, Any]]:
    """Records that are in the log more than once, with their places; each was sent with a number of its own."""
    rows = (
        DeltaTable(table).to_pyarrow_table(columns=["value", "topic", "partition", "offset", "timestamp"]).to_pylist()
    )
    times = Counter(row["value"] for row in rows)
    return sorted((row for row in rows if times[row["value"]] > 1), key=lambda row: str(row["value"]))


def _some_progress(pipeline: Pipeline, what: str) -> None:
    """Wait until partitions whose leaders live have moved on: two thirds of them at least, once leaders have moved."""
    before = pipeline.positions()

    def moved() -> bool:
        now = pipeline.positions()
        return sum(now.get(key, 0) > before.get(key, 0) for key in pipeline.keys) >= 2 * len(pipeline.keys) // 3

    pipeline.until(moved, what)
