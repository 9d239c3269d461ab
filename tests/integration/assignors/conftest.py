"""Topics, records and members on the shared three-zone cluster."""

import uuid
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import Consumer, ConsumerGroupState, Producer
from confluent_kafka import TopicPartition as KafkaPartition
from confluent_kafka.admin import AdminClient
from confluent_kafka.cimpl import NewTopic

from spark_sink.demo.cluster import Cluster
from tests.integration.assignors.members import Process, Start
from tests.waiting import wait_until

METADATA_S = 1.0  # so often members look at what topics there are


class Topics:
    """Topics of one test, under a prefix of their own; removed at its end."""

    def __init__(self, bootstrap_servers: str) -> None:
        self.prefix = f"g{uuid.uuid4().hex[:8]}"
        self.group = f"{self.prefix}-group"
        self.pattern = f"{self.prefix}\\..*"
        self.bootstrap_servers = bootstrap_servers
        self.admin = AdminClient({"bootstrap.servers": bootstrap_servers, "log_level": 0})
        self._made: list[str] = []

    def make(self, *names: str, partitions: int = 3, replication: int = 1) -> list[str]:
        """Make topics, and wait until each partition has a leader."""
        full = [f"{self.prefix}.{name}" for name in names]
        self._made += full
        for future in self.admin.create_topics([NewTopic(one, partitions, replication) for one in full]).values():
            future.result(60)
        wait_until(lambda: self._led(full, partitions))
        return full

    def delete(self, *names: str) -> None:
        """Remove topics."""
        for future in self.admin.delete_topics(list(names)).values():
            future.result(60)
        self._made = [one for one in self._made if one not in names]

    def fill(self, names: list[str], records: int, partitions: int = 3) -> None:
        """Write so many records to each partition, values numbered from 0."""
        producer = Producer({"bootstrap.servers": self.bootstrap_servers, "linger.ms": 50, "log_level": 0})
        for number in range(records):
            for name in names:
                for partition in range(partitions):
                    producer.produce(name, str(number).encode(), partition=partition)
            producer.poll(0)
        assert producer.flush(60) == 0

    def committed(self, partitions: Iterable[tuple[str, int]]) -> dict[tuple[str, int], int]:
        """What another client finds committed."""
        other = Consumer({"bootstrap.servers": self.bootstrap_servers, "group.id": self.group, "log_level": 0})
        try:
            found = other.committed([KafkaPartition(*one) for one in partitions], timeout=20)
        finally:
            other.close()
        return {(one.topic, one.partition): one.offset for one in found if one.offset >= 0}

    def assignor(self) -> str:
        """The assignor that the group has agreed on; empty while it has none."""
        found = self.admin.describe_consumer_groups([self.group])[self.group].result(20)
        return str(found.partition_assignor)

    def state(self) -> ConsumerGroupState:
        """What the group is doing."""
        found: ConsumerGroupState = self.admin.describe_consumer_groups([self.group])[self.group].result(20).state
        return found

    def coordinator(self) -> int:
        """The broker that coordinates the group, when one says that it does."""
        found: list[int] = []

        def known() -> bool:
            # A new client each time: a used client keeps asking the broker that was the coordinator before.
            admin = AdminClient({"bootstrap.servers": self.bootstrap_servers, "log_level": 0})
            node = admin.describe_consumer_groups([self.group])[self.group].result(20).coordinator
            found.extend([] if node is None else [int(node.id)])
            return bool(found)

        wait_until(known)
        return found[0]

    def config(self, **more: object) -> dict[str, Any]:
        """Settings of a member, quick to notice what happens."""
        return {
            "bootstrap_servers": self.bootstrap_servers.split(","),
            "group_id": self.group,
            "session_timeout_ms": 6000,
            "heartbeat_interval_ms": 300,
            "metadata_max_age_ms": int(1000 * METADATA_S),
            "max_poll_interval_ms": 60_000,
            **more,
        }

    def consumer_config(self, **more: object) -> dict[str, Any]:
        """The same in librdkafka's words."""
        return {
            "bootstrap.servers": self.bootstrap_servers,
            "group.id": self.group,
            "session.timeout.ms": 6000,
            "heartbeat.interval.ms": 300,
            "topic.metadata.refresh.interval.ms": 1000,
            "max.poll.interval.ms": 60_000,
            "auto.offset.reset": "earliest",
            "enable.auto.commit": False,
            "log_level": 0,
            **more,
        }

    def broker_assigned_config(self, **more: object) -> dict[str, Any]:
        """The same for a member whose broker assigns."""
        classic = {"heartbeat.interval.ms", "session.timeout.ms"}
        kept = {name: value for name, value in self.consumer_config().items() if name not in classic}
        return {**kept, "group.protocol": "consumer", "group.remote.assignor": "azimuth-hrw", **more}

    def close(self) -> None:
        """Remove the created topics and groups."""
        if self._made:
            self.delete(*self._made)

    def _led(self, names: list[str], partitions: int) -> bool:
        found = self.admin.list_topics(timeout=10).topics
        return all(
            one in found
            and len(found[one].partitions) == partitions
            and all(part.leader >= 0 for part in found[one].partitions.values())
            for one in names
        )


@pytest.fixture
def topics(cluster: Cluster) -> Iterator[Topics]:
    """A topic prefix and a group that only this test uses."""
    made = Topics(cluster.bootstrap_servers)
    yield made
    made.close()


@pytest.fixture
def start(topics: Topics, tmp_path: Path, cooperative: bool) -> Iterator[Start]:  # noqa: FBT001 - a parameter
    """Start members by name, with more of their configuration; all are ended with the test."""
    started: list[Process] = []

    def begin(
        name: str,
        *,
        run: str = "",
        static: bool = False,
        workers: Path | None = None,
        plan_s: float = 0.0,
        **config: object,
    ) -> Process:
        if static:
            config["group_instance_id"] = name
        settings: dict[str, Any] = {
            "config": topics.config(**config),
            "pattern": topics.pattern,
            "cooperative": cooperative,
            "agent": name,
            "workers": None if workers is None else str(workers),
            "plan_s": plan_s,
        }
        started.append(Process(tmp_path, settings, name + run))
        return started[-1]

    yield begin
    for one in started:
        if one.killed_at is None:
            one.stop()
