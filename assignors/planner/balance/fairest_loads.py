"""The fairest loads under different subscriptions: the highest as low as possible, then the next, and so on.

Kinds of partitions that the same members may read are planned as counts, so the work grows with kinds x members and
not with partitions. Optimality follows from the usual exchange argument: a load vector is the smallest exactly if no
chain of hand-overs leads from a member to one that is still less loaded after taking one more partition.

Source: semi-matchings, Harvey, Ladner, Lovasz and Tamir 2006.
"""

from typing import Final

import numpy as np

from assignors.hashing.murmur3_hash import F64
from assignors.planner.input_arrays import I64, Bools

_SINGLE: Final = 64  # loads up to which single steps take less time than arrays
Chain = list[tuple[int, int, int]]
"""Hand-overs (from, kind, to): one partition of the kind moves from one member to the other."""


def fairest_counts(counts: I64, allowed: Bools, weights: F64) -> I64:
    """Distribute partitions so that no other distribution has a smaller sorted vector of load / weight.

    Args:
        counts: partitions of each kind, shape (K,).
        allowed: which members may read which kind, shape (M, K).
        weights: of the members, shape (M,).

    Returns:
        Partitions of each kind on each member, shape (M, K). Kinds that no member may read stay at 0.
    """
    given = np.zeros(allowed.shape, dtype=np.int64)
    load = np.zeros(len(weights), dtype=np.int64)
    order = np.lexsort((np.arange(len(counts)), allowed.sum(axis=0)))
    for again in (False, True):
        for kind in order:
            who = np.flatnonzero(allowed[:, kind])
            if not who.size or not counts[kind]:
                continue
            if again:
                load[who] -= given[who, kind]
            given[who, kind] = water_fill(int(counts[kind]), load[who], weights[who])
            load[who] += given[who, kind]
    _exchange(given, load, allowed, weights)
    return given


def water_fill(amount: int, load: I64, weights: F64) -> I64:
    """Give units one by one to the smallest (load + 1) / weight, computed in one step (water-filling).

    Args:
        amount: number of units.
        load: units that each member has already, shape (M,).
        weights: capacity of each member relative to the others, shape (M,), above 0.

    Returns:
        The units that each member gets, shape (M,).
    """
    if len(load) <= _SINGLE and (weights == 1).all():
        return np.array(_fill_few(amount, load.tolist()), dtype=np.int64)
    order = np.argsort(load / weights, kind="stable")
    filled, weight = np.cumsum(load[order]), np.cumsum(weights[order])
    levels = (amount + filled) / weight
    # The level is the first one below the level of the next member.
    above = np.r_[load[order][1:] / weights[order][1:], np.inf]
    level = levels[int(np.argmax(levels <= above))]
    out: I64 = np.maximum(0, np.floor(np.round(level * weights, 9)).astype(np.int64) - load)
    over = amount - int(out.sum())
    while over < 0:  # rounding distributed too many
        out[int(np.argmax(np.where(out > 0, (load + out) / weights, -1)))] -= 1
        over += 1
    while over > 0:
        least = np.lexsort((np.arange(len(load)), (load + out + 1) / weights))[: max(1, over // 2)]
        out[least] += 1
        over -= len(least)
    return out


def _fill_few(amount: int, load: list[int]) -> list[int]:
    """Give units one by one to the lowest load, the first of equal ones; a few loads take less time without arrays."""
    total = amount
    for count, full in enumerate(sorted(load)):  # `count` loads are below the level
        if count and total <= full * count:
            break
        total += full
    else:
        count = len(load)
    level, over = divmod(total, count)
    out = [max(0, level - full) for full in load]
    for i, full in enumerate(load):
        if over and full <= level:
            out[i] += 1
            over -= 1
    return out


def water_fill_capped(amount: int, load: I64, cap: I64) -> I64:
    """Give units one by one to the lowest load that is below its cap, computed in one step.

    Args:
        amount: number of units; what exceeds the caps is not given.
        load: units that each member has already, shape (M,).
        cap: largest load of each member, at least its `load`, shape (M,).

    Returns:
        The units that each member gets, shape (M,).
    """
    room = cap - load
    if amount >= int(room.sum()):
        return room
    low, high = int(load.min()), int(cap.max())
    while low < high:  # find the highest level that needs at most `amount`
        middle = (low + high + 1) // 2
        if int(np.clip(middle - load, 0, room).sum()) <= amount:
            low = middle
        else:
            high = middle - 1
    out: I64 = np.clip(low - load, 0, room)
    more = np.flatnonzero((out < room) & (load + out == low))[: amount - int(out.sum())]
    out[more] += 1
    return out


def _exchange(given: I64, load: I64, allowed: Bools, weights: F64) -> None:
    """Apply improving chains until there are no more."""
    alive = np.array(allowed.any(axis=1), dtype=bool)
    while alive.any():
        height = np.where(alive, np.round(load / weights, 9), -1.0)
        start = int(np.lexsort((weights, -height))[0])  # among equal heights the lighter member gains more
        reached, parents = reach(start, given, allowed, alive)
        after = np.where(reached, np.round((load + 1) / weights, 9), np.inf)
        after[start] = np.inf
        # Among equal heights afterwards, the heavier member loses less.
        end = int(np.lexsort((-weights, after))[0])
        if (after[end], -weights[end]) < (height[start], -weights[start]):
            apply_chain(given, trace(start, end, parents))
            load[start] -= 1
            load[end] += 1
        else:
            alive = np.logical_and(alive, ~reached)


Parents = tuple[I64, I64]


def reach(start: int, given: I64, allowed: Bools, alive: Bools) -> tuple[Bools, Parents]:
    """Find every member that a chain of hand-overs leads to.

    Args:
        start: the member that gives the first partition.
        given: partitions of each kind that each member has, shape (M, K).
        allowed: which members may read which kind, shape (M, K).
        alive: the members that may be reached, shape (M,).

    Returns:
        Reached members, shape (M,), including the start; the kind through which each member was reached, and the
        member from which each kind was taken.
    """
    by_kind = np.full(given.shape[0], -1, dtype=np.int64)
    by_member = np.full(given.shape[1], -1, dtype=np.int64)
    reached = np.zeros(given.shape[0], dtype=bool)
    reached[start] = True
    front = np.array([start])
    while front.size:
        has = given[front] > 0
        kinds = np.flatnonzero(has.any(axis=0) & (by_member < 0))
        by_member[kinds] = front[has[:, kinds].argmax(axis=0)]
        near = allowed[:, kinds] & (alive & ~reached)[:, None]
        front = np.flatnonzero(near.any(axis=1))
        by_kind[front] = kinds[near[front].argmax(axis=1)] if kinds.size else -1
        reached[front] = True
    return reached, (by_kind, by_member)


def trace(start: int, end: int, parents: Parents) -> Chain:
    """List the hand-overs from start to end, each as giver, kind and taker; `parents` are those of `reach`."""
    by_kind, by_member = parents
    chain: Chain = []
    while end != start:
        kind = int(by_kind[end])
        before = int(by_member[kind])
        chain.append((before, kind, end))
        end = before
    return chain[::-1]


def apply_chain(given: I64, chain: Chain) -> None:
    """Hand over one partition along the chain: changes `given`, partitions by member and kind, shape (M, K)."""
    for before, kind, after in chain:
        given[before, kind] -= 1
        given[after, kind] += 1
