"""Routing and rendezvous compared with modulo, a virtual-node ring and random picks: keys moved, balance, copies."""

import random
import statistics
import time
from collections import Counter, defaultdict
from collections.abc import Callable
from typing import Any

import pytest
from uhashring import HashRing  # type: ignore[import-untyped] # has no types

from assignors import Rendezvous, Router, hash64
from tests.benchmarks.assignors_report import save

pytestmark = pytest.mark.benchmark
NODES = [f"cache-{i:02d}" for i in range(20)]
KEYS = [f"stream-{i}" for i in range(20_000)]
Owner = Callable[[str], str]


def owners(nodes: list[str]) -> dict[str, Owner]:
    """Create the owner function of each method."""
    rng = random.Random(len(nodes))
    ring, flat, tree = HashRing(nodes), Rendezvous(nodes), Rendezvous(nodes, hierarchical=True)
    return {
        "modulo": lambda key: nodes[hash64(key) % len(nodes)],
        "ring with virtual nodes (uhashring)": ring.get_node,
        "random": lambda _: rng.choice(nodes),
        "hrw": flat.owner,
        "hrw, hierarchical": tree.owner,
    }


def test_keys_moved_and_balance() -> None:
    """One of 20 nodes leaves, one joins: moved keys as multiples of the minimum (K/n), and max/mean of keys."""
    figures: dict[str, dict[str, float]] = {}
    before = {name: [own(k) for k in KEYS] for name, own in owners(NODES).items()}
    fewer = {name: [own(k) for k in KEYS] for name, own in owners(NODES[:-1]).items()}
    more = {name: [own(k) for k in KEYS] for name, own in owners([*NODES, "cache-20"]).items()}
    for name, now in before.items():
        leave = sum(a != b for a, b in zip(now, fewer[name], strict=True))
        join = sum(a != b for a, b in zip(now, more[name], strict=True))
        figures[name] = {
            "moved on a leave, x K/n": leave / (len(KEYS) / 20),
            "moved on a join, x K/(n+1)": join / (len(KEYS) / 21),
            "max/mean": max(Counter(now).values()) / (len(KEYS) / 20),
        }
    save("router: keys moved", figures)


def simulate(pick: Callable[[int, str, float, dict[str, float]], str], seed: int) -> dict[str, float]:
    """Let 50 clients read 400 streams (Zipf) for two hours; one endpoint dies after 40 minutes and stays dead.

    Every client that reads a stream adds to the load of its endpoint; an endpoint holds one cached copy of a stream.
    """
    rng = random.Random(seed)
    reads = [(c, f"stream-{int(400 ** rng.random()) - 1}") for c in range(50) for _ in range(40)]
    place: dict[tuple[int, str], str] = {}
    moves, load = 0, dict.fromkeys(NODES, 0.0)
    for minute in range(120):
        for client, stream in reads:
            endpoint = pick(client, stream, minute * 60.0, load)
            old = place.get((client, stream))
            moves += old is not None and old != endpoint
            place[client, stream] = endpoint
        load = dict.fromkeys(NODES, 0.0) | {n: float(c) for n, c in Counter(place[r] for r in reads).items()}
    copies: dict[str, set[str]] = defaultdict(set)
    for (_, stream), endpoint in place.items():
        copies[stream].add(endpoint)
    return {
        "cached copies a stream, mean": statistics.mean(map(len, copies.values())),
        "max/mean of load": max(load.values()) / (sum(load.values()) / 19),
        "picks moved, share": moves / len(place),
    }


def test_clients_that_do_not_talk() -> None:
    """Cached copies of a stream, load and moved picks for each way of picking."""
    dead, dies_at = NODES[3], 2400.0
    alive = [n for n in NODES if n != dead]
    ring, ring_after = HashRing(NODES), HashRing(alive)
    rng = random.Random(1)

    def modulo(_: int, stream: str, now: float, __: dict[str, float]) -> str:
        nodes = NODES if now < dies_at else alive
        return nodes[hash64(stream) % len(nodes)]

    def by_ring(_: int, stream: str, now: float, __: dict[str, float]) -> str:
        return str((ring if now < dies_at else ring_after).get_node(stream))

    def at_random(_: int, __: str, now: float, ___: dict[str, float]) -> str:
        return rng.choice(NODES if now < dies_at else alive)

    routers = [Router(NODES, jitter=random.Random(c).uniform) for c in range(50)]

    last: dict[tuple[int, str], str] = {}

    def by_router(client: int, stream: str, now: float, load: dict[str, float]) -> str:
        if now >= dies_at:
            routers[client].fail(dead, now)
        endpoint = last.get((client, stream))
        share = 1.25 * sum(load.values()) / 19 / load[endpoint] if endpoint is not None and load[endpoint] else 1.0
        last[client, stream] = routers[client].pick(stream, now, load, throughput=min(1.0, share))
        return last[client, stream]

    def by_rank(client: int, stream: str, now: float, _: dict[str, float]) -> str:
        if now >= dies_at:
            routers[client].fail(dead, now)
        return routers[client].pick(stream, now)

    ways: dict[str, Callable[[int, str, float, dict[str, float]], str]] = {
        "modulo": modulo,
        "ring with virtual nodes (uhashring)": by_ring,
        "random": at_random,
        "router, without loads": by_rank,
    }
    figures: dict[str, Any] = {name: simulate(pick, 7) for name, pick in ways.items()}
    routers = [Router(NODES, jitter=random.Random(c).uniform) for c in range(50)]
    figures["router, load bound 1.25"] = simulate(by_router, 7)
    save("router: clients that do not talk", figures)


def test_time_of_an_owner() -> None:
    """Microseconds of one owner by number of nodes, flat and hierarchical: the tree grows with the logarithm."""
    figures: dict[str, dict[str, float]] = {}
    for count in (10, 100, 1000, 10_000, 50_000):
        nodes = [f"node-{i}" for i in range(count)]
        row = {}
        for name, rank in (("flat", Rendezvous(nodes)), ("tree", Rendezvous(nodes, hierarchical=True))):
            times = []
            for _ in range(5):
                start = time.thread_time()
                for key in KEYS[:200]:
                    rank.owner(key)
                times.append((time.thread_time() - start) / 200 * 1e6)
            row[f"{name} us"] = statistics.median(times)
        small, smaller = Rendezvous(nodes, hierarchical=True), Rendezvous(nodes[1:], hierarchical=True)
        if count <= 1000:
            moved = sum(small.owner(k) != smaller.owner(k) for k in KEYS)
            row["tree: moved on a leave, x K/n"] = moved / (len(KEYS) / count)
        figures[str(count)] = row
    save("rendezvous: time of an owner", figures)
