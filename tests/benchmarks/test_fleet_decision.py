"""1,000 topics on 5 clusters, 100 agents, 3 workers: connections, balance, movement and time, with peers."""

import statistics
import time
from collections import Counter
from collections.abc import Callable, Mapping
from typing import Any

import pytest
from uhashring import HashRing  # type: ignore[import-untyped]  # has neither stubs nor py.typed

from assignors import Rendezvous
from assignors.fleet import Agent, Balance, FleetTopic, FleetWorkers, Lanes, View, decide
from tests.benchmarks.fleet_report import save

pytestmark = pytest.mark.benchmark

CLUSTERS, TOPICS, AGENTS, WORKERS, EPSILON, BROKERS = 5, 1_000, 100, 3, 0.05, 3
IDENTITIES = [FleetTopic(f"cluster-{n % CLUSTERS}", f"id-{n}", f"topic-{n}", f"s{n % CLUSTERS}") for n in range(TOPICS)]
NAMES = tuple(f"agent-{n:03}" for n in range(AGENTS))

Lines = Mapping[str, tuple[str, ...]]


def fleet(names: tuple[str, ...]) -> View:
    """A view of these agents."""
    return View(tuple(Agent(name) for name in names), 1)


def ours(view: View) -> Lines:
    """Our placement."""
    return decide(view, IDENTITIES, FleetWorkers(default=WORKERS), Balance(epsilon=EPSILON)).workers


def plain_hrw(view: View) -> Lines:
    """The top of the rank, without a bound."""
    rank = Rendezvous(view.ids)
    return {topic.identity: tuple(rank.top(topic.identity, WORKERS)) for topic in IDENTITIES}


def ring(view: View) -> Lines:
    """Consistent hashing on a ring, the next distinct nodes clockwise."""
    hashed = HashRing(list(view.ids), hash_fn="ketama")
    return {
        topic.identity: tuple(one["nodename"] for one in hashed.range(topic.identity, size=WORKERS, unique=True))
        for topic in IDENTITIES
    }


def figures(decider: Callable[[View], Lines]) -> dict[str, Any]:
    """Connections, balance and movement of one way to decide."""
    view = fleet(NAMES)
    before = decider(view)
    loads = Counter(agent for agents in before.values() for agent in agents)
    mean = TOPICS * WORKERS / AGENTS
    deaths, strangers, worst = [], 0, 0.0
    for dead in NAMES[:: AGENTS // 10]:
        after = decider(view.without(dead))
        deaths.append(sum(len(set(after[t]) - set(before[t])) for t in before) / loads[dead])
        strangers += sum(set(after[t]) != set(before[t]) for t in before if dead not in before[t])
        worst = max(worst, max(Counter(a for one in after.values() for a in one).values()) / (mean * AGENTS / 99))
    joined = decider(fleet((*NAMES, "agent-new")))
    by_cluster = {(agent, topic.cluster) for topic in IDENTITIES for agent in before[topic.identity]}
    return {
        "agent_topic": sum(loads.values()),
        "agent_cluster": len(by_cluster),
        "agent_broker_at_most": len(by_cluster) * BROKERS,
        "max_to_mean": max(loads.values()) / mean,
        "max_to_mean_after_a_death": worst,
        "death_moves_to_least": statistics.median(deaths),
        "topics_of_others_changed_by_10_deaths": strangers,
        "join_moves_to_least": sum(len(set(joined[t]) - set(before[t])) for t in before)
        / (TOPICS * WORKERS / (AGENTS + 1)),
    }


def test_a_large_fleet_connects_little_and_decides_fast() -> None:
    """Connections <= 1/10 of all to all, deaths move their own topics only, max/mean <= 1 + epsilon, <= 100 ms."""
    deciders = {"ours": ours, "plain_hrw": plain_hrw, "ring": ring}
    seconds: dict[str, list[float]] = {name: [] for name in deciders}
    core_seconds: dict[str, list[float]] = {name: [] for name in deciders}
    for _ in range(7):
        for name, decider in deciders.items():
            view = fleet(NAMES)
            began, spent = time.perf_counter(), time.process_time()
            decider(view)
            seconds[name].append(time.perf_counter() - began)
            core_seconds[name].append(time.process_time() - spent)
    decision = decide(fleet(NAMES), IDENTITIES, FleetWorkers(default=WORKERS), Balance(epsilon=EPSILON))
    consumers = [len(Lanes().group(decision.of(agent))) for agent in NAMES]
    save(
        "decision",
        {
            "what": f"{TOPICS} topics on {CLUSTERS} clusters of {BROKERS} brokers, {AGENTS} agents, {WORKERS} workers, "
            f"epsilon {EPSILON}; a connection is a pair of an agent and a topic that it reads",
            "all_to_all": {
                "agent_topic": TOPICS * AGENTS,
                "agent_cluster": AGENTS * CLUSTERS,
                "agent_broker_at_most": AGENTS * CLUSTERS * BROKERS,
            },
            "lower_bound": {"agent_topic": TOPICS * WORKERS, "agent_cluster": AGENTS},
            "consumers_of_an_agent": {"mean": statistics.mean(consumers), "most": max(consumers)},
            "decide_ms": {name: statistics.median(all_of) * 1000 for name, all_of in seconds.items()},
            "decide_core_ms": {name: statistics.median(all_of) * 1000 for name, all_of in core_seconds.items()},
            **{name: figures(decider) for name, decider in deciders.items()},
            "bars": {"connections_to_all": 0.1, "max_to_mean": 1 + EPSILON, "decide_ms": 100},
        },
    )
