"""The assignors inside kafka-python's own KafkaConsumer."""

import contextlib
import threading
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from itertools import pairwise
from typing import Any

import pytest
from kafka import ConsumerRebalanceListener, KafkaConsumer
from kafka.coordinator.assignors.cooperative_sticky import CooperativeStickyAssignor

from assignors import HRWAssignor
from tests.integration.assignors.conftest import Topics
from tests.waiting import wait_until

PARTITIONS = 12
MEMBERS = 3
WORK_S = 0.3
SHORT_MS = 300


class Polling(ConsumerRebalanceListener):
    """A consumer that is polled in a thread, with the time of each change of its partitions."""

    def __init__(self, topics: Topics, topic: str, name: str, assignors: list[Any]) -> None:
        self.name = name
        self.changes: list[tuple[float, str, set[Any]]] = []
        self._ended = threading.Event()
        config = topics.config(group_instance_id=name, partition_assignment_strategy=assignors)
        self.consumer = KafkaConsumer(**config)
        self.consumer.subscribe([topic], listener=self)
        self._thread = threading.Thread(target=self._poll, name=name)
        self._thread.start()

    def on_partitions_assigned(self, assigned: Any) -> None:
        """Note it."""
        self.changes.append((time.monotonic(), "assigned", set(assigned)))

    def on_partitions_revoked(self, revoked: Any) -> None:
        """Note it at the end of some work on the last records."""
        time.sleep(WORK_S)
        self.changes.append((time.monotonic(), "revoked", set(revoked)))

    def on_partitions_lost(self, lost: Any) -> None:
        """Note it."""
        self.changes.append((time.monotonic(), "revoked", set(lost)))

    def close(self) -> None:
        """End it."""
        self._ended.set()
        self._thread.join(60)
        assert not self._thread.is_alive()

    def reads(self) -> set[Any]:
        """The partitions that it was assigned and has not given up."""
        found: set[Any] = set()
        for _, kind, partitions in list(self.changes):
            found = found | partitions if kind == "assigned" else found - partitions
        return found

    def _poll(self) -> None:
        while not self._ended.is_set():
            self.consumer.poll(500)
        self.consumer.close()


def settled(group: list[Polling]) -> bool:
    """Whether they read all partitions, and each once."""
    read = [one.reads() for one in group]
    return len(set().union(*read)) == sum(map(len, read)) == PARTITIONS


def _agreed(topics: Topics, group: list[Polling], assignor: str) -> bool:
    return topics.assignor() == assignor and settled(group)


def read_twice(group: list[Polling]) -> list[Any]:
    """The partitions that one was assigned while another still read them."""
    spans: dict[Any, list[tuple[float, float, str]]] = {}
    for one in group:
        since: dict[Any, float] = {}
        for at, kind, partitions in one.changes:
            for partition in partitions:
                if kind == "assigned":
                    since[partition] = at
                elif partition in since:
                    spans.setdefault(partition, []).append((since.pop(partition), at, one.name))
        for partition, at in since.items():
            spans.setdefault(partition, []).append((at, float("inf"), one.name))
    return [
        (partition, first, second)
        for partition, some in spans.items()
        for first, second in pairwise(sorted(some))
        if second[0] < first[1]
    ]


@pytest.mark.integration
@pytest.mark.parametrize("by_pattern", [False, True])
@pytest.mark.parametrize("cooperative", [False, True])
def test_a_join_that_outlasts_a_poll_brings_the_changed_topics(
    topics: Topics,
    *,
    cooperative: bool,
    by_pattern: bool,
) -> None:
    """kafka-python ignores the answer if no poll waits for it; then the member reads its old partitions for good.

    The broker answers a member's join when the others have joined too, so one busy member is enough.
    """
    old, new = topics.make("old", partitions=2)[0], f"{topics.prefix}.new"
    with contextlib.ExitStack() as stack:
        group: list[Any] = []
        for name in ("a", "b"):
            assignor = HRWAssignor(cooperative=cooperative)
            config = topics.config(group_instance_id=name, partition_assignment_strategy=[assignor])
            one = stack.enter_context(contextlib.closing(KafkaConsumer(**config)))
            one.subscribe(**({"pattern": topics.pattern} if by_pattern else {"topics": [old]}))
            group.append(one)

        def each_reads_one_of(*names: str) -> bool:
            with ThreadPoolExecutor() as threads:
                list(threads.map(lambda one: one.poll(SHORT_MS), group))
            read = [[one.topic for one in member.assignment()] for member in group]
            stable = all(member._coordinator.stable() for member in group)
            return stable and all(sorted(some) == sorted(names) for some in read)

        wait_until(lambda: each_reads_one_of(old), 60)
        (follower,) = (one for one in group if not one._coordinator._is_leader)
        topics.make("new", partitions=2)
        if not by_pattern:
            for one in group:
                one.subscribe([old, new])

        def joins() -> bool:
            follower.poll(SHORT_MS)
            return bool(follower._coordinator.rebalance_in_progress())

        wait_until(joins, 60)
        wait_until(lambda: each_reads_one_of(old, new), 60)


@pytest.mark.slow
def test_a_cooperative_group_changes_its_assignor_and_goes_back(topics: Topics) -> None:
    """Two rolling restarts each way: no partition is read by two members, as kafka-python informs only one assignor."""
    (topic,) = topics.make("t", partitions=PARTITIONS)
    both: dict[str, Callable[[], list[Any]]] = {
        "hrw-cooperative": lambda: [HRWAssignor(cooperative=True), CooperativeStickyAssignor()],
        "cooperative-sticky": lambda: [CooperativeStickyAssignor(), HRWAssignor(cooperative=True)],
    }
    group = [Polling(topics, topic, f"host-{n}", [CooperativeStickyAssignor()]) for n in range(MEMBERS)]
    ended: list[Polling] = []
    try:
        wait_until(lambda: settled(group), 60)
        for name, offered in both.items():
            for n in range(MEMBERS):
                group[n].close()
                ended.append(group[n])
                group[n] = Polling(topics, topic, f"host-{n}", offered())
                wait_until(lambda: settled(group), 90)
            wait_until(partial(_agreed, topics, group, name), 90)
    finally:
        for one in group:
            one.close()
    assert read_twice(ended + group) == []
