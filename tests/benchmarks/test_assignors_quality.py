"""The quality of plans: thousands of small problems compared with every assignment, and 80 topics on 3 hosts."""

import itertools
import random
import statistics
import time
from collections import Counter, defaultdict
from collections.abc import Iterable
from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import pytest
from kafka.coordinator.assignors.range import RangePartitionAssignor
from kafka.coordinator.assignors.roundrobin import RoundRobinPartitionAssignor
from kafka.protocol.consumer.metadata import ConsumerProtocolSubscription

from assignors import Member, Topic, plan
from assignors.planner.capped.exact_small_groups import is_small
from assignors.planner.input_arrays import read_problem
from assignors.testing import Scenario, random_scenario
from tests.benchmarks.assignors_report import save
from tests.benchmarks.report import FOLDER

pytestmark = pytest.mark.benchmark
CASES = 6400
CAPPED = 1500


def test_no_small_problem_has_a_better_plan() -> None:
    """Deviations from the best of all assignments, by what the problems have; every goal counts."""
    deviations: dict[str, int] = defaultdict(int)
    for seed in range(CASES):
        flags = {name: bool(seed >> i & 1) for i, name in enumerate(("equal", "weights", "racks", "capped"))}
        scenario = random_scenario(random.Random(1_000_000 + seed), **flags)
        made = plan(scenario.topics, scenario.members, epsilon=scenario.epsilon, workers=scenario.workers)
        name = ", ".join(n for n, on in flags.items() if on) or "different subscriptions"
        deviations[name] += scenario.goals_of(made) != scenario.best_goals()
    save("quality", {"cases": CASES, "deviations": sum(deviations.values()), "by kind": dict(deviations)})
    assert not any(deviations.values())


def company() -> tuple[list[Topic], list[Member], dict[str, int]]:
    """80 topics under one pattern with 1 to 3 partitions and bytes that differ by a factor of 1000; 3 hosts x 4."""
    rng = random.Random(80)
    topics = [Topic(f"flights.{i:02d}", rng.choice((1, 1, 1, 2, 3))) for i in range(80)]
    size = {t.name: int(10 ** rng.uniform(0, 3)) for t in topics}
    wanted = frozenset(t.name for t in topics)
    return topics, [Member(f"host{h}-{n}", wanted) for h in range(3) for n in range(4)], size


def peer(assignor: Any, topics: Iterable[Topic], members: Iterable[Member]) -> dict[str, list[tuple[str, int]]]:
    """Ask one of kafka-python's assignors."""
    counts = {t.name: set(range(t.partitions)) for t in topics}
    cluster = SimpleNamespace(partitions_for_topic=counts.get)
    people = [
        SimpleNamespace(
            member_id=m.id,
            group_instance_id=None,
            metadata=ConsumerProtocolSubscription(version=0, topics=sorted(m.topics), user_data=b""),
        )
        for m in members
    ]
    answer = assignor.assign(cluster, people)
    return {m: [(t, p) for t, parts in a.assigned_partitions for p in parts] for m, a in answer.items()}


def measure(given: dict[str, list[tuple[str, int]]], topics: list[Topic], size: dict[str, int]) -> dict[str, Any]:
    """Measure loads of consumers and hosts, and the number of hosts of a topic with several partitions."""
    loads = {m: len(mine) for m, mine in given.items()}
    hosts: Counter[str] = Counter()
    volume: Counter[str] = Counter()
    on: dict[str, set[str]] = defaultdict(set)
    for member, mine in given.items():
        host = member.split("-")[0]
        hosts[host] += len(mine)
        for topic, _ in mine:
            volume[host] += size[topic]
            on[topic].add(host)
    several = [t for t in topics if t.partitions > 1]
    mean = statistics.mean(loads.values())
    return {
        "partitions": loads,
        "max/mean of consumers": max(loads.values()) / mean,
        "idle consumers": sum(not n for n in loads.values()),
        "max/mean of hosts": max(hosts.values()) / (sum(hosts.values()) / 3),
        "max/mean of bytes on hosts": max(volume.values()) / (sum(volume.values()) / 3),
        "topics on as many hosts as they can": sum(len(on[t.name]) == min(3, t.partitions) for t in several)
        / len(several),
    }


