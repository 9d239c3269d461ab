"""A lower bound of the claims that move to one member that needs many of them, such as one that joins.

A topic that has as many readers as its cap allows is open to one more only if an owner leaves it. That owner loses its
whole piece, often more than its load can fall, so it takes other claims in exchange. The quick conditions of
`movement_lower_bound` do not see these.

What a member receives is at least what it loses beyond the difference of its claims and its lower bound. Together, the
members receive the moved claims and the partitions without an owner. So the moved claims are at least: what members
below their bounds need, less the partitions without an owner, and what the others lose beyond that difference. The
last sum is bounded topic by topic: for one of its topics, a member's excess is at most its excess for all of them.
The newcomer chooses the topics that give what it needs at the smallest excess, by dynamic programming.
"""

import itertools
from collections import Counter
from math import comb
from typing import Final

import numpy as np

from assignors.planner.input_arrays import I32, I64
from assignors.planner.load_bounds import Band

_CHOICES: Final = 200  # sets of owners that leave a topic; if there are more, the cheapest of all is assumed

Offers = tuple[tuple[int, int], ...]
"""Excesses of the owners of a topic, with the partitions that the newcomer gets for each."""


def newcomer_moves(owned: I64, sizes: I64, caps: I32, band: Band) -> int:
    """Bound the claims that move in any plan within the band and the caps.

    Args:
        owned: valid claims, shape (T, M).
        sizes: partitions of each topic, shape (T,).
        caps: maximum number of different members of each topic, shape (T,).
        band: bounds of the loads.
    """
    surplus = owned.sum(axis=0) - band.low
    needs = np.maximum(-surplus, 0)
    newcomer = int(needs.argmax())
    need = int(needs[newcomer])
    if not need:
        return 0
    # The lowest excess with which the newcomer gets each number of partitions, or more.
    excess = np.full(need + 1, need)
    excess[0] = 0
    for offers, topics in _offers_of_topics(owned, sizes, caps, surplus, newcomer).items():
        # More topics with these offers give no more than is needed.
        for _ in range(min(topics, -(-need // min(count for _, count in offers)))):
            best = excess.copy()
            for cost, count in offers:
                best = np.minimum(best, excess[np.maximum(np.arange(need + 1) - count, 0)] + cost)
            excess = best
    # Each partition beyond what the topics give at these excesses is one more.
    least = int((excess + need - np.arange(need + 1)).min())
    return max(0, int(needs.sum()) - int(sizes.sum() - owned.sum()) + least)


def _offers_of_topics(owned: I64, sizes: I64, caps: I32, surplus: I64, newcomer: int) -> Counter[Offers]:
    """Count the topics by their offers; many topics have the same."""
    topics, members = np.divmod(np.flatnonzero(owned != 0), owned.shape[1])
    others = members != newcomer
    topics, members = topics[others], members[others]
    pieces = owned[topics, members]
    rows = list(zip(pieces.tolist(), np.clip(surplus[members], 0, pieces).tolist(), strict=True))
    ends = np.cumsum(np.bincount(topics, minlength=len(sizes))).tolist()
    known: dict[tuple[tuple[tuple[int, int], ...], int, int], Offers] = {}
    out: Counter[Offers] = Counter()
    start = 0
    for end, left, cap in zip(ends, (sizes - owned[:, newcomer]).tolist(), caps.tolist(), strict=True):
        key = tuple(sorted(rows[start:end])), left, cap
        if key not in known:
            known[key] = _offers(*key)
        out[known[key]] += 1
        start = end
    del out[()]
    return out


def _offers(owners: tuple[tuple[int, int], ...], left: int, cap: int) -> Offers:
    """List excesses of the owners of a topic with the partitions that the newcomer gets for each.

    Args:
        owners: piece of each owner, and how much of it the owner can lose without an excess.
        left: partitions of the topic that the newcomer does not own.
        cap: maximum number of readers.
    """
    excesses = [piece - spare for piece, spare in owners]
    gone = max(0, len(owners) + 1 - cap)
    if comb(len(owners), gone) > _CHOICES:
        return ((sum(sorted(excesses)[:gone]), left),)
    without = left - sum(excesses)
    best: dict[int, int] = {}
    for some in itertools.combinations(excesses, gone):
        cost = sum(some)
        # An owner that leaves gives its whole piece, beyond what it can give without an excess.
        best[cost] = max(best.get(cost, 0), without + cost)
    return tuple((cost, count) for cost, count in sorted(best.items()) if count > cost)
