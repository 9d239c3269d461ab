"""Which agents read which topics: a pure function of the view, the topics and the workers."""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from assignors.errors import FleetError
from assignors.fleet.agents_per_topic import FleetWorkers
from assignors.fleet.agents_view import View
from assignors.fleet.bounded_seats import Seating, rank_agents
from assignors.fleet.fleet_topic import FleetTopic
from assignors.planner.load_bounds import check_epsilon

_LEVELS = 8
"""Levels above the planned one, each a seat for every topic. Agents beyond them are added by rank, without a bound: a
topic that asks for so many is read by a large part of the fleet, and time to decide grows with the levels."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Balance:
    """How evenly topics lie on agents.

    Attributes:
        epsilon: no agent holds more than (1 + epsilon) x its fair share of the planned seats, in whole seats.
        seed: another seed, another ranking; the same for the whole fleet.

    Raises:
        BoundError: epsilon is negative or not a number.
    """

    epsilon: float = 0.05
    seed: int = 0

    def __post_init__(self) -> None:
        check_epsilon(self.epsilon)


@dataclass(frozen=True, slots=True, kw_only=True)
class Decision:
    """Who reads what.

    Attributes:
        view: what it was decided from.
        workers: the agents of each topic by its identity, the first in line first; empty where no agent lives.
        topics: by identity.
    """

    view: View
    workers: Mapping[str, tuple[str, ...]]
    topics: Mapping[str, FleetTopic] = field(default_factory=dict)

    def of(self, agent: str) -> list[FleetTopic]:
        """The topics of one agent, sorted."""
        return sorted(self.topics[identity] for identity, agents in self.workers.items() if agent in agents)

    @property
    def loads(self) -> dict[str, int]:
        """Topics by living agent."""
        counts = Counter(agent for agents in self.workers.values() for agent in agents)
        return {agent: counts[agent] for agent in self.view.ids}

    @property
    def connections(self) -> int:
        """Pairs of an agent and a topic that it is connected to; the least there can be is the sum of the workers."""
        return sum(len(agents) for agents in self.workers.values())

    @property
    def cluster_connections(self) -> int:
        """Pairs of an agent and a cluster that it reads from."""
        return len({(a, self.topics[t].cluster) for t, agents in self.workers.items() for a in agents})

    def moved(self, before: "Decision") -> int:
        """How many pairs are here that were not there before, among topics of both."""
        return sum(len(set(agents) - set(before.workers.get(t, agents))) for t, agents in self.workers.items())


def decide(
    view: View, topics: Iterable[FleetTopic], workers: FleetWorkers | None = None, balance: Balance | None = None
) -> Decision:
    """Decide who reads what.

    Equal views, topics, workers and balance give equal decisions in every process, whatever their order. When an agent
    dies only its topics move, each to its next agent in rank with room; when one more worker is asked for, exactly one
    agent is added; and the load of planned seats is bounded.

    Args:
        view: who lives.
        topics: of all clusters.
        workers: agents per topic; 1 each by default.
        balance: how evenly.

    Raises:
        FleetError: a topic stands twice.
    """
    workers, balance = workers or FleetWorkers(), balance or Balance()
    ordered = sorted(topics, key=lambda topic: topic.identity)
    by_identity = {topic.identity: topic for topic in ordered}
    if len(by_identity) != len(ordered):
        raise FleetError("a topic stands twice among the topics to decide about")
    if not view.members:
        return Decision(view=view, workers=dict.fromkeys(by_identity, ()), topics=by_identity)
    names, lists = seat_lists(view, ordered, workers, balance)
    living = set(view.ids)
    found = {}
    for topic, seats in zip(ordered, lists, strict=True):
        wanted = workers.wanted(topic)
        pinned = [agent for agent in workers.pinned(topic) if agent in living]
        line = [*pinned, *(names[a] for a in seats if names[a] not in pinned)]
        found[topic.identity] = tuple(line[: len(living) if wanted is None else wanted])
    return Decision(view=view, workers=found, topics=by_identity)


def seat_lists(
    view: View, ordered: Sequence[FleetTopic], workers: FleetWorkers, balance: Balance
) -> tuple[list[str], list[list[int]]]:
    """Give seats to everybody in the view, then let the departed go in their order.

    Returns:
        Agents of the view by number, and numbers of living agents by topic in the order of the seats.
    """
    roster = sorted((*view.members, *view.departed))
    names = [agent.id for agent in roster]
    number = {name: at for at, name in enumerate(names)}
    weights = np.array([agent.capacity for agent in roster])
    ranking = rank_agents([topic.identity for topic in ordered], names, weights, balance.seed)
    seating = Seating(ranking, weights.tolist(), balance.epsilon, [True] * len(names))
    planned = [workers.planned(topic) or len(names) for topic in ordered]
    seating.add_level(planned)
    # A file or an autoscaler may ask for any number; there are no seats beyond those of the whole roster. The departed
    # hold seats until their turn to leave, so it is not the number of the living that counts.
    wanted = [min(workers.wanted(topic) or len(names), len(names)) for topic in ordered]
    more = max((w - p for w, p in zip(wanted, planned, strict=True)), default=0)
    for _ in range(min(more, _LEVELS)):
        seating.add_level([1] * len(ordered))
    for agent in view.departed:
        seating.depart(number[agent.id])
    return names, [_line(seating, topic, most) for topic, most in enumerate(wanted)]


def _line(seating: Seating, topic: int, wanted: int) -> list[int]:
    """The living agents of a topic: those on its seats, then by rank as many as are wanted beyond the levels."""
    seated = seating.workers(topic)
    if len(seated) >= wanted:
        return seated
    taken = set(seated)
    return seated + [agent for agent in seating.ranking[topic] if seating.alive[agent] and agent not in taken]