def draw(plans: dict[str, dict[str, Any]]) -> str:
    """Draw the loads of the twelve consumers under each assignor, coloured by host."""
    top = max(max(p["partitions"].values()) for p in plans.values())
    parts = []
    for row, (name, figures) in enumerate(plans.items()):
        y = 40 + row * 130
        parts.append(
            f'<text x="10" y="{y - 8}" font-weight="bold">{name}: '
            f"max/mean {figures['max/mean of consumers']:.2f}</text>"
        )
        for i, (member, load) in enumerate(sorted(figures["partitions"].items())):
            height = round(90 * load / top, 1)
            x = 10 + i * 52 + i // 4 * 16
            colour = ("#4477aa", "#ccbb44", "#66ccee")[i // 4]
            parts.append(f'<rect x="{x}" y="{y + 90 - height}" width="44" height="{height}" fill="{colour}"/>')
            parts.append(f'<text x="{x + 22}" y="{y + 103}" text-anchor="middle">{member[4:]}: {load}</text>')
    body = "\n".join(parts)
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" width="690" height="{40 + 130 * len(plans)}" '
        f'font-family="sans-serif" font-size="11">\n<rect width="100%" height="100%" fill="white"/>\n{body}\n</svg>\n'
    )


def test_eighty_topics_on_three_hosts() -> None:
    """Range, round robin and ours for the same group; the picture is build/bench/assignors-80-topics.svg."""
    topics, members, size = company()
    plans = {
        "range": measure(peer(RangePartitionAssignor, topics, members), topics, size),
        "round robin": measure(peer(RoundRobinPartitionAssignor, topics, members), topics, size),
        "hrw": measure(plan(topics, members).partitions, topics, size),
        "shuffled": measure(plan(topics, members, strategy="shuffled", epsilon=0).partitions, topics, size),
    }
    FOLDER.mkdir(parents=True, exist_ok=True)
    (FOLDER / "assignors-80-topics.svg").write_text(draw(plans))
    save("80 topics, 3 hosts x 4 consumers", plans)


def capped_group(seed: int) -> Scenario | None:
    """A group of 3 to 7 members and topics with binding caps, after a join, a leave, random claims or at its start."""
    rng = random.Random(77_000 + seed)
    count, number = rng.randint(3, 7), rng.randint(3, 7)
    workers = rng.randint(1, 2 if count == 3 else 3)
    epsilon = rng.choice([0, 0.05, 0.2, 0.5])
    topics = [Topic(f"t{i}", rng.randint(1 if workers == 1 else workers + 1, workers + 4)) for i in range(number)]
    names = frozenset(t.name for t in topics)
    members = [Member(f"m{i}", names) for i in range(count)]
    if not is_small(read_problem(topics, [*members, Member("x", names)], 0)):
        return None
    if seed % 4 == 2:
        claims: list[list[tuple[str, int]]] = [[] for _ in members]
        for topic in topics:
            readers = rng.sample(range(count), min(count, workers + rng.randint(0, 1)))
            for partition in range(topic.partitions):
                claims[rng.choice(readers)].append((topic.name, partition))
        members = [Member(m.id, names, owned=frozenset(c), generation=1) for m, c in zip(members, claims, strict=True)]
    elif seed % 4 < 2:
        before = plan(topics, members, workers=workers, epsilon=epsilon).partitions
        members = [Member(m.id, names, owned=frozenset(before[m.id]), generation=1) for m in members]
        members = [*members, Member("new", names)] if seed % 4 == 0 else members[1:]
    return Scenario(topics=tuple(topics), members=tuple(members), epsilon=epsilon, workers=workers)


