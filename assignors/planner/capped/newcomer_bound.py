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
from math import comb
from typing import Final

import numpy as np

from assignors.planner.input_arrays import I32, I64
from assignors.planner.load_bounds import Band

_CHOICES: Final = 200  # of owners that leave a topic; if there are more, the best of all of them is assumed


def newcomer_moves(owned: I64, sizes: I64, caps: I32, band: Band) -> int:
    """Bound the claims that move in any plan within the band and the caps.

    Args:
        owned: valid claims, shape (T, M).
        sizes: partitions of each topic, shape (T,).
        caps: most distinct members of each topic, shape (T,).
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
    for topic in range(len(sizes)):
        best = excess.copy()
        for cost, count in _offers(owned[topic], int(sizes[topic]), int(caps[topic]), surplus, newcomer):
            through = excess[np.maximum(np.arange(need + 1) - count, 0)] + cost
            best = np.minimum(best, through)
        excess = best
    # Each partition beyond what the topics give at these excesses is one more.
    least = int((excess + need - np.arange(need + 1)).min())
    return max(0, int(needs.sum()) - int(sizes.sum() - owned.sum()) + least)


def _offers(owned: I64, size: int, cap: int, surplus: I64, newcomer: int) -> list[tuple[int, int]]:
    """List excesses of the owners of a topic with the partitions that the newcomer gets for each."""
    mine = int(owned[newcomer])
    owners = [m for m in np.flatnonzero(owned).tolist() if m != newcomer]
    pieces = [int(owned[m]) for m in owners]
    spare = [max(0, int(surplus[m])) for m in owners]
    excesses = [max(0, piece - room) for piece, room in zip(pieces, spare, strict=True)]
    gone = max(0, len(owners) + 1 - cap)
    if comb(len(owners), gone) > _CHOICES:
        return [(sum(sorted(excesses)[:gone]), size - mine)]
    without = size - mine - sum(pieces) + sum(map(min, pieces, spare))
    best: dict[int, int] = {}
    for some in itertools.combinations(range(len(owners)), gone):
        cost = sum(excesses[i] for i in some)
        # An owner that leaves gives its whole piece, beyond what it can give without an excess.
        best[cost] = max(best.get(cost, 0), without + cost)
    return [(cost, count) for cost, count in best.items() if count > cost]
