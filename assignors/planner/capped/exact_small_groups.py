"""Finds the exact optimum of small groups with worker caps; readers and loads have to be chosen together.

Dynamic programming over topics finds the cheapest way to each vector of loads. Costs are compared in the order of the
goals: off rack, moved, spread within the topic, rank.
"""

from collections.abc import Iterator
from math import comb

import numpy as np

from assignors.hashing.murmur3_hash import F64
from assignors.planner.input_arrays import I32, NO_OWNER, Problem
from assignors.planner.load_bounds import fair_band
from assignors.planner.place_unowned import Scores
from assignors.planner.rack_locality import Racks

WORK = 60_000
"""Maximum number of steps of the dynamic programme, about 100 ms; larger groups are planned by `reader_choice`."""

Cost = tuple[int, int, int, int]
Loads = tuple[int, ...]
Owners = tuple[int, ...]


def is_small(problem: Problem) -> bool:
    """Return whether the exact optimum takes at most a fraction of a second."""
    members = len(problem.members)
    sizes = np.diff(problem.first).tolist()
    if members > 8 or problem.partitions > 40:  # noqa: PLR2004 - limits the arguments of `comb`
        return False
    options = max((comb(n + members - 1, members - 1) for n in sizes), default=1)
    work, placed = 0, 0
    for size in sizes:
        work += comb(placed + members - 1, members - 1) * comb(size + members - 1, members - 1)
        placed += size
    return work <= WORK and options * members * max(sizes, default=0) <= WORK


def exact_plan(problem: Problem, racks: Racks, caps: I32, epsilon: float, scores: Scores) -> I32:
    """Find the best plan.

    Args:
        problem: a group for which `is_small` is true.
        racks: which members are off which partition's racks.
        caps: maximum number of different members of each topic, shape (T,).
        epsilon: allowed distance from the fair share.
        scores: preferences among members; a higher one first.

    Returns:
        Owner of each partition, shape (P,).
    """
    start: Loads = (0,) * len(problem.members)
    layers: list[dict[Loads, tuple[Cost, Loads, Owners]]] = []
    reached: dict[Loads, Cost] = {start: (0, 0, 0, 0)}
    for topic in range(len(problem.topics)):
        layer: dict[Loads, tuple[Cost, Loads, Owners]] = {}
        options = list(_topic_options(problem, racks, topic, int(caps[topic]), scores))
        for before, spent in reached.items():
            for counts, cost, owners in options:
                loads = tuple(map(sum, zip(before, counts, strict=True)))
                total = _add(spent, cost)
                if loads not in layer or (total, before) < layer[loads][:2]:
                    layer[loads] = (total, before, owners)
        layers.append(layer)
        reached = {loads: entry[0] for loads, entry in layer.items()}
    return _walk_back(layers, _best_loads(problem, reached, epsilon), problem)


def _topic_options(
    problem: Problem, racks: Racks, topic: int, cap: int, scores: Scores
) -> Iterator[tuple[Loads, Cost, Owners]]:
    """Yield the cheapest owners for each vector of counts that the cap allows."""
    first, end = int(problem.first[topic]), int(problem.first[topic + 1])
    may = np.flatnonzero(problem.subscribed[problem.group_of, topic]).tolist()
    if not may or first == end:
        yield (0,) * len(problem.members), (0, 0, 0, 0), (NO_OWNER,) * (end - first)
        return
    place = np.empty(len(problem.members), dtype=np.int64)
    place[np.argsort(~scores(np.array([topic]))[0], kind="stable")] = np.arange(len(place))
    best: dict[Loads, tuple[Cost, Owners]] = {(0,) * len(problem.members): ((0, 0, 0, 0), ())}
    for at in range(first, end):
        stay, away = int(problem.owner[at]), racks.off[racks.kind_of[at]]
        longer: dict[Loads, tuple[Cost, Owners]] = {}
        for counts, (spent, owners) in best.items():
            for m in may:
                if not counts[m] and sum(map(bool, counts)) >= cap:
                    continue
                cost = (int(away[m]), int(stay not in (NO_OWNER, m)), 2 * counts[m] + 1, int(place[m]))
                more = (*counts[:m], counts[m] + 1, *counts[m + 1 :])
                entry = (_add(spent, cost), (*owners, m))
                if more not in longer or entry < longer[more]:
                    longer[more] = entry
        best = longer
    for counts, (cost, owners) in best.items():
        yield counts, cost, owners


def _add(one: Cost, two: Cost) -> Cost:
    return one[0] + two[0], one[1] + two[1], one[2] + two[2], one[3] + two[3]


def _best_loads(problem: Problem, reached: dict[Loads, Cost], epsilon: float) -> Loads:
    """Return the cheapest loads within the bounds; if there are none, those with the smallest sorted vector."""
    weights = problem.weights
    placed = sum(next(iter(reached)))
    if problem.equal:
        band = fair_band(placed, weights, epsilon)
        low, high = band.low.tolist(), band.high.tolist()
        within = [c for c in reached if all(a <= n <= b for a, n, b in zip(low, c, high, strict=True))]
        if within:
            return min(within, key=lambda c: (reached[c], c))
    return min(reached, key=lambda c: (_heights(c, weights), reached[c], c))


def _heights(loads: Loads, weights: F64) -> list[float]:
    return sorted((round(n / w, 9) for n, w in zip(loads, weights.tolist(), strict=True)), reverse=True)


def _walk_back(layers: list[dict[Loads, tuple[Cost, Loads, Owners]]], loads: Loads, problem: Problem) -> I32:
    owner = np.full(problem.partitions, NO_OWNER, dtype=np.int32)
    for topic in reversed(range(len(layers))):
        _, before, owners = layers[topic][loads]
        owner[int(problem.first[topic]) : int(problem.first[topic + 1])] = owners
        loads = before
    return owner
