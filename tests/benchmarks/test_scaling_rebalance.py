"""The cost of a change of the number of workers in a real group: the time of each partition without a reader."""

import statistics
import threading
import time
import uuid
from collections.abc import Iterator
from itertools import pairwise
from typing import Any

import pytest
from confluent_kafka import Producer
from confluent_kafka.admin import AdminClient

from assignors import GroupConsumer, HRWAssignor
from assignors.simulation.simulator import World
from spark_sink.demo.cluster import Cluster
from spark_sink.demo.topics import create_topics
from tests.benchmarks.scaling_report import save
from tests.waiting import wait_until

pytestmark = pytest.mark.benchmark
PARTITIONS = 32
EACH_S = 0.05  # between two records of a partition
SIZES = (2, 4, 3, 6, 5, 6, 2, 3)  # so many members may hold partitions, one after the other


class Load:
    """A record for each partition again and again, from a thread."""

    def __init__(self, cluster: Cluster, topic: str) -> None:
        self._producer = Producer({"bootstrap.servers": cluster.bootstrap_servers, "linger.ms": 5})
        self._topic = topic
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._run)
        self._thread.start()

    def _run(self) -> None:
        while not self._ended.wait(EACH_S):
            for partition in range(PARTITIONS):
                self._producer.produce(self._topic, b"v" * 100, partition=partition)
            self._producer.poll(0)

    def stop(self) -> None:
        """End."""
        self._ended.set()
        self._thread.join()
        self._producer.flush(10)


class Member:
    """One consumer of the group, in a thread, with the times of its reads."""

    def __init__(self, group: "Group", number: int) -> None:
        self.held: set[int] = set()
        self._group = group
        self._ended = threading.Event()
        config = {
            "bootstrap.servers": group.cluster.bootstrap_servers,
            "group.id": group.topic,
            "group.instance.id": f"member-{number}",
            "auto.offset.reset": "latest",
        }
        assignor = HRWAssignor(workers=group.workers, cooperative=group.cooperative, watch_interval_s=1.0)
        self._consumer = GroupConsumer(config, assignors=[assignor])
        self._thread = threading.Thread(target=self._run)
        self._thread.start()

    def _run(self) -> None:
        self._consumer.subscribe([self._group.topic])
        while not self._ended.is_set():
            for message in self._consumer.consume(1000, timeout=0.05):
                self._group.reads[message.partition() or 0].append(time.monotonic())
            self.held = {one.partition for one in self._consumer.assignment()}
        self._consumer.close()

    def stop(self) -> None:
        """Leave the group."""
        self._ended.set()
        self._thread.join()


class Group:
    """All members; how many of them may hold partitions can be changed."""

    def __init__(self, cluster: Cluster, topic: str, *, cooperative: bool) -> None:
        self.cluster, self.topic, self.cooperative = cluster, topic, cooperative
        self.size = SIZES[0]
        self.reads: list[list[float]] = [[] for _ in range(PARTITIONS)]
        self.members = [Member(self, number) for number in range(max(SIZES))]

    def workers(self) -> int:
        """How many members may hold partitions now."""
        return self.size

    def flows(self, since: float) -> bool:
        """Whether so many members hold all partitions, and all of these have been read since."""
        held = [member.held for member in self.members if member.held]
        together = sum(map(len, held)) == len(set().union(*held)) == PARTITIONS
        return together and len(held) == self.size and all(times and times[-1] > since for times in self.reads)

    def resize(self, size: int) -> dict[str, float]:
        """Change the number, wait until records flow everywhere, and say what that took."""
        before = [member.held for member in self.members]
        began, self.size = time.monotonic(), size
        wait_until(lambda: self.flows(began), 90)
        settled = time.monotonic()
        wait_until(lambda: self.flows(settled), 30)
        gaps = [max(pairwise(_around(times, began)), key=lambda two: two[1] - two[0]) for times in self.reads]
        lengths = [end - begin for begin, end in gaps]
        paused = [begin - began for begin, end in gaps if end - begin > 10 * EACH_S]
        moved = sum(len(member.held - held) for member, held in zip(self.members, before, strict=True))
        return {
            "pause_s": max(lengths),
            "pause_mean_s": statistics.fmean(lengths),
            "partitions_paused": len(paused),
            "starts_after_s": min(paused, default=0.0),
            "all_flow_after_s": max(end for _, end in gaps) - began,
            "moved": moved,
        }

    def stop(self) -> None:
        """Leave, one after the other."""
        for member in self.members:
            member.stop()


def _around(times: list[float], began: float) -> list[float]:
    """The reads of a partition from the last one before a time on."""
    first = next(number for number, at in enumerate(times) if at >= began)
    return times[max(first - 1, 0) :]


@pytest.fixture
def topic(cluster: Cluster) -> Iterator[str]:
    """A topic of this benchmark's own."""
    name = f"rebalance.{uuid.uuid4().hex[:8]}"
    create_topics(cluster.bootstrap_servers, [name], partitions=PARTITIONS, replicas=1, config={})
    yield name
    AdminClient({"bootstrap.servers": cluster.bootstrap_servers, "log_level": 0}).delete_topics([name])


@pytest.mark.parametrize("cooperative", [False, True], ids=["eager", "cooperative"])
def test_what_a_resize_costs(cluster: Cluster, topic: str, cooperative: bool) -> None:  # noqa: FBT001 - a case
    """From a new number to records flowing everywhere, `GroupConsumer`s with the clients' default times."""
    group = Group(cluster, topic, cooperative=cooperative)
    load = Load(cluster, topic)
    try:
        wait_until(lambda: group.flows(time.monotonic() - 1), 90)
        rounds: list[dict[str, Any]] = [{"to": size, **group.resize(size)} for size in SIZES[1:]]
    finally:
        load.stop()
        group.stop()
    pauses = [one["pause_s"] for one in rounds]
    save(
        f"rebalance_{'cooperative' if cooperative else 'eager'}",
        {
            "what": f"{PARTITIONS} partitions, {len(group.members)} members; pause_s: the longest time that a "
            "partition was read by nobody, a record every 50 ms",
            "pause_median_s": statistics.median(pauses),
            "pause_most_s": max(pauses),
            "starts_after_median_s": statistics.median(one["starts_after_s"] for one in rounds),
            "simulated": {"rebalance_s": World().rebalance_s, "start_s": World().start_s},
            "rounds": rounds,
        },
    )
