"""On real brokers: load doubles and workers rise, it halves and they fall once; lag is what it is."""

import threading
import time
import uuid
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import Producer
from confluent_kafka.admin import AdminClient
from kafka import KafkaConsumer

from assignors import HRWAssignor
from assignors.scaling import NEVER, UNKNOWN, Decision, ScaledTopic, WorkersRecord
from assignors.scaling.evaluator import Evaluator
from assignors.scaling.evaluator_settings import ScalingSettings
from assignors.scaling.kafka_lag import KafkaLag
from assignors.scaling.pipelines import Pipeline
from assignors.scaling.state_store import MemoryStore
from assignors.scaling.workers_topic_client import WorkersFeed, WorkersPublisher
from spark_sink.demo.cluster import Cluster
from spark_sink.demo.topics import create_topics

pytestmark = pytest.mark.integration
PARTITIONS = 8
RATE = 50.0
SLO_S = 6.0


@pytest.fixture
def topic(cluster: Cluster) -> Iterator[str]:
    """A topic of eight partitions."""
    name = f"scaling.{uuid.uuid4().hex[:10]}"
    create_topics(cluster.bootstrap_servers, [name], partitions=PARTITIONS, replicas=2, config={})
    yield name
    AdminClient({"bootstrap.servers": cluster.bootstrap_servers, "log_level": 0}).delete_topics([name])


class Load:
    """Writes records at a rate that can be changed, round and round over the partitions."""

    def __init__(self, cluster: Cluster, topic: str, rate: float) -> None:
        self.rate = rate
        self._stopped = threading.Event()
        self._producer = Producer({"bootstrap.servers": cluster.bootstrap_servers, "linger.ms": 20})
        self._thread = threading.Thread(target=self._run, args=(topic,))
        self._thread.start()

    def _run(self, topic: str) -> None:
        due, number, last = 0.0, 0, time.monotonic()
        while not self._stopped.wait(0.05):
            now = time.monotonic()
            due, last = due + (now - last) * self.rate, now
            while due >= 1:
                self._producer.produce(topic, b"x" * 100, partition=number % PARTITIONS)
                number, due = number + 1, due - 1
            self._producer.poll(0)

    def stop(self) -> None:
        """End, with everything delivered."""
        self._stopped.set()
        self._thread.join()
        self._producer.flush(10)


class Reader:
    """A member of the group that reads `RATE` records a second at most, and commits twice a second."""

    def __init__(self, cluster: Cluster, topic: str, name: str, workers: Callable[[], Any]) -> None:
        self.assigned: list[frozenset[int]] = []
        self._stopped = threading.Event()
        self._consumer = KafkaConsumer(
            topic,
            bootstrap_servers=cluster.bootstrap_servers.split(","),
            group_id=topic,
            group_instance_id=name,
            partition_assignment_strategy=[HRWAssignor(workers=workers, watch_interval_s=0.5)],
            enable_auto_commit=False,
            auto_offset_reset="earliest",
            heartbeat_interval_ms=300,
            session_timeout_ms=10_000,
        )
        self._thread = threading.Thread(target=self._run)
        self._thread.start()

    def _run(self) -> None:
        allowed, last, committed = 0.0, time.monotonic(), time.monotonic()
        while not self._stopped.is_set():
            now = time.monotonic()
            allowed, last = min(allowed + (now - last) * RATE, RATE), now
            if allowed < 5:
                self._stopped.wait(0.05)
                continue
            found = self._consumer.poll(timeout_ms=100, max_records=int(allowed))
            allowed -= sum(map(len, found.values()))
            held = frozenset(one.partition for one in self._consumer.assignment())
            if not self.assigned or self.assigned[-1] != held:
                self.assigned.append(held)
            if now - committed > 0.5 and held:
                self._consumer.commit_async()
                committed = now
        self._consumer.close()

    def stop(self) -> None:
        """Leave the group."""
        self._stopped.set()

    def join(self) -> None:
        """Wait for the end."""
        self._thread.join(30)


