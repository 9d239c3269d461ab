"""Time and memory of a plan, compared with kafka-python's assignors, and on Kafka's own benchmark grid."""

import json
import random
import statistics
import subprocess
import sys
import time
from collections import defaultdict
from collections.abc import Callable, Iterable
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from kafka.coordinator.assignors.cooperative_sticky import CooperativeStickyAssignor
from kafka.coordinator.assignors.range import RangePartitionAssignor
from kafka.coordinator.assignors.roundrobin import RoundRobinPartitionAssignor
from kafka.coordinator.assignors.sticky.sticky_assignor import StickyPartitionAssignor
from kafka.protocol.consumer.metadata import ConsumerProtocolSubscription
from kafka.structs import TopicPartition

from assignors import HRWAssignor, Member, Plan, ShuffledRoundRobinAssignor, Topic, plan
from tests.benchmarks.assignors_report import save

pytestmark = pytest.mark.benchmark
Seconds = dict[str, float]


def make_group(members: int, topics: int, partitions: int, *, skewed: bool = False) -> tuple[list[Topic], list[Member]]:
    """Make a group; skewed: as Kafka's benchmark, topics in five buckets and each member reads one of them."""
    count = min(topics, partitions)
    made = [Topic(f"t{i:04d}", partitions // topics if partitions >= topics else 1) for i in range(count)]
    buckets = min(5, members, count) if skewed else 1
    sets = [frozenset(t.name for t in made[b::buckets]) for b in range(buckets)]
    return made, [Member(f"m{i:04d}", sets[i % buckets]) for i in range(members)]


def owning(made: Plan, members: Iterable[Member]) -> list[Member]:
    """Return the members with the partitions of a plan."""
    return [Member(m.id, m.topics, owned=frozenset(made.partitions[m.id]), generation=1) for m in members]


def clock(run: Callable[[], object], times: int) -> float:
    """Time a warm call: the median of the processor seconds of this thread, which other programs lengthen little."""
    run()
    seconds = []
    for _ in range(times):
        start = time.thread_time()
        run()
        seconds.append(time.thread_time() - start)
    return statistics.median(seconds)


def whole(topics: list[Topic], members: list[Member], **settings: Any) -> Callable[[], object]:
    """Plan and read the answer."""
    return lambda: plan(topics, members, **settings).partitions


def test_bars_of_speed() -> None:
    """The sizes the project promises; milliseconds, plan and answer together."""
    figures = {}
    for members, topics, partitions, bar in (
        (1000, 100, 10_000, "5, join 5"),
        (1000, 1000, 50_000, "300"),
        (30, 300, 300, "5"),
        (1000, 1000, 1000, "100"),
    ):
        given, people = make_group(members, topics, partitions)
        joined = [*owning(plan(given, people), people), Member("new", people[0].topics)]
        figures[f"{members} members, {partitions} partitions, {topics} topics"] = {
            "bar_ms": bar,
            "full_ms": 1000 * clock(whole(given, people), 9),
            "join_ms": 1000 * clock(whole(given, joined), 9),
            "full_exact_balance_ms": 1000 * clock(whole(given, people, epsilon=0), 3),
            "shuffled_ms": 1000 * clock(whole(given, people, strategy="shuffled", epsilon=0), 3),
        }
    given, people = make_group(1000, 100, 10_000)
    names = sorted(people[0].topics)
    unequal = [Member(m.id, frozenset(names[(i * 7) % 100 :] + names[: (i * 13) % 50])) for i, m in enumerate(people)]
    figures["unequal subscriptions, 1000 members, 10000 partitions"] = {
        "bar_ms": "500",
        "full_ms": 1000 * clock(whole(given, unequal), 3),
        "join_ms": 1000 * clock(whole(given, owning(plan(given, unequal[1:]), unequal[1:]) + unequal[:1]), 3),
    }
    racked = [Topic(t.name, t.partitions, racks=[frozenset("abc"[p % 3]) for p in range(t.partitions)]) for t in given]
    zones = [Member(m.id, m.topics, rack="abc"[i % 3]) for i, m in enumerate(people)]
    figures["racks, 1000 members, 10000 partitions"] = {"full_ms": 1000 * clock(whole(racked, zones), 3)}
    figures["workers=2, 1000 members, 10000 partitions, 1000 topics"] = {
        "full_ms": 1000 * clock(whole(*make_group(1000, 1000, 10_000), workers=2), 3)
    }
    save("speed", figures)


def test_joins_under_worker_caps() -> None:
    """1,000 members, 10,000 partitions, ten workers for each topic, in topics of equal and of random sizes."""
    rng = random.Random(7)
    sizes = {f"{count} equal topics": [10_000 // count] * count for count in (100, 200, 500, 1000)}
    for low, high in ((1, 19), (1, 39), (50, 150)):
        found: list[int] = []
        while sum(found) < 10_000:
            found.append(min(rng.randint(low, high), 10_000 - sum(found)))
        sizes[f"topics of {low} to {high}"] = found
    figures = {}
    for name, partitions in sizes.items():
        topics = [Topic(f"t{i:04d}", size) for i, size in enumerate(partitions)]
        names = frozenset(t.name for t in topics)
        members = [Member(f"m{i:04d}", names) for i in range(1000)]
        joined = [*owning(plan(topics, members, workers=10), members), Member("new", names)]
        made = plan(topics, joined, workers=10)
        figures[name] = {
            "join_ms": 1000 * clock(whole(topics, joined, workers=10), 5),
            "moved": made.moved,
            "lower bound": made.lower_bound,
        }
    save("joins under caps", figures)


class Cluster:
    """Metadata for an assignor."""

    def __init__(self, topics: Iterable[Topic]) -> None:
        """Take the topics."""
        self._topics = {t.name: set(range(t.partitions)) for t in topics}

    def partitions_for_topic(self, topic: str) -> set[int] | None:
        """As kafka-python."""
        return self._topics.get(topic)

    def topics(self) -> set[str]:
        """As kafka-python."""
        return set(self._topics)

    def brokers(self) -> list[object]:
        """No racks."""
        return []


def join(assignor: Any, owned: Iterable[tuple[str, int]], member: Member, generation: int) -> SimpleNamespace:
    """Create a JoinGroup member whose metadata contains its partitions, in each assignor's format."""
    by_topic: dict[str, list[int]] = defaultdict(list)
    for topic, partition in owned:
        by_topic[topic].append(partition)
    if isinstance(assignor, StickyPartitionAssignor):
        assignor.member_assignment = [TopicPartition(t, p) for t, p in owned] or None
        assignor.generation = generation
        said = assignor.metadata(set(member.topics))
    else:
        claims = [ConsumerProtocolSubscription.TopicPartition(topic=t, partitions=p) for t, p in by_topic.items()]
        said = ConsumerProtocolSubscription(
            version=3, topics=sorted(member.topics), user_data=None, owned_partitions=claims, generation_id=generation
        )
    said = ConsumerProtocolSubscription.decode(said.encode())
    return SimpleNamespace(member_id=member.id, group_instance_id=member.id, metadata=said)


PEERS: dict[str, Callable[[], Any]] = {
    "ours hrw": HRWAssignor,
    "ours shuffled": ShuffledRoundRobinAssignor,
    "range": RangePartitionAssignor,
    "roundrobin": RoundRobinPartitionAssignor,
    "sticky": StickyPartitionAssignor,
    "cooperative-sticky": CooperativeStickyAssignor,
}


def against_peers(members: int, topics: int, partitions: int, skip: Iterable[str] = ()) -> dict[str, Any]:
    """Full plan, then one member joins: seconds, loads, idle members, moved, topics a member reads."""
    given, people = make_group(members, topics, partitions)
    cluster, out = Cluster(given), {}
    for name in [n for n in PEERS if n not in skip]:
        assignor = PEERS[name]()
        fresh = [join(assignor, (), m, -1) for m in people]
        start = time.thread_time()
        answer = assignor.assign(cluster, fresh)
        full_s = time.thread_time() - start
        before = {m: {(t, p) for t, parts in a.assigned_partitions for p in parts} for m, a in answer.items()}
        grown = [*people, Member("new", people[0].topics)]
        rejoined = [join(assignor, sorted(before.get(m.id, ())), m, 1 if m.id in before else -1) for m in grown]
        start = time.thread_time()
        answer = assignor.assign(cluster, rejoined)
        join_s = time.thread_time() - start
        after = {m: {(t, p) for t, parts in a.assigned_partitions for p in parts} for m, a in answer.items()}
        loads = [len(mine) for mine in before.values()]
        out[name] = {
            "full_s": full_s,
            "join_s": join_s,
            "max/mean": max(loads) / statistics.mean(loads),
            "idle members": loads.count(0),
            "moved by one join": sum(len(mine - after[m]) for m, mine in before.items()),
            "topics a member reads, mean": statistics.mean(len({t for t, _ in mine}) for mine in before.values()),
        }
    best = out["ours hrw"]
    slowest = max(v["full_s"] for n, v in out.items() if "sticky" in n) if any("sticky" in n for n in out) else None
    return {"assignors": out, "sticky / ours, full": slowest and slowest / best["full_s"]}


def test_beside_the_assignors_of_kafka_python() -> None:
    """The same members and metadata through the same interface, one after the other in one process."""
    figures = {"30 members, 300 topics of 1": against_peers(30, 300, 300)}
    figures["100 members, 50 topics, 2000 partitions"] = against_peers(100, 50, 2000)
    figures["1000 members, 100 topics, 10000 partitions"] = against_peers(
        1000, 100, 10_000, skip=["cooperative-sticky"]
    )
    save("peers", figures)


EVENTS = ("FULL", "STABLE", "JOIN_ONE", "JOIN_MANY", "LEAVE_ONE", "LEAVE_MANY", "PARTITIONS_ADDED")


def event_group(event: str, topics: list[Topic], members: list[Member]) -> tuple[list[Topic], list[Member]]:
    """Create the group after the event; owned partitions come from a plan before the event."""
    many = max(1, len(members) // 5)
    if event == "FULL":
        return topics, members
    there = {"JOIN_ONE": members[1:], "JOIN_MANY": members[many:]}.get(event, members) or members
    owners = owning(plan(topics, there), there)
    if event.startswith("JOIN"):
        return topics, owners + members[: len(members) - len(there)]
    if event.startswith("LEAVE"):
        return topics, owners[1 if event == "LEAVE_ONE" else many :] or owners
    if event == "PARTITIONS_ADDED":
        return [Topic(t.name, t.partitions + (i % 10 == 0)) for i, t in enumerate(topics)], owners
    return topics, owners


def test_grid_of_kafkas_benchmark() -> None:
    """Growth over ConsumerAssignorBenchmark's grid: seconds of each event, and the exponent in members and topics."""
    rows: list[dict[str, Any]] = []
    for skewed in (False, True):
        for members in (5, 50, 500, 5000):
            for topics in (5, 50, 500, 5000):
                for partitions in (5000, 10_000, 20_000):
                    given, people = make_group(members, topics, partitions, skewed=skewed)
                    row: dict[str, Any] = {"skewed": skewed, "members": members, "topics": topics}
                    row["partitions"] = partitions
                    for event in EVENTS:
                        group = event_group(event, given, people)
                        start = time.thread_time()
                        made = plan(*group)
                        made.partitions  # noqa: B018 - read, to be timed
                        row[event] = round(time.thread_time() - start, 4)
                        row[f"{event} moved"] = made.moved
                        row[f"{event} moved / bound"] = (
                            made.moved / made.lower_bound if made.lower_bound else made.moved
                        )
                    rows.append(row)
    worst = {e: max(r[e] for r in rows) for e in EVENTS}
    stable = sum(r["STABLE moved"] for r in rows)
    above = sum(r[f"{e} moved / bound"] > 1 for r in rows for e in EVENTS)
    save(
        "grid",
        {
            "slowest_s": worst,
            "growth": {e: growth(rows, e) for e in EVENTS},
            "moved when stable": stable,
            "events above the bound of moves": above,
            "rows": rows,
        },
    )


def growth(rows: list[dict[str, Any]], event: str) -> dict[str, float]:
    """Exponents of seconds in each size, fitted to the logarithms of all rows: 1 is linear."""
    sizes = ("members", "topics", "partitions")
    logs = np.log([[row[size] for size in sizes] for row in rows])
    seconds = np.log([max(row[event], 1e-4) for row in rows])
    fitted = np.linalg.lstsq(np.c_[logs, np.ones(len(rows))], seconds, rcond=None)[0]
    return {size: round(float(exponent), 2) for size, exponent in zip(sizes, fitted[:3], strict=True)}


MEMORY = """
import json, re, sys, time
from pathlib import Path
from assignors import Member, Topic, plan
def peak_kb():
    return int(re.search(r"VmHWM:\\s+(\\d+)", Path("/proc/self/status").read_text())[1])
names = [f"t{i:04d}" for i in range(1000)]
wanted = frozenset(names)
topics, members = [Topic(n, 1000) for n in names], [Member(f"m{i}", wanted) for i in range(2000)]
plan(topics[:1], members[:2])
before = peak_kb()
start = time.thread_time()
made = plan(topics, members)
made.partitions
seconds = time.thread_time() - start
used = peak_kb() - before
json.dump({"seconds": seconds, "bytes a partition": used * 1024 / 1_000_000, "moved": made.moved}, sys.stdout)
"""


def test_a_million_partitions() -> None:
    """Peak memory above an empty planner, and seconds, in a separate process; the bar is 500 bytes and 5 s."""
    done = subprocess.run([sys.executable, "-c", MEMORY], check=True, capture_output=True, text=True)
    save("a million partitions, 2000 members", json.loads(done.stdout))
