"""The flights' topics by count and by volume: how much more than the mean the most loaded agent or member reads."""

from collections import Counter

import pyarrow as pa
import pyarrow.compute as pc
import pytest

from assignors import Member, Topic, plan
from assignors.fleet import Agent, Balance, BalanceBy, FleetTopic, FleetWorkers, View, decide
from spark_sink.demo.flights import load_flights
from tests.benchmarks import assignors_report
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


def members(count: int, owned: dict[str, list[tuple[str, int]]], topics: frozenset[str]) -> list[Member]:
    """Members of a group, with what they own."""
    return [Member(f"m{n}", topics, owned=frozenset(owned.get(f"m{n}", ())), generation=1) for n in range(count)]


def planned(volumes: dict[str, int], count: int, workers: int | None, *, by_volume: bool) -> dict[str, float]:
    """Return the most loaded member of a group to the mean, in bytes: at first, and after a join and a departure."""
    topics, names = [Topic(name, 3) for name in volumes], frozenset(volumes)
    weights = {name: float(size) for name, size in volumes.items()}
    found, owned = {}, dict[str, list[tuple[str, int]]]()
    for what, number in (("first", count), ("join", count + 1), ("leave", count)):
        left = {member: mine for member, mine in owned.items() if member != f"m{number}"}
        made = plan(topics, members(number, left, names), workers=workers, weights=weights if by_volume else None)
        owned = made.partitions
        bytes_of = [sum(volumes[topic] / 3 for topic, _ in mine) for mine in owned.values()]
        found[what] = max(bytes_of) / (sum(bytes_of) / number)
        found[f"{what} moved"] = made.moved
    return found


def test_volume_is_even_if_a_group_is_planned_by_it() -> None:
    """As above, for `plan()`: with claims, caps, joins and departures."""
    volumes = flights()
    assignors_report.save(
        "volume balance",
        {
            "what": f"plan(weights=...) on {len(volumes)} flight routes x 3 partitions, "
            f"{sum(volumes.values()):,} bytes, epsilon 0.05; the most loaded member to the mean, and moved partitions",
            **{
                f"by_{way}, workers={workers}": {
                    f"{n} members": planned(volumes, n, workers, by_volume=way == "volume") for n in AGENTS
                }
                for way in ("volume", "count")
                for workers in (None, 1, 2)
            },
        },
    )
