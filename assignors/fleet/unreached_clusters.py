"""Clusters that an agent cannot reach: agents declare them, and the placement gives their topics to other agents. Pure.

An agent that has never reached a cluster does not know its topics, and could not compute the places of other topics
beside them. So all agents place these topics apart, among the agents that know them. If an agent knows the topics of a
cluster and has lost the connection, only its topics of that cluster move, each to the next agent in rank.
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Final

from assignors.fleet.agents_view import Agent, View
from assignors.fleet.drifted_settings import AWAY, UNKNOWN, declared_names
from assignors.fleet.fleet_topic import FleetTopic

_AFTER_S: Final = 15.0


class UnreachedClusters:
    """The clusters that an agent does not reach; used by one thread.

    Args:
        after_s: time without an answer after which a cluster is declared, and time with answers after which it is
            declared no longer, seconds. Each declaration is a new view for all agents.
    """

    def __init__(self, after_s: float = _AFTER_S) -> None:
        self._after_s = after_s
        self._since: dict[str, tuple[bool, float]] = {}
        self._away: set[str] = set()
        self._unknown: set[str] = set()

    def look(self, answered: Mapping[str, bool | None], now_s: float) -> None:
        """Note which clusters answer.

        Args:
            answered: whether the last request was answered, by source; None before the first answer.
            now_s: seconds of a monotonic clock.
        """
        self._unknown = {source for source, one in answered.items() if one is None}
        for source, one in answered.items():
            answers, since = self._since.get(source, (True, now_s))
            if bool(one) is not answers:
                answers, since = bool(one), now_s
            self._since[source] = answers, since
            if now_s - since >= self._after_s:
                (self._away.discard if answers else self._away.add)(source)

    def declared(self, agent: Agent) -> Agent:
        """Return the agent with the clusters that it does not reach, besides its settings."""
        found = {AWAY: self._away - self._unknown, UNKNOWN: self._unknown}
        others = [one for one in agent.settings if one.partition("=")[0] not in found]
        new = [f"{name}={'/'.join(sorted(sources))}" for name, sources in found.items() if sources]
        return replace(agent, settings=tuple(sorted([*others, *new])))


def unreached(agent: Agent) -> frozenset[str]:
    """Return the sources that an agent declares as lost or never reached."""
    return declared_names(agent, AWAY) | declared_names(agent, UNKNOWN)


def agents_away(view: View) -> dict[str, frozenset[str]]:
    """Return the live agents that have lost a cluster, by source; without clusters that all have lost.

    No placement helps then.
    """
    found: dict[str, set[str]] = {}
    for agent in view.members:
        for source in declared_names(agent, AWAY):
            found.setdefault(source, set()).add(agent.id)
    return {source: frozenset(agents) for source, agents in found.items() if len(agents) < len(view.members)}


def placed_apart(view: View, topics: Sequence[FleetTopic]) -> list[tuple[View, list[FleetTopic]]]:
    """Divide topics into those that all live agents know, and those of each cluster that some do not know.

    Returns:
        The topics in their order, each time with the agents among which they are placed.
    """
    unknown = sorted({source for agent in view.members for source in declared_names(agent, UNKNOWN)})
    if not unknown:
        return [(view, list(topics))]
    found = [(view, [topic for topic in topics if topic.source not in unknown])]
    for source in unknown:
        members, departed = (
            tuple(agent for agent in agents if source not in declared_names(agent, UNKNOWN))
            for agents in (view.members, view.departed)
        )
        among = View(members, view.version, departed) if members else view
        found.append((among, [topic for topic in topics if topic.source == source]))
    return [(among, some) for among, some in found if some]


def reached_alike(one: View, other: View) -> bool:
    """Return whether the agents of two views declare the same unreached clusters."""
    if one == other:
        return True
    first, second = (
        {agent.id: (declared_names(agent, AWAY), declared_names(agent, UNKNOWN)) for agent in view.members}
        for view in (one, other)
    )
    return all(first[agent] == second[agent] for agent in first.keys() & second.keys())
