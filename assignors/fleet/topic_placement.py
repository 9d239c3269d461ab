"""Which agents read which topics: a pure function of the view, the topics and the workers."""

from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Final, Literal, get_args

import numpy as np

from assignors.errors import FleetError
from assignors.fleet.agents_per_topic import FleetWorkers
from assignors.fleet.agents_view import View
from assignors.fleet.bounded_seats import Seating, rank_agents
from assignors.fleet.fleet_topic import FleetTopic
from assignors.fleet.partition_shares import partition_shares
from assignors.fleet.topic_zones import nearest_first
from assignors.fleet.unreached_clusters import agents_away, placed_apart
from assignors.planner.load_bounds import check_epsilon
from assignors.planner.topic_volumes import seat_volumes

BalanceBy = Literal["count", "volume"]
"""What is balanced: the number of topics, or their volume."""
BALANCE_BY: Final = get_args(BalanceBy)

Away = Mapping[str, Collection[str]]
"""Agents that have lost a cluster, by source."""

_LEVELS = 8
"""Levels above the planned one, each a seat for every topic. Further agents are added by rank, without a bound: a large
part of the fleet then reads the topic anyway, and the time of a decision grows with the levels."""
_BOUNDED_SEATS = 1 << 14
_LEVEL_SEATS = 1 << 12
"""Planned seats, and seats of the levels above them, that all topics together have with a bound. Without these limits
99 workers of each of 1,000 topics take 2 s in every agent, with 60 live agents and 40 departed ones."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Balance:
    """Settings of the balance of topics on agents.

    Attributes:
        epsilon: no agent holds more than (1 + epsilon) x its fair share of the planned seats, in whole seats.
        seed: another seed gives another ranking; the same for the whole fleet.
        by: what a planned seat counts: `count` 1, `volume` its share of the topic's weight (`FleetWorkers.weights`).

    Raises:
        BoundError: epsilon is negative or not a number.
        FleetError: `by` is neither of the two.
    """

    epsilon: float = 0.05
    seed: int = 0
    by: BalanceBy = "count"

    def __post_init__(self) -> None:
        check_epsilon(self.epsilon)
        if self.by not in BALANCE_BY:
            raise FleetError(f"balance by {self.by!r}, need one of {', '.join(BALANCE_BY)}")


@dataclass(frozen=True, slots=True, kw_only=True)
class Decision:
    """The placement of topics on agents.

    Attributes:
        view: the view of the decision.
        workers: the agents of each topic by identity, the first in line first; empty if no agent is live.
        topics: the topics by identity.
        planned: the agents of each topic before departures, and without regard to unreached clusters.
    """

    view: View
    workers: Mapping[str, tuple[str, ...]]
    topics: Mapping[str, FleetTopic] = field(default_factory=dict)
    planned: Mapping[str, tuple[str, ...]] = field(default_factory=dict)

    def of(self, agent: str) -> list[FleetTopic]:
        """Return the topics of one agent, sorted."""
        return sorted(self.topics[identity] for identity, agents in self.workers.items() if agent in agents)

    def shares_of(self, agent: str) -> list[FleetTopic]:
        """Return the topics of one agent, each with its share of the partitions; empty shares are left out."""
        found = []
        for topic in self.of(agent):
            seated = self.workers[topic.identity]
            planned = self.planned.get(topic.identity, seated)
            share = partition_shares(topic.partitions, planned, seated)[agent]
            found += [replace(topic, share=tuple(share))] if share else []
        return found

    @property
    def loads(self) -> dict[str, int]:
        """Number of topics of each live agent."""
        counts = Counter(agent for agents in self.workers.values() for agent in agents)
        return {agent: counts[agent] for agent in self.view.ids}

    @property
    def connections(self) -> int:
        """Pairs of an agent and a topic that it reads; the smallest possible number is the sum of the workers."""
        return sum(len(agents) for agents in self.workers.values())

    @property
    def cluster_connections(self) -> int:
        """Pairs of an agent and a cluster that it reads from."""
        return len({(a, self.topics[t].cluster) for t, agents in self.workers.items() for a in agents})

    def moved(self, before: "Decision") -> int:
        """Count the pairs that `before` does not have, among topics of both."""
        return sum(len(set(agents) - set(before.workers.get(t, agents))) for t, agents in self.workers.items())


def decide(
    view: View, topics: Iterable[FleetTopic], workers: FleetWorkers | None = None, balance: Balance | None = None
) -> Decision:
    """Compute the agents of each topic.

    Equal views, topics, workers and balance give equal decisions in every process, in any order. When an agent dies
    only its topics move, each to its next agent in rank with room. One more worker adds exactly one agent. The load of
    planned seats is bounded. Agents that declare that they do not reach a cluster get none of its topics. If
    topics have zones, agents in these zones come first, as far as the bound allows.

    Args:
        view: the agents.
        topics: topics of all clusters.
        workers: agents per topic; 1 each by default.
        balance: settings of the balance.

    Raises:
        FleetError: a topic is listed twice.
    """
    workers, balance = workers or FleetWorkers(), balance or Balance()
    ordered = sorted(topics, key=lambda topic: topic.identity)
    by_identity = {topic.identity: topic for topic in ordered}
    if len(by_identity) != len(ordered):
        raise FleetError("a topic stands twice among the topics to decide about")
    if not view.members:
        return Decision(view=view, workers=dict.fromkeys(by_identity, ()), topics=by_identity)
    made = [_place(among, some, workers, balance) for among, some in placed_apart(view, ordered)]
    if len(made) == 1:
        return replace(made[0], view=view, topics=by_identity)
    return Decision(
        view=view,
        workers={identity: agents for one in made for identity, agents in one.workers.items()},
        topics=by_identity,
        planned={identity: agents for one in made for identity, agents in one.planned.items()},
    )


def _place(view: View, ordered: Sequence[FleetTopic], workers: FleetWorkers, balance: Balance) -> Decision:
    """Place topics that all agents of the view know."""
    away = agents_away(view)
    planned, lists = seat_lists(view, ordered, workers, balance, away)
    living = set(view.ids)

    def lines(lists: Sequence[Sequence[str]], agents: Collection[str], away: Away) -> dict[str, tuple[str, ...]]:
        found = {}
        for topic, seats in zip(ordered, lists, strict=True):
            wanted, avoided = workers.wanted(topic), away.get(topic.source, frozenset())
            pinned = [agent for agent in workers.pinned(topic) if agent in agents and agent not in avoided]
            line = [*pinned, *(agent for agent in seats if agent not in pinned)]
            found[topic.identity] = tuple(line[: len(agents) if wanted is None else wanted])
        return found

    everyone = living | {agent.id for agent in view.departed}
    before = lines(planned, everyone, {}) if planned else {}
    return Decision(view=view, workers=lines(lists, living, away), planned=before)


def seat_lists(
    view: View, ordered: Sequence[FleetTopic], workers: FleetWorkers, balance: Balance, away: Away
) -> tuple[list[list[str]], list[list[str]]]:
    """Assign seats to all agents of the view, then move the seats of the departed agents in their order.

    Returns:
        Agents by topic in the order of the seats: before departures and without regard to unreached clusters, empty if
        there are none of both; and the live agents now.
    """
    roster = sorted((*view.members, *view.departed))
    names = [agent.id for agent in roster]
    number = {name: at for at, name in enumerate(names)}
    weights = np.array([agent.capacity for agent in roster])
    ranking = rank_agents([topic.identity for topic in ordered], names, weights, balance.seed)
    ranking = nearest_first(ranking, ordered, roster)
    planned = [workers.planned(topic) or len(names) for topic in ordered]
    volumes = seat_volumes([workers.weight(topic) for topic in ordered], planned) if balance.by == "volume" else None
    seating = Seating(ranking, weights.tolist(), balance.epsilon, [True] * len(names), volumes=volumes)
    bounded = _each(_BOUNDED_SEATS, len(ordered), _LEVELS)
    seating.add_level([min(number, bounded) for number in planned])
    # A file or an autoscaler may request any number, so it is limited to the number of all agents. Departed agents hold
    # seats until their turn, so the number of live agents would be too small.
    wanted = [min(workers.wanted(topic) or len(names), len(names)) for topic in ordered]
    more = max((w - p for w, p in zip(wanted, planned, strict=True)), default=0)
    for _ in range(min(more, _LEVELS, _each(_LEVEL_SEATS, len(ordered), 1))):
        seating.add_level([1] * len(ordered))

    def lists(away: Away) -> list[list[str]]:
        avoided = {source: {number[agent] for agent in agents} for source, agents in away.items()}
        lines = (_line(seating, at, wanted[at], avoided.get(topic.source, ())) for at, topic in enumerate(ordered))
        return [[names[a] for a in line] for line in lines]

    planned_lists = lists({}) if view.departed or away else []
    for agent in view.departed:
        seating.depart(number[agent.id])
    return planned_lists, lists(away)


def _each(seats: int, topics: int, least: int) -> int:
    """Return how many of these seats each topic can have: a power of two, which seldom changes with the topics."""
    return max(least, 1 << max(seats // max(topics, 1), 1).bit_length() - 1)


def _line(seating: Seating, topic: int, wanted: int, avoided: Collection[int]) -> list[int]:
    """Return the live agents of a topic: those on its seats, then by rank the workers beyond the levels.

    The next agent in rank takes the seat of an agent that is avoided, without a bound.
    """
    seated = seating.workers(topic)
    if avoided:
        seated = seated[:wanted]
        ranked = (a for a in seating.ranking[topic] if seating.alive[a] and a not in seated and a not in avoided)
        found = [next(ranked, None) if agent in avoided else agent for agent in seated]
        return [agent for agent in (*found, *ranked) if agent is not None][:wanted]
    if len(seated) >= wanted:
        return seated
    taken = set(seated)
    return seated + [agent for agent in seating.ranking[topic] if seating.alive[agent] and agent not in taken]
