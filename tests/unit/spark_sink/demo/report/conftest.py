"""A run that looks like a real one: 224 topics of 3 partitions, a kill, a takeover, a third agent."""

import math
import random
from typing import Any

import pytest

ZONES = ("az-a", "az-b", "az-c")
AGENTS = ("agent-1", "agent-2", "agent-3")
ROWS = 336_776


def sample_report(seed: int = 0) -> dict[str, Any]:
    """Make a report.json as a run of the demo writes it."""
    chance = random.Random(seed)
    topics = [f"flights.JFK-{i:03d}" for i in range(224)]
    partitions = [[topic, p] for topic in topics for p in range(3)]
    everything = list(range(len(partitions)))
    first = _half(chance)
    second = [p for p in everything if p not in set(first)]
    moved = _third(chance)
    events = [
        {"t": 0.0, "kind": "start", "agent": "agent-1", "text": "agent-1 started"},
        {"t": 0.4, "kind": "start", "agent": "agent-2", "text": "agent-2 started"},
        {"t": 21.3, "kind": "kill", "agent": "agent-1", "text": "agent-1 killed (SIGKILL)"},
        {"t": 30.4, "kind": "takeover", "agent": "agent-2", "text": "first row of agent-1's partitions"},
        {"t": 34.0, "kind": "join", "agent": "agent-3", "text": "agent-3 joined"},
        {"t": 61.2, "kind": "done", "agent": "", "text": "every record is in the table"},
    ]
    ownership = [
        {"t": 9.1, "agent": "agent-1", "generation": 1, "partitions": everything},
        {"t": 13.2, "agent": "agent-1", "generation": 2, "partitions": first},
        {"t": 13.3, "agent": "agent-2", "generation": 2, "partitions": second},
        {"t": 28.0, "agent": "agent-2", "generation": 3, "partitions": everything},
        {"t": 46.2, "agent": "agent-2", "generation": 4, "partitions": [p for p in everything if p not in moved]},
        {"t": 46.4, "agent": "agent-3", "generation": 4, "partitions": sorted(moved)},
    ]
    return {
        "rows": ROWS,
        "expected_rows": ROWS,
        "duplicates": 0,
        "missing": 0,
        "values_differ": 0,
        "agents_killed": 1,
        "takeover_seconds": 9.1,
        "takeover_parts": {"session": 5.9, "rebalance": 1.0, "first_commit": 2.2},
        "partitions_moved_on_kill": len(first),
        "partitions_owned_by_killed": len(first),
        "cross_zone_share": {"default": 0.6671, "az_aware": 0.0},
        "default_sample_share": 0.25,
        "produced_bytes": 126_300_000,
        "records_per_second": 17_204.5,
        "records_per_core_second": 8_602.2,
        "busy_seconds": 19.6,
        "start_seconds": 11.2,
        "freshness_p95_seconds": 24.7,
        "price_per_gb": 0.01,
        "connections": {
            "per_agent": {"agent-2": 5, "agent-3": 5},
            "hrw": 237,
            "range": 448,
            "round_robin": 448,
            "how": "per_agent: open sockets to brokers. hrw, range, round_robin: pairs of agent and topic",
        },
        "bytes_by_zone": {"default": _bytes(chance, 31.6e6, cross=True), "az_aware": _bytes(chance, 126.3e6)},
        "partitions_per_agent": {
            "hrw": {"agent-2": 336, "agent-3": 336},
            "range": {"agent-2": 448, "agent-3": 224},
            "round_robin": {"agent-2": 336, "agent-3": 336},
        },
        "topics_per_agent": {
            "hrw": {"agent-2": 119, "agent-3": 118},
            "range": {"agent-2": 224, "agent-3": 224},
            "round_robin": {"agent-2": 224, "agent-3": 224},
        },
        "seconds": {"cluster": 12.4, "produce": 22.8, "ingest": 61.2, "verify": 3.1, "total": 104.9},
        "versions": {"kafka": "4.3.0", "pyspark": "4.2.0", "deltalake": "1.6.6", "confluent-kafka": "2.16.1"},
        "cores": 2,
        "notes": ["The topics have replication factor 1: with 3, two cores would measure the replication."],
        "timeline": {"partitions": partitions, "events": events, "ownership": ownership, **_progress(chance)},
    }


def _half(chance: random.Random) -> list[int]:
    return [3 * topic + p for topic in sorted(chance.sample(range(224), 112)) for p in range(3)]


def _third(chance: random.Random) -> set[int]:
    whole = chance.sample(range(224), 118)
    return {3 * topic + p for topic in whole[:106] for p in range(3)} | {3 * topic for topic in whole[106:]}


def _bytes(chance: random.Random, total: float, *, cross: bool = False) -> dict[str, dict[str, int]]:
    share = 1 / 9 if cross else 1 / 3
    return {
        source: {
            target: int(total * share * chance.uniform(0.95, 1.05)) if cross or source == target else 0
            for target in ZONES
        }
        for source in ZONES
    }


def _progress(chance: random.Random) -> dict[str, Any]:
    commits: list[dict[str, Any]] = []
    times = [16.0, 18.5, 21.0, 24.0, 30.4, 33.0, 36.0, 39.0, 42.0, 44.5, 50.0, 53.0, 56.0, 59.0, 61.2]
    left = ROWS
    for i, t in enumerate(times):
        rows = left if i == len(times) - 1 else int(ROWS / len(times) * chance.uniform(0.7, 1.2))
        agent = AGENTS[i % 2] if t < 21.3 else AGENTS[1] if t < 46 else AGENTS[1 + i % 2]
        commits.append({"t": t, "agent": agent, "rows": rows})
        left -= rows
    lag = []
    for tick in range(123):
        t = tick / 2
        produced = ROWS * min(1.0, t / 22.8)
        committed = sum(c["rows"] for c in commits if c["t"] <= t)
        lag.append({"t": t, "records": max(0, math.floor(produced - committed))})
    return {"commits": commits, "lag": lag}


@pytest.fixture
def report() -> dict[str, Any]:
    """A whole report; a test may change it."""
    return sample_report()
