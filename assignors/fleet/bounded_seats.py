"""Seats of topics on agents: placement by rank, with no agent above its bound and no unnecessary moves.

A topic has a list of seats. The first seats, as many as its planned workers, are *level 0* and bounded: an agent holds
at most (1 + epsilon) x its fair share of them, so a full agent is skipped for the next in rank. Each further level is
one more seat for every topic, with a separate bound. It counts only if a setting requests more workers than planned. A
level never depends on later ones, so a request for one more worker of one topic adds exactly one agent to it.

The seats of level 0 count equally, or by volume (`topic_volumes`).

Seats are first given to all agents of the view, including the departed. Then each departure, in order, moves the seats
of only that agent. A function of only the live agents cannot both bound loads and move no other topic in any order of
deaths: such a function is a fixed ranking for each topic, and rankings by a hash load agents unevenly.

Source: Thaler and Ravishankar 1998 (rank); Mirrokni, Thorup, Zadimoghaddam 2018 (bounded loads).
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from assignors.hashing.murmur3_hash import F64, hash64s, order_keys, pairs64, weighted_scores
from assignors.planner.topic_volumes import largest_first, volume_bounds

_SPARE = 0.25  # epsilon of levels above 0, which are seldom all in use
_FEW = 16  # up to this length searching a list is faster than creating a set

Ranking = list[list[int]]
"""For each topic the agents, the best first."""


def rank_agents(topics: Sequence[str], agents: Sequence[str], weights: F64, seed: int) -> Ranking:
    """Rank all agents for each topic by weighted rendezvous; time and memory grow with topics x agents.

    Args:
        topics: identities, shape (T,).
        agents: ids, sorted, shape (A,).
        weights: above 0, shape (A,).
        seed: another seed gives another ranking.
    """
    pairs = pairs64(hash64s(list(agents), seed), hash64s(list(topics), seed))
    keys = pairs if (weights == weights[0]).all() else order_keys(weighted_scores(pairs, weights))
    found: Ranking = np.argsort(~keys, axis=1, kind="stable").tolist()
    return found


def seat_bounds(seats: int, topics: int, weights: Sequence[float], epsilon: float) -> list[int]:
    """Return the maximum number of seats of each agent.

    It is (1 + epsilon) x the weighted fair share, rounded so that a plan exists.

    An agent cannot hold two seats of one topic, so the share of a heavy agent is at most the number of topics, and the
    others divide the rest.

    Args:
        seats: number of seats.
        topics: number of their topics.
        weights: of the agents; 0 for an agent that may hold no seat.
        epsilon: allowed excess, 0 or more.
    """
    shares = [0.0] * len(weights)
    left, free = float(seats), sorted((a for a, w in enumerate(weights) if w > 0), key=lambda a: -weights[a])
    total = sum(weights)
    while free:
        heaviest = free[0]
        share = left * weights[heaviest] / total
        if share < topics:
            for agent in free:
                shares[agent] = left * weights[agent] / total
            break
        shares[heaviest] = float(topics)
        left, total = max(0.0, left - topics), total - weights[heaviest]
        free.pop(0)
    # Rounded first: 1.1 * 10 is 11.000000000000002.
    found = {s: max(math.ceil(round(s, 9)), math.floor(round((1 + epsilon) * s, 9))) for s in set(shares)}
    return [found[s] for s in shares]


@dataclass(slots=True)
class Level:
    """Seats with a common bound.

    Attributes:
        bounds: maximum load, by agent.
        loads: sum of the sizes of the seats held, by agent.
        seats: agents by topic, in order; None if no agent was left.
        sizes: size of a seat, by topic: 1, or the volume of its share of the topic.
        by_volume: whether sizes are volumes.
    """

    bounds: list[int]
    loads: list[int]
    seats: list[list[int | None]]
    sizes: Sequence[int]
    by_volume: bool = False

    def has_room(self, agent: int) -> bool:
        """Return whether the agent can hold one more seat of size 1."""
        return self.loads[agent] < self.bounds[agent]

    def put(self, topic: int, agent: int | None) -> None:
        """Append a seat."""
        self.seats[topic].append(agent)
        if agent is not None:
            self.loads[agent] += self.sizes[topic]

    def bound(self, weights: Sequence[float], epsilon: float) -> None:
        """Compute the bounds of agents with these weights for the seats that are held."""
        if not self.by_volume:
            self.bounds = seat_bounds(sum(self.loads), len(self.seats), weights, epsilon)
            return
        held = [self.sizes[topic] for topic, seats in enumerate(self.seats) for agent in seats if agent is not None]
        self.bounds = volume_bounds(held, weights, epsilon)


@dataclass(slots=True)
class Seating:
    """The seats while they are assigned.

    Attributes:
        ranking: all agents, by topic.
        weights: of the agents.
        epsilon: allowed excess of level 0.
        alive: whether each agent is live.
        levels: the lowest first.
        volumes: volume of a seat of level 0, by topic; None to count seats.
    """

    ranking: Ranking
    weights: Sequence[float]
    epsilon: float
    alive: list[bool]
    levels: list[Level] = field(default_factory=list)
    volumes: Sequence[int] | None = None

    def add_level(self, wanted: Sequence[int]) -> None:
        """Add a level with this number of seats for each topic.

        Args:
            wanted: seats by topic; seats without a free agent stay empty.
        """
        topics = len(self.ranking)
        free = [len(self.weights) - sum(len(level.seats[t]) for level in self.levels) for t in range(topics)]
        counts = [max(0, min(wanted[t], free[t])) for t in range(topics)]
        level = self._new_level(counts)
        self.levels.append(level)
        layers = range(max(counts, default=0))
        # By volume all seats of a topic come together: later there is no room left for a large one.
        order = (
            [topic for topic in largest_first(level.sizes) for _ in range(counts[topic])]
            if level.by_volume
            else [topic for layer in layers for topic in range(topics) if layer < counts[topic]]
        )
        # An agent that is full stays full while a level is built: if it passes a seat on, it gets another one. So the
        # search never goes back to agents before the last one seated.
        places = [0] * topics
        for topic in order:
            places[topic], agent = self._best(level, topic, places[topic])
            if agent is None:
                agent = self._make_room(level, topic)
            level.put(topic, self._least(level, topic) if agent is None else agent)

    def _new_level(self, counts: Sequence[int]) -> Level:
        topics, loads = len(counts), [0] * len(self.weights)
        if self.volumes is not None and not self.levels:
            sizes = [size for size, count in zip(self.volumes, counts, strict=True) for _ in range(count)]
            bounds = volume_bounds(sizes, self.weights, self.epsilon)
            return Level(bounds, loads, [[] for _ in range(topics)], self.volumes, by_volume=True)
        epsilon = max(self.epsilon, _SPARE) if self.levels else self.epsilon
        bounds = seat_bounds(sum(counts), topics, self.weights, epsilon)
        return Level(bounds, loads, [[] for _ in range(topics)], [1] * topics)

    def depart(self, agent: int) -> None:
        """Move the seats of one agent to others, level by level, and leave all other seats in place."""
        self.alive[agent] = False
        living = [w if alive else 0.0 for w, alive in zip(self.weights, self.alive, strict=True)]
        if not any(living):
            for level in self.levels:
                level.seats = [[None] * len(seats) for seats in level.seats]
            return
        # A stand-in on a lower level may have a seat of the topic on this one, which it then passes on. Nothing else
        # can be twice on the seats of a topic.
        arrived: dict[int, set[int]] = {}
        for number, level in enumerate(self.levels):
            level.bound(living, max(self.epsilon, _SPARE) if number else self.epsilon)
            level.loads[agent] = 0
            order = largest_first(level.sizes) if level.by_volume else range(len(level.seats))
            for topic in order:
                seats = level.seats[topic]
                if agent in seats or (arrived and topic in arrived and not arrived[topic].isdisjoint(seats)):
                    self._refill(number, topic, agent, arrived.setdefault(topic, set()))

    def workers(self, topic: int) -> list[int]:
        """Return the live agents of a topic in the order of its seats."""
        return [agent for level in self.levels for agent in level.seats[topic] if agent is not None]

    def _refill(self, number: int, topic: int, gone: int, arrived: set[int]) -> None:
        """Give the seats of an agent that is gone, and those of agents that came to a lower level, to others."""
        level = self.levels[number]
        seats, below = level.seats[topic], frozenset(arrived)
        for place, agent in enumerate(seats):
            if agent != gone and agent not in below:
                continue
            if agent is not None and agent != gone:
                level.loads[agent] -= level.sizes[topic]
            seats[place] = None
            _, found = self._best(level, topic)
            seats[place] = found = self._least(level, topic) if found is None else found
            if found is not None:
                level.loads[found] += level.sizes[topic]
                arrived.add(found)

    def _taken(self, level: Level, topic: int) -> list[int | None]:
        """Return the agents on seats of this level or a lower one; they are few, so a list is faster than a set."""
        if level is self.levels[0]:
            return level.seats[topic]
        taken: list[int | None] = []
        for one in self.levels:
            taken += one.seats[topic]
            if one is level:
                break
        return taken

    def _best(self, level: Level, topic: int, begin: int = 0) -> tuple[int, int | None]:
        """Find the best agent with room, from a position of the topic's ranking on, and its position."""
        taken, alive, loads, bounds = self._taken(level, topic), self.alive, level.loads, level.bounds
        ranked, size = self.ranking[topic], level.sizes[topic]
        if not begin and len(taken) > _FEW:
            taken = set(taken)  # type: ignore[assignment]  # used only for membership tests
        for place in range(begin, len(ranked)):
            agent = ranked[place]
            if loads[agent] + size <= bounds[agent] and alive[agent] and agent not in taken:
                return place, agent
        return len(ranked), None

    def _make_room(self, level: Level, topic: int) -> int | None:
        """Find a full agent that can pass a seat of another topic to one with room, and do so (an augmenting path).

        This is needed if the last agents with room already have a seat of the topic. It takes the shortest path, with
        better ranked agents first.

        Returns:
            The agent that now has room for this topic; None if there is none, or if seats have volumes: an agent
            that passes on a small seat would have no room for a large one.
        """
        if level.by_volume:
            return None
        taken, ranked = self._taken(level, topic), self.ranking[topic]
        before: dict[int, tuple[int, int] | None] = {a: None for a in ranked if a not in taken}
        queue = list(before)
        for agent in queue:
            if level.has_room(agent):
                return _pass_on(level, before, agent)
            for other, seats in enumerate(level.seats):
                if other == topic or agent not in seats:
                    continue
                others = self._taken(level, other)
                for following in ranked:
                    if following not in before and following not in others:
                        before[following] = (agent, other)
                        queue.append(following)
        return None

    def _least(self, level: Level, topic: int) -> int | None:
        """Return the agent least above its share, for the case that none has room; the better ranked first."""
        taken = self._taken(level, topic)
        free = [a for a in self.ranking[topic] if self.alive[a] and a not in taken]
        return min(free, key=lambda a: (level.loads[a] + level.sizes[topic]) / self.weights[a], default=None)


def _pass_on(level: Level, before: dict[int, tuple[int, int] | None], last: int) -> int:
    step = before[last]
    while step is not None:
        giver, topic = step
        level.seats[topic][level.seats[topic].index(giver)] = last
        level.loads[giver] -= 1
        level.loads[last] += 1
        last, step = giver, before[giver]
    return last
