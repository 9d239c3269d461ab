"""Zones of topics, for a placement that prefers agents near a replica. Pure.

Agents fetch from a replica in their own zone (KIP-392). Each agent reads the zones from its clusters, at another time
than the others. So the zones come into force as workers per topic do: all agents use the newest that all of them
declare, and none if they have none in common.
"""

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace

from assignors.fleet.agents_view import Agent, View
from assignors.fleet.agreed_workers import KnownValues, agreed_digest
from assignors.fleet.bounded_seats import Ranking
from assignors.fleet.drifted_settings import ZONES
from assignors.fleet.fleet_topic import FleetTopic
from assignors.hashing.murmur3_hash import hash64

Zones = Mapping[str, tuple[str, ...]]
"""Zones of replicas, by the identity of the topic."""


def zones_of(topics: Iterable[FleetTopic]) -> Zones:
    """Return the known zones of topics."""
    return {topic.identity: topic.zones for topic in topics if topic.zones}


def with_zones(topics: Iterable[FleetTopic], zones: Zones | None) -> tuple[FleetTopic, ...]:
    """Return topics with exactly these zones."""
    return tuple(replace(topic, zones=(zones or {}).get(topic.identity, ())) for topic in topics)


def zones_digest(zones: Zones) -> str:
    """Return the digest that agents declare."""
    return f"#{hash64(json.dumps(sorted(zones.items()))):016x}"[:9]


def known_zones(keep_s: float) -> KnownValues[Zones]:
    """Return the zones with which an agent can compute.

    Args:
        keep_s: time for which previous zones are declared besides the newest ones, seconds.
    """
    return KnownValues(ZONES, zones_digest, keep_s)


def agreed_zones(view: View, topics: Iterable[FleetTopic]) -> Zones | None:
    """Return the zones of these topics if the agents of a view use them; else None."""
    zones = zones_of(topics)
    return zones if agreed_digest(view, ZONES) == zones_digest(zones) else None


def nearest_first(ranking: Ranking, topics: Sequence[FleetTopic], agents: Sequence[Agent]) -> Ranking:
    """Rank the agents in a zone of a topic's replicas before all others; their order stays.

    Args:
        ranking: numbers of agents, by topic.
        topics: in the order of the ranking; topics without zones keep their ranking.
        agents: in the order of their numbers.
    """
    if not any(topic.zones for topic in topics):
        return ranking
    near = {zones: [agent.zone in zones for agent in agents] for zones in {topic.zones for topic in topics}}
    found = []
    for topic, ranked in zip(topics, ranking, strict=True):
        inside = near[topic.zones]
        if any(inside) and not all(inside):
            ranked = [a for a in ranked if inside[a]] + [a for a in ranked if not inside[a]]  # noqa: PLW2901 -- clear
        found.append(ranked)
    return found