def test_worker_caps_by_search_beside_the_optimum(monkeypatch: pytest.MonkeyPatch) -> None:
    """Plan 1,500 small groups exactly and by the search: count equal loads and moves, more moves, less even loads."""
    found: Counter[str] = Counter()
    done, seed = 0, 0
    for seed in itertools.count():
        if done == CAPPED:
            break
        scenario = capped_group(seed)
        if scenario is None:
            continue
        done += 1
        settings: dict[str, Any] = {"workers": scenario.workers, "epsilon": scenario.epsilon}
        best = scenario.goals_of(plan(scenario.topics, scenario.members, **settings))
        with monkeypatch.context() as as_large:
            as_large.setattr("assignors.planner.assign_partitions.is_small", lambda _: False)
            made = plan(scenario.topics, scenario.members, **settings)
        goals = scenario.goals_of(made)
        kind = "same" if goals == best else "loads less even" if goals[:2] != best[:2] else "moved more"
        found[kind] += 1
        if goals[:2] == best[:2]:
            found["moved"] += goals.moved
            found["moved by the optimum"] += best.moved
        if not best.outside:
            found["with a plan within the bounds"] += 1
            found["of them, bound is the optimum"] += made.lower_bound == best.moved
            assert made.lower_bound <= best.moved
    save("worker caps by search, beside the optimum", {"groups": done, "last seed": seed, **found})


def test_worker_caps_and_racks() -> None:
    """What locality costs: a plan counts partitions off rack before moves, and the lower bound knows no racks."""
    figures: dict[str, dict[str, Any]] = {}
    for seed in range(4):
        rng = random.Random(seed)
        topics = [Topic(f"t{i}", 20, racks=[frozenset(rng.sample("abc", 2)) for _ in range(20)]) for i in range(150)]
        names = frozenset(t.name for t in topics)
        members = [Member(f"m{i:03d}", names, rack="abc"[i % 3]) for i in range(200)]
        made = plan(topics, members, workers=2)
        for event in ("first", "again", "once more", "join"):
            if event != "first":
                members = [replace(m, owned=frozenset(made.partitions.get(m.id, ())), generation=1) for m in members]
                members += [Member("new", names, rack="a")] if event == "join" else []
                made = plan(topics, members, workers=2)
            racks = {(t.name, i): of for t in topics for i, of in enumerate(t.racks or ())}
            rack_of = {m.id: m.rack for m in members}
            figures[f"group {seed}, {event}"] = {
                "moved": made.moved,
                "lower bound": made.lower_bound,
                "off rack": sum(rack_of[m] not in (racks[k] or ()) for m, own in made.partitions.items() for k in own),
                "loads": [min(made.loads.values()), max(made.loads.values())],
            }
    save("worker caps and racks, 200 members, 150 topics of 20, workers=2", figures)


def test_worker_caps_in_larger_groups() -> None:
    """Moved claims, their lower bound, loads and seconds: the distance to the bound if the optimum is unknown."""
    rng = random.Random(1)
    figures: dict[str, dict[str, Any]] = {}
    for count, number, largest in ((10, 40, 6), (12, 80, 12), (30, 100, 9), (30, 300, 3), (50, 200, 6), (100, 300, 12)):
        for workers in (1, 2, 3):
            topics = [Topic(f"t{i:03d}", rng.randint(1, largest)) for i in range(number)]
            names = frozenset(t.name for t in topics)
            members = [Member(f"m{i:03d}", names) for i in range(count)]
            before = plan(topics, members, workers=workers).partitions
            owners = [Member(m.id, names, owned=frozenset(before[m.id]), generation=1) for m in members]
            for event, after in {
                "stable": owners,
                "join": [*owners, Member("new", names)],
                "leave": owners[1:],
                "leave many": owners[count // 5 :],
            }.items():
                start = time.thread_time()
                made = plan(topics, after, workers=workers)
                loads = made.loads.values()
                figures[f"{count} members, {number} topics of 1 to {largest}, workers={workers}, {event}"] = {
                    "ms": 1000 * (time.thread_time() - start),
                    "moved": made.moved,
                    "lower bound": made.lower_bound,
                    "loads": [min(loads), max(loads)],
                }
    moved, bound = (sum(one[name] for one in figures.values()) for name in ("moved", "lower bound"))
    figures["in all"] = {"moved": moved, "lower bound": bound, "moved to lower bound": moved / bound}
    save("worker caps in larger groups", figures)
