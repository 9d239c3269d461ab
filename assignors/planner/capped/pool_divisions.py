"""The ways to divide a topic among a few members, and what they cost in partitions off rack."""

import itertools
from functools import lru_cache
from math import comb
from typing import Final

import numpy as np

from assignors.planner.input_arrays import I64, Bools

_DIVISIONS: Final = 100  # of one topic; if there are more, only those close to the current one are tried
_SHIFT: Final = 2


def divisions(now: I64, most: int) -> tuple[I64, bool]:
    """List the ways to divide a topic among at most `most` of the members; those close to `now` if there are too many.

    Args:
        now: partitions of each member, shape (G,).
        most: maximum number of readers.

    Returns:
        Counts of each member, shape (D, G), and whether these are all ways.
    """
    every = _divisions(int(now.sum()), most, len(now))
    if every is not None:
        return every, True
    near = now + _shifts(len(now))
    return near[(near >= 0).all(axis=1) & ((near > 0).sum(axis=1) <= most)], False


def off_rack(sets: I64, off: Bools, others: Bools, theirs: int, counts: I64) -> I64:
    """Return the fewest partitions off rack under each division, by the smallest cut (Ford and Fulkerson 1956).

    The readers outside the pool count as one reader that is local wherever one of them is local.

    Args:
        sets: partitions of the topic by rack set, shape (K,).
        off: which members of the pool are outside which rack set, shape (K, G).
        others: the same for readers outside the pool, shape (K, R).
        theirs: partitions of these readers.
        counts: partitions of each member of the pool, shape (D, G).
    """
    local = ~off
    if others.size:
        local = np.c_[local, ~others.all(axis=1)]
        counts = np.c_[counts, np.full(len(counts), theirs)]
    sides = _sides(local.shape[1])
    reached = sets @ (local[:, None, :] & sides).any(axis=2)
    matched: I64 = (reached + counts @ ~sides.T).min(axis=1)
    out: I64 = counts.sum(axis=1) - matched
    return out


@lru_cache
def _sides(members: int) -> Bools:
    """List every subset of the members, shape (S, members)."""
    return np.array(list(itertools.product((False, True), repeat=members)))


@lru_cache(maxsize=1024)
def _divisions(count: int, most: int, members: int) -> I64 | None:
    """List the ways to divide `count` among at most `most` of the members; None if there are too many."""
    if sum(comb(members, k) * comb(count - 1, k - 1) for k in range(1, most + 1)) > _DIVISIONS:
        return None
    ways = []
    for k in range(1, most + 1):
        for readers in itertools.combinations(range(members), k):
            for cuts in itertools.combinations(range(1, count), k - 1):
                way = [0] * members
                for member, start, end in zip(readers, (0, *cuts), (*cuts, count), strict=True):
                    way[member] = end - start
                ways.append(way)
    return np.array(ways, dtype=np.int64)


@lru_cache
def _shifts(members: int) -> I64:
    """List small changes of a division."""
    changes = itertools.product(range(-_SHIFT, _SHIFT + 1), repeat=members)
    return np.array([c for c in changes if not sum(c)], dtype=np.int64)
