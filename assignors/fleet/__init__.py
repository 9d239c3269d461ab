"""Fleets: agents over many clusters, each topic on a few of them."""

import importlib
import typing

from assignors.fleet._decision import Balance, Decision, decide
from assignors.fleet._explain import Line, Place, explain
from assignors.fleet._lanes import Lane, LaneChange, Lanes, lane_change
from assignors.fleet._membership import Members, Membership, Session, Standing, StaticMembers, Witness
from assignors.fleet._topic import FleetTopic
from assignors.fleet._view import Agent, View
from assignors.fleet._workers import FleetWorkers

if typing.TYPE_CHECKING:
    from assignors.fleet._agent import AgentParts, FleetAgent, Ingestion
    from assignors.fleet._clusters import ClusterWatch, Source
    from assignors.fleet._kafka import KafkaMembers
    from assignors.fleet._redis import RedisMembers

__all__ = [
    "Agent",
    "AgentParts",
    "Balance",
    "ClusterWatch",
    "Decision",
    "FleetAgent",
    "FleetTopic",
    "FleetWorkers",
    "Ingestion",
    "KafkaMembers",
    "Lane",
    "LaneChange",
    "Lanes",
    "Line",
    "Members",
    "Membership",
    "Place",
    "RedisMembers",
    "Session",
    "Source",
    "Standing",
    "StaticMembers",
    "View",
    "Witness",
    "decide",
    "explain",
    "lane_change",
]

# Names whose module imports a client: found at first use.
_AT_FIRST_USE = {
    "AgentParts": "assignors.fleet._agent",
    "ClusterWatch": "assignors.fleet._clusters",
    "FleetAgent": "assignors.fleet._agent",
    "Ingestion": "assignors.fleet._agent",
    "KafkaMembers": "assignors.fleet._kafka",
    "RedisMembers": "assignors.fleet._redis",
    "Source": "assignors.fleet._clusters",
}


def __getattr__(name: str) -> object:
    if name not in _AT_FIRST_USE:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(importlib.import_module(_AT_FIRST_USE[name]), name)
