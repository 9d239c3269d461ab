"""Placement of the flights' topics by count and by volume: how much more than the mean the most loaded agent reads."""

from collections import Counter

import pyarrow as pa
import pyarrow.compute as pc
import pytest

from assignors.fleet import Agent, Balance, BalanceBy, FleetTopic, FleetWorkers, View, decide
from spark_sink.demo.flights import load_flights
from tests.benchmarks.fleet_report import save

pytestmark = pytest.mark.benchmark

AGENTS = 5, 10, 20, 30


def flights() -> dict[str, int]:
    """Bytes of keys and values of each route's records."""
    rows = load_flights()
    sizes = pc.add(pc.fill_null(pc.binary_length(rows.column("key")), 0), pc.binary_length(rows.column("value")))
    found = (
        pa.table([rows.column("topic"), sizes], names=["topic", "bytes"])
        .group_by("topic")
        .aggregate([("bytes", "sum")])
    )
    return dict(zip(found.column("topic").to_pylist(), found.column("bytes_sum").to_pylist(), strict=True))


def balance(volumes: dict[str, int], agents: int, by: BalanceBy) -> dict[str, float]:
    """Return the most loaded agent to the mean, in bytes and in topics."""
    view = View(tuple(Agent(f"agent-{n}") for n in range(agents)), 1)
    topics = [FleetTopic("c", f"id-{name}", name, "s", 3) for name in sorted(volumes)]
    weights = {name: float(size) for name, size in volumes.items()}
    made = decide(view, topics, FleetWorkers(weights=weights), Balance(by=by))
    loads = Counter[str]()
    for identity, readers in made.workers.items():
        for reader in readers:
            loads[reader] += volumes[made.topics[identity].name]
    return {
        "bytes": max(loads.values()) / (sum(volumes.values()) / agents),
        "topics": max(made.loads.values()) / (len(volumes) / agents),
    }


def test_volume_is_even_if_a_fleet_is_balanced_by_it() -> None:
    """The bar is for the placement by volume; by count it is what it is, and stands beside it."""
    volumes = flights()
    ways: tuple[BalanceBy, ...] = ("volume", "count")
    save(
        "volume balance",
        {
            "what": f"{len(volumes)} flight routes, {sum(volumes.values()):,} bytes, epsilon 0.05, one agent a topic; "
            "the most loaded agent to the mean",
            "largest_route_to_mean_of_30_agents": max(volumes.values()) / (sum(volumes.values()) / 30),
            **{f"max_to_mean_by_{by}": {f"{n} agents": balance(volumes, n, by) for n in AGENTS} for by in ways},
        },
    )
