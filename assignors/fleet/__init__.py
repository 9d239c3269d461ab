"""Fleets: agents over many clusters, each topic on a few of them."""

from assignors.fleet._decision import Balance, Decision, decide
from assignors.fleet._explain import Line, Place, explain
from assignors.fleet._lanes import Lane, LaneChange, Lanes, lane_change
from assignors.fleet._topic import FleetTopic
from assignors.fleet._view import Agent, View
from assignors.fleet._workers import FleetWorkers

__all__ = [
    "Agent",
    "Balance",
    "Decision",
    "FleetTopic",
    "FleetWorkers",
    "Lane",
    "LaneChange",
    "Lanes",
    "Line",
    "Place",
    "View",
    "decide",
    "explain",
    "lane_change",
]
