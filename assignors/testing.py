"""For tests of plans: the goals of a plan in order, and the optimum found by trying every assignment.

The oracle shares no code with the planner: it reads claims, bounds and loads from their definitions.
"""

import itertools
import random
from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import NamedTuple

from assignors.planner.plan_result import Plan
from assignors.planner.topics_and_members import Member, Topic, TopicPartition

Loads = tuple[int, ...]


class Goals(NamedTuple):
    """The values of a plan's goals, compared in the order of the goals; smaller is better.

    Attributes:
        outside: whether a load is outside its bounds.
        heights: loads / weights, the highest first, if a load is outside or no bounds apply.
        off_rack: partitions without a replica in their reader's rack.
        moved: valid claims that went to another member.
    """

    outside: bool
    heights: tuple[Fraction, ...]
    off_rack: int
    moved: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Scenario:
    """A small problem: topics, members and settings."""

    topics: tuple[Topic, ...]
    members: tuple[Member, ...]
    epsilon: float
    workers: int | None

    def best_goals(self) -> Goals:
        """Try every assignment that gives each partition to a subscriber within the worker cap."""
        places = [(t, p) for t in self.topics for p in range(t.partitions) if self._readers(t)]
        bounds = self._bounds(len(places))
        choices = [self._readers(t) for t, _ in places]
        return min(
            self._goals(places, owners, bounds) for owners in itertools.product(*choices) if self._fits(places, owners)
        )

    def goals_of(self, plan: Plan) -> Goals:
        """Measure a plan; an assertion fails where it is invalid or exceeds the worker cap."""
        places = [(t, p) for t in self.topics for p in range(t.partitions) if self._readers(t)]
        owner_of = {pair: i for i, m in enumerate(self.members) for pair in plan.partitions[m.id]}
        given = sum(map(len, plan.partitions.values()))
        assert given == len(places) == len(owner_of), "a partition has two owners or none"  # noqa: S101 -- a goal that no plan may miss
        owners = tuple(owner_of[t.name, p] for t, p in places)
        assert all(o in self._readers(t) for (t, _), o in zip(places, owners, strict=True)), "not subscribed"  # noqa: S101 -- a goal that no plan may miss
        assert self._fits(places, owners), "more members than workers"  # noqa: S101 -- a goal that no plan may miss
        return self._goals(places, owners, self._bounds(len(places)))

    def _readers(self, topic: Topic) -> list[int]:
        return [i for i, m in enumerate(self.members) if topic.name in m.topics]

    def _fits(self, places: Sequence[tuple[Topic, int]], owners: Loads) -> bool:
        if self.workers is None:
            return True
        seen: dict[str, set[int]] = defaultdict(set)
        for (topic, _), owner in zip(places, owners, strict=True):
            seen[topic.name].add(owner)
        return all(len(s) <= self.workers for s in seen.values())

    def _goals(self, places: Sequence[tuple[Topic, int]], owners: Loads, bounds: list[tuple[int, int]] | None) -> Goals:
        loads = [0] * len(self.members)
        for owner in owners:
            loads[owner] += 1
        inside = bounds is not None and all(a <= n <= b for n, (a, b) in zip(loads, bounds, strict=True))
        claims = self._claims()
        off = moved = 0
        for (topic, p), owner in zip(places, owners, strict=True):
            racks, rack = (topic.racks[p] if topic.racks else None) or frozenset(), self.members[owner].rack
            off += bool(racks) and rack is not None and rack not in racks
            moved += claims.get((topic.name, p), owner) != owner
        return Goals(not inside, () if inside else self._heights(tuple(loads)), off, moved)

    def _heights(self, loads: Loads) -> tuple[Fraction, ...]:
        heights = (Fraction(n) / Fraction(m.weight) for n, m in zip(loads, self.members, strict=True))
        return tuple(sorted(heights, reverse=True))

    def _bounds(self, partitions: int) -> list[tuple[int, int]] | None:
        """Return the bounds of the loads by their definition if all subscriptions are equal, else None."""
        read = [t for t in self.topics if t.partitions and self._readers(t)]
        if any(len(self._readers(t)) < len(self.members) for t in read):
            return None
        total = sum(Fraction(m.weight) for m in self.members)
        shares = [partitions * Fraction(m.weight) / total for m in self.members]
        far = Fraction(str(self.epsilon))
        strict = [(-int(-max(Fraction(0), (1 - far) * s) // 1), int((1 + far) * s // 1)) for s in shares]
        vectors = list(_load_vectors(partitions, len(self.members)))
        if any(all(a <= n <= b for n, (a, b) in zip(v, strict, strict=True)) for v in vectors):
            return strict
        least = min(map(self._heights, vectors))
        best = [v for v in vectors if self._heights(v) == least]
        exact = [(min(column), max(column)) for column in zip(*best, strict=True)]
        if not far:
            return exact
        return [(min(a, c), max(b, d)) for (a, b), (c, d) in zip(strict, exact, strict=True)]

    def _claims(self) -> dict[TopicPartition, int]:
        claims_of: dict[TopicPartition, list[tuple[int, int]]] = defaultdict(list)
        for i, member in enumerate(self.members):
            for pair in member.owned:
                claims_of[pair].append((member.generation, i))
        newest = {pair: [i for g, i in claims if g == max(claims)[0]] for pair, claims in claims_of.items()}
        return {p: m[0] for p, m in newest.items() if len(m) == 1 and p[0] in self.members[m[0]].topics}


def random_scenario(rng: random.Random, *, equal: bool, weights: bool, racks: bool, capped: bool) -> Scenario:
    """Draw a problem small enough for the oracle: up to 4 topics, 4 members, 7 partitions."""
    topics, left = [], rng.randint(1, 7)
    for i in range(rng.randint(1, 4)):
        count = rng.randint(0 if i else 1, left)
        left -= count
        sets = [frozenset(rng.sample("abc", rng.randint(0, 2))) for _ in range(count)]
        topics.append(Topic(f"t{i}", count, racks=sets if racks else None))
    names = [t.name for t in topics]
    pairs = [(t.name, p) for t in topics for p in range(t.partitions)]
    members = [
        Member(
            f"m{i}",
            frozenset(names if equal else rng.sample(names, rng.randint(0, len(names)))),
            rack=rng.choice(["a", "b", "c", None]) if racks else None,
            weight=rng.choice([0.5, 1.0, 1.0, 2.0, 3.0]) if weights else 1.0,
            owned=frozenset(pair for pair in pairs if rng.random() < 0.4),  # noqa: PLR2004 -- some of the pairs
            generation=rng.choice([1, 1, 2]),
        )
        for i in range(rng.randint(1, 4))
    ]
    return Scenario(
        topics=tuple(topics),
        members=tuple(members),
        epsilon=rng.choice([0.0, 0.0, 0.05, 0.3, 1.0]),
        workers=rng.randint(1, 3) if capped else None,
    )


def _load_vectors(total: int, members: int) -> Iterator[Loads]:
    if members == 1:
        yield (total,)
        return
    for first in range(total + 1):
        for rest in _load_vectors(total - first, members - 1):
            yield (first, *rest)
