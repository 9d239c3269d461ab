"""Explains which agents read a topic, why, and which agent is next in line."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from assignors.fleet.agents_per_topic import FleetWorkers
from assignors.fleet.bounded_seats import rank_agents
from assignors.fleet.fleet_topic import FleetTopic
from assignors.fleet.topic_placement import Balance, Decision, decide
from assignors.fleet.topic_zones import nearest_first
from assignors.fleet.unreached_clusters import unreached


@dataclass(frozen=True, slots=True, kw_only=True)
class Place:
    """One agent's position in the line for a topic.

    Attributes:
        rank: rank by rendezvous hashing, from 1; agents in the topic's zones before the others, if zones count.
        agent: its id.
        reads: whether it reads the topic.
        reason: explains why it reads the topic or not.
    """

    rank: int
    agent: str
    reads: bool
    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Line:
    """The readers of a topic, and the agents next in line.

    Attributes:
        topic: the topic.
        places: all live agents by rank.
        next: for each current reader, the agent that takes over when it dies; None if no agent is left.
        added: the agent that one more worker would add; None if all agents read already.
    """

    topic: FleetTopic
    places: Sequence[Place]
    next: dict[str, str | None]
    added: str | None


def explain(
    decision: Decision,
    identity: str,
    workers: FleetWorkers | None = None,
    balance: Balance | None = None,
) -> Line:
    """Explain which agents read a topic, why, and which are next; takes the time of a few decisions.

    Args:
        decision: the decision to explain.
        identity: identity of the topic.
        workers: workers of the decision.
        balance: balance of the decision.
    """
    workers, balance = workers or FleetWorkers(), balance or Balance()
    topic, view = decision.topics[identity], decision.view
    reading = decision.workers[identity]
    topics = list(decision.topics.values())
    takes_over = {
        agent: _newcomer(decide(view.without(agent), topics, workers, balance), topic, reading) for agent in reading
    }
    one_more = replace(workers, overrides={**workers.overrides, identity: len(reading) + 1})
    return Line(
        topic=topic,
        places=_places(decision, topic, workers.pinned(topic), balance),
        next=takes_over,
        added=_newcomer(decide(view, topics, one_more, balance), topic, reading),
    )


def _newcomer(after: Decision, topic: FleetTopic, reading: Sequence[str]) -> str | None:
    return next((agent for agent in after.workers[topic.identity] if agent not in reading), None)


def _places(decision: Decision, topic: FleetTopic, pinned: Sequence[str], balance: Balance) -> list[Place]:
    view = decision.view
    members = list(view.members)
    if not members:
        return []
    weights = np.array([agent.capacity for agent in members])
    ranking = rank_agents([topic.identity], [agent.id for agent in members], weights, balance.seed)
    (ranked,) = nearest_first(ranking, [topic], members)
    reading, loads = decision.workers[topic.identity], decision.loads
    away = {one.id for one in members if topic.source in unreached(one)} - set(reading)
    last = max((rank for rank, at in enumerate(ranked) if members[at].id in reading), default=-1)
    found = []
    for rank, at in enumerate(ranked):
        agent = members[at].id
        if agent in away:
            reason = "does not reach the cluster"
        elif agent in pinned:
            reason = "named by hand"
        elif agent in reading:
            reason = f"rank {rank + 1} with room, seat {reading.index(agent) + 1} of {len(reading)}"
        elif rank < last:
            reason = f"skipped: full with {loads[agent]} topics, or not needed when a departed agent's seat was filled"
        else:
            reason = f"in line: the topic has its {len(reading)} {'reader' if len(reading) == 1 else 'readers'}"
        found.append(Place(rank=rank + 1, agent=agent, reads=agent in reading, reason=reason))
    return found