@pytest.mark.slow
def test_workers_follow_the_load(cluster: Cluster, topic: str, tmp_path: Path) -> None:
    """Doubled: more workers, and the lag is under the objective again. Halved: fewer, once. Moves are counted."""
    kafka = {"bootstrap.servers": cluster.bootstrap_servers}
    numbers_topic = f"{topic}.workers"
    pipeline = Pipeline(group=topic, topics=(topic,), slo_s=SLO_S, worker_rate=RATE, rebalance_s=1.0, workers=2)
    settings = ScalingSettings(
        bootstrap_servers=cluster.bootstrap_servers,
        journal=tmp_path / "decisions.jsonl",
        workers_topic=numbers_topic,
        pipelines={"test": pipeline},
    )
    publisher = WorkersPublisher(kafka, numbers_topic)
    evaluator = Evaluator(settings, KafkaLag(kafka), MemoryStore(), publisher)
    current: dict[str, int] = {topic: 2}
    load = Load(cluster, topic, 1.5 * RATE)
    readers: list[Reader] = []
    made: list[Decision] = []
    feed = WorkersFeed(kafka, numbers_topic)

    def until(true: Callable[[Decision], bool], what: str, timeout_s: float = 120.0) -> Decision:
        end = time.monotonic() + timeout_s
        while time.monotonic() < end:
            made.extend(evaluator.round())
            feed.refresh(1.0)
            cluster_id = next(iter(feed.records)).cluster if feed.records else ""
            current.update(feed.workers(cluster_id, topic))
            if made and true(made[-1]):
                return made[-1]
            time.sleep(0.4)
        raise AssertionError(f"{what}: {[(d.before, d.workers, d.reason) for d in made[-5:]]}")

    try:
        readers += [Reader(cluster, topic, f"reader-{n}", lambda: current[topic]) for n in range(6)]
        until(lambda d: calm(d) and d.workers == 2, "two workers read what comes")
        load.rate = 3 * RATE
        until(lambda d: d.workers > 2, "twice the load asks for more workers")
        raised = until(lambda d: calm(d) and holders(readers) == d.workers, "more workers bring the lag down")
        assert raised.workers > 2
        begin = len(made)
        load.rate = 1.5 * RATE
        until(lambda d: d.workers < raised.workers, "half the load asks for fewer")
        until(lambda d: calm(d) and holders(readers) == d.workers, "fewer workers keep the lag low")
        falls = [d for d in made[begin:] if d.workers < d.before]
        assert len(falls) == 1
        moved = sum(len(b - a) for r in readers for a, b in zip(r.assigned, r.assigned[1:], strict=False))
        print(f"workers 2 -> {raised.workers} -> {falls[0].workers}, {moved} partitions moved")  # noqa: T201 - a figure
        assert moved > 0
    finally:
        load.stop()
        for reader in readers:
            reader.stop()
        for reader in readers:
            reader.join()
        feed.close()
        AdminClient({**kafka, "log_level": 0}).delete_topics([numbers_topic])


def calm(decision: Decision) -> bool:
    """All partitions are known, and none is older than the objective."""
    return not decision.findings and float(decision.view.lag_s.max()) < SLO_S


def holders(readers: list[Reader]) -> int:
    """How many members hold partitions."""
    return sum(bool(reader.assigned and reader.assigned[-1]) for reader in readers)


def test_lag_is_what_was_written_less_what_was_committed(cluster: Cluster, topic: str) -> None:
    """By hand: offsets, a partition never committed, a topic that is not there."""
    kafka = {"bootstrap.servers": cluster.bootstrap_servers}
    producer = Producer(kafka)
    for number in range(400):
        producer.produce(topic, b"x", partition=number % 4)
    producer.flush(10)
    consumer = KafkaConsumer(bootstrap_servers=cluster.bootstrap_servers.split(","), group_id=topic)
    from kafka import OffsetAndMetadata, TopicPartition  # noqa: PLC0415 -- only here

    consumer.commit({TopicPartition(topic, 0): OffsetAndMetadata(30, "", -1)})
    consumer.close()
    source = KafkaLag(kafka)
    facts = source.topics([topic, "no-such-topic"], None)
    assert facts.keys() == {topic}
    assert facts[topic].partitions == PARTITIONS
    assert facts[topic].retention_s == 7 * 86_400
    one = source.observe(topic, facts)[topic]
    assert one.end.tolist() == [100] * 4 + [0] * 4
    assert one.start.tolist() == [0] * 8
    assert one.committed.tolist() == [30] + [NEVER] * 7


@pytest.mark.slow
def test_a_broker_that_dies_leaves_unknowns_and_then_answers(cluster: Cluster, topic: str) -> None:
    """No partition keeps an old value; after the failover all are known again, by the same source."""
    source = KafkaLag({"bootstrap.servers": cluster.bootstrap_servers})
    facts = source.topics([topic], None)
    assert (source.observe(topic, facts)[topic].end != UNKNOWN).all()
    cluster.kill(1)
    try:
        end = time.monotonic() + 60
        while (source.observe(topic, facts)[topic].end == UNKNOWN).any():
            assert time.monotonic() < end, "offsets stay unknown after the failover"
            time.sleep(0.2)
    finally:
        cluster.start(1)
        cluster.wait_until_up(60)


def test_numbers_are_followed_and_taken_back(cluster: Cluster) -> None:
    """What one publishes, another reads: at once, from the beginning, and a tombstone takes it back."""
    kafka = {"bootstrap.servers": cluster.bootstrap_servers}
    name = f"workers.{uuid.uuid4().hex[:10]}"
    with WorkersFeed(kafka, name) as feed:
        assert feed.refresh() is False  # no such topic yet
        publisher = WorkersPublisher(kafka, name)
        one, other = ScaledTopic("c", "g", "flights"), ScaledTopic("c", "g/2", "flights")
        publisher.publish(one, WorkersRecord(workers=3, at_ms=1))
        publisher.publish(one, WorkersRecord(workers=4, at_ms=2))
        publisher.publish(other, WorkersRecord(workers=7, at_ms=3))
        end = time.monotonic() + 30
        while feed.workers("c", "g/2") != {"flights": 7}:
            feed.refresh(1.0)
            assert time.monotonic() < end
        assert feed.workers("c", "g") == {"flights": 4}
        publisher.publish(one, None)
        while feed.workers("c", "g"):
            feed.refresh(1.0)
            assert time.monotonic() < end
    AdminClient({**kafka, "log_level": 0}).delete_topics([name])
