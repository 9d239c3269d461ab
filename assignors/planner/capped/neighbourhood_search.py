"""The pieces of a few members divided anew among them, as cheaply as can be: fewer moves than by single hand-overs.

Where members hold few topics and bounds are narrow, most hand-overs leave the bounds, and what comes back into them is
several at once. So two to four members, one of which misses a piece, are taken together: all that they hold is
divided by dynamic programming over their loads, exactly, and then the next few (large neighbourhood search). Divisions
that move as many are taken too, at random: they lead on. Random means drawn from a fixed sequence.

Source: Shaw 1998; the sequence is Knuth's MMIX.
"""

import itertools
from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache
from math import comb
from typing import Final

import numpy as np

from assignors.hashing.hash import mix64s
from assignors.planner.capped.search_state import Seats
from assignors.planner.input_arrays import I64, Bools

_TOGETHER: Final = 4
_STATES: Final = 10_000  # vectors of loads in a table: with more, fewer members are taken together
_DIVISIONS: Final = 100  # of one topic; with more, only those near to the one there is
_SHIFT: Final = 2
# What a division costs, in units of what tells equal ones apart.
_CLAIM: Final = 1 << 14
_OFF: Final = 1 << 32
_BESIDE: Final = 1 << 48
_FAR: Final = 1 << 12
_NO: Final = 1 << 61
_MIXED: Final = 8
# Hand-overs that could be looked at in the time of: a neighbourhood, a topic in it, its racks, a division; and states
# of a table, and cells of the seats, that take the time of one.
_POOL_LOOKS: Final = 1_500
_TOPIC_LOOKS: Final = 200
_RACK_LOOKS: Final = 600
_DIVISION_LOOKS: Final = 30
_CELLS_A_LOOK: Final = 64


@dataclass(frozen=True, slots=True)
class _Item:
    """A topic's partitions that are to be divided: counts of the members, shape (D, G), and what each costs, (D,)."""

    topic: int
    counts: I64
    cost: I64


def divide_anew(seats: Seats, least: int, end: int) -> None:
    """Divide neighbourhoods until no more claims move than must, or the work is done.

    Where loads are beside their bounds, until none is. Never farther from the bounds, then never more off rack as far
    as the readers decide that, then never more moved. Who owns all may keep all: racks alone begin no search, unless
    nobody owns anything.

    Args:
        seats: changed.
        least: claims that must move whatever is done.
        end: of `seats.looked`.
    """
    draws = _draws()
    beside = seats.beside().any()
    anew = bool(seats.off.any()) and not seats.owned.any()
    while seats.looked < end and (seats.beside().any() if beside else seats.moved > least or anew):
        seats.looked += _POOL_LOOKS + seats.owned.size // _CELLS_A_LOOK
        pool = _pool(seats, draws)
        if len(pool) > 1 and _divide(seats, pool, draws) and len(pool) == len(seats.load):
            return  # the best there is


def _draws() -> Iterator[int]:
    state = 1
    while True:
        state = (state * 6364136223846793005 + 1442695040888963407) % (1 << 64)
        yield state >> 33


def _pool(seats: Seats, draws: Iterator[int]) -> I64:
    """An owner that misses something and who holds it, or one above its bounds and one below; and others.

    The others are as often any as of those that differ from before.
    """

    def one_of(members: list[int]) -> int:
        return members[next(draws) % len(members)]

    beside = seats.beside()
    if beside.any():
        pool = [one_of(np.flatnonzero(beside).tolist())]
        near = np.flatnonzero(beside < 0 if beside[pool[0]] > 0 else beside > 0).tolist()
    else:
        topics, owners = np.nonzero(seats.pieces < seats.owned if seats.moved else seats.pieces)
        at = next(draws) % len(topics)
        pool = [int(owners[at])]
        near = [m for m in np.flatnonzero(seats.pieces[topics[at]]).tolist() if m != pool[0]]
    touched = np.flatnonzero((seats.pieces != seats.owned).any(axis=0)).tolist()
    left = [m for m in range(len(seats.load)) if m != pool[0]]
    states, top = 1, np.maximum(seats.load, seats.band.high)
    while left and len(pool) < _TOGETHER:
        states *= int(top[pool[-1]]) + 1
        if states > _STATES:
            break
        among = near if len(pool) == 1 else [m for m in touched if m in left] if next(draws) % 2 else left
        pool.append(one_of(among or left))
        left.remove(pool[-1])
    return np.array(pool)


def _divide(seats: Seats, pool: I64, draws: Iterator[int]) -> bool:
    """Divide all that the pool holds at the least cost; returns whether every division was tried."""
    items, whole = _items(seats, pool)
    shape = tuple((np.maximum(seats.load, seats.band.high)[pool[:-1]] + 1).tolist())
    table = np.full(shape, _NO)
    table[(0,) * len(shape)] = 0
    tables = [table]
    for item in items:
        mixed = mix64s(np.arange(len(item.cost), dtype=np.uint64) + np.uint64(next(draws))) % np.uint64(_MIXED)
        item.cost[:] += mixed.astype(np.int64)
        table = _with(item, table)
        tables.append(table)
        seats.looked += _TOPIC_LOOKS + len(item.cost) * (_DIVISION_LOOKS + table.size // _CELLS_A_LOOK)
    best = int((table + _BESIDE * _beside(seats, pool, shape)).argmin())
    _walk_back(seats, pool, items, tables, tuple(int(i) for i in np.unravel_index(best, shape)))
    return whole


def _with(item: _Item, table: I64) -> I64:
    """The least cost of each vector of loads with one topic more."""
    longer = np.full(table.shape, _NO)
    for counts, cost in zip(item.counts.tolist(), item.cost.tolist(), strict=True):
        into = tuple(slice(n, None) for n in counts[:-1])
        out = tuple(slice(0, max(0, size - n)) for n, size in zip(counts, table.shape, strict=False))
        np.minimum(longer[into], table[out] + cost, out=longer[into])
    return longer


def _beside(seats: Seats, pool: I64, shape: tuple[int, ...]) -> I64:
    """How far each vector of loads, and what it leaves for the last of the pool, is beside the bounds."""
    loads = np.indices(shape)
    last = int(seats.load[pool].sum()) - loads.sum(axis=0)
    out = np.zeros(shape, dtype=np.int64)
    for load, low, high in zip((*loads, last), seats.band.low[pool], seats.band.high[pool], strict=True):
        out += np.maximum(low - load, 0) + np.maximum(load - high, 0)
    return np.minimum(out, _FAR)


def _items(seats: Seats, pool: I64) -> tuple[list[_Item], bool]:
    pieces, caps = seats.pieces[:, pool], seats.caps
    held = pieces.sum(axis=1)
    outside = seats.readers - (pieces > 0).sum(axis=1)
    items, whole, racked = [], True, bool(seats.off.any())
    for topic in np.flatnonzero(held).tolist():
        most = min(int(caps[topic] - outside[topic]), len(pool))
        counts = _divisions(int(held[topic]), most, len(pool))
        if counts is None:
            counts, whole = pieces[topic] + _shifts(len(pool)), False
            counts = counts[(counts >= 0).all(axis=1) & ((counts > 0).sum(axis=1) <= most)]
        barred = ~seats.may[topic, pool]
        if barred.any():
            counts = counts[(counts[:, barred] == 0).all(axis=1)]
        cost = _CLAIM * np.maximum(seats.owned[topic, pool] - counts, 0).sum(axis=1)
        if racked:
            cost += _OFF * _off_rack(seats, topic, pool, counts)
            seats.looked += _RACK_LOOKS
        items.append(_Item(topic, counts, cost))
    return items, whole


def _off_rack(seats: Seats, topic: int, pool: I64, counts: I64) -> I64:
    """Fewest partitions off their reader's rack under each division, by the smallest cut (Ford and Fulkerson 1956).

    The readers outside the pool count as one that is local to what any of them is local to.
    """
    outside = seats.pieces[topic] > 0
    outside[pool] = False
    local = ~seats.off[:, pool]
    if outside.any():
        local = np.c_[local, ~seats.off[:, outside].all(axis=1)]
        counts = np.c_[counts, np.full(len(counts), seats.pieces[topic, outside].sum())]
    sides = _sides(local.shape[1])
    reached = seats.sets[topic] @ (local[:, None, :] & sides).any(axis=2)
    matched: I64 = (reached + counts @ ~sides.T).min(axis=1)
    out: I64 = counts.sum(axis=1) - matched
    return out


@lru_cache
def _sides(members: int) -> Bools:
    """Every subset of the members, shape (S, members)."""
    return np.array(list(itertools.product((False, True), repeat=members)))


def _walk_back(seats: Seats, pool: I64, items: list[_Item], tables: list[I64], at: tuple[int, ...]) -> None:
    for item, before, after in zip(items[::-1], tables[-2::-1], tables[:0:-1], strict=True):
        for counts, cost in zip(item.counts.tolist(), item.cost.tolist(), strict=True):
            came = tuple(i - n for i, n in zip(at, counts, strict=False))
            if min(came) >= 0 and before[came] + cost == after[at]:
                seats.put(item.topic, pool, np.array(counts))
                at = came
                break


@lru_cache(maxsize=1024)
def _divisions(count: int, most: int, members: int) -> I64 | None:
    """Every way to divide so many among at most `most` of the members; None where there are too many."""
    if sum(comb(members, k) * comb(count - 1, k - 1) for k in range(1, most + 1)) > _DIVISIONS:
        return None
    ways = []
    for k in range(1, most + 1):
        for who in itertools.combinations(range(members), k):
            for cuts in itertools.combinations(range(1, count), k - 1):
                way = [0] * members
                for member, start, end in zip(who, (0, *cuts), (*cuts, count), strict=True):
                    way[member] = end - start
                ways.append(way)
    return np.array(ways, dtype=np.int64)


@lru_cache
def _shifts(members: int) -> I64:
    """Small changes of a division."""
    changes = itertools.product(range(-_SHIFT, _SHIFT + 1), repeat=members)
    return np.array([c for c in changes if not sum(c)], dtype=np.int64)
