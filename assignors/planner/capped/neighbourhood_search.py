"""Divides all partitions of a few members among them: better than with single hand-overs.

If members hold few topics and bounds are narrow, a single hand-over leaves the bounds; only several together stay
within them. So a few members form a pool, and all their partitions are divided exactly; then the next pool follows
(large neighbourhood search). This module divides two to four members by dynamic programming over their loads. Where all
loads are within their bounds and no racks count, `fewer_moves` divides more of them in less time. Among divisions of
equal cost one is drawn at random, from a fixed sequence, because it may lead to a cheaper one.

Source: Shaw 1998; the sequence is Knuth's MMIX.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

import numpy as np

from assignors.hashing.murmur3_hash import mix64s
from assignors.planner.capped.fewer_moves import FewerMoves
from assignors.planner.capped.pool_divisions import divisions, off_rack
from assignors.planner.capped.search_state import SearchState
from assignors.planner.input_arrays import I64

_POOL_SIZE: Final = 4
_STATES: Final = 10_000  # vectors of loads in a table; if there were more, the pool is made smaller
# The cost of a division; the lowest bits select at random among equal costs.
_CLAIM: Final = 1 << 14
_OFF: Final = 1 << 32
_OUTSIDE: Final = 1 << 48
_FAR: Final = 1 << 12
_NO: Final = 1 << 61
_MIXED: Final = 8
# Work, in hand-overs that could be priced in the same time: of a pool, a topic in it, its racks, a division. Then the
# number of table states, and of search state cells, that take the time of one hand-over.
_POOL_WORK: Final = 1_500
_TOPIC_WORK: Final = 200
_RACK_WORK: Final = 600
_DIVISION_WORK: Final = 30
_CELLS_A_UNIT: Final = 64


@dataclass(frozen=True, slots=True)
class _Item:
    """The divisions of a topic: counts of each pool member, shape (D, G), and their costs, shape (D,)."""

    topic: int
    counts: I64
    cost: I64


def search_neighbourhoods(state: SearchState, least: int, end: int) -> None:
    """Divide pools until the moved claims reach the lower bound, or the work reaches its limit.

    If loads are outside their bounds, the search runs until all are inside. The result is never worse: first, loads are
    not farther outside; then, not more partitions are off rack, as far as this depends on the readers; then, not more
    claims move. Racks start a search only if no member owns partitions: otherwise partitions of a stable group would
    move.

    Args:
        state: changed.
        least: lower bound of the claims that move.
        end: limit of `state.work`.
    """
    draws = _draws()
    balancing, racks = state.outside_band().any(), bool(state.off.any())
    if not balancing and not racks:
        if state.moved > least:
            FewerMoves(state, draws).search(least, end)
        return
    for_racks = racks and not state.owned.any()
    while state.work < end and (state.outside_band().any() if balancing else state.moved > least or for_racks):
        state.work += _POOL_WORK + state.owned.size // _CELLS_A_UNIT
        pool = _pool(state, draws)
        if len(pool) > 1 and _divide(state, pool, draws) and len(pool) == len(state.load):
            return  # the optimum


def _draws() -> Iterator[int]:
    state = 1
    while True:
        state = (state * 6364136223846793005 + 1442695040888963407) % (1 << 64)
        yield state >> 33


def _pool(state: SearchState, draws: Iterator[int]) -> I64:
    """Draw an owner that misses a piece and its reader, or a member above its bounds and one below; add others.

    Half of the others are drawn from the members whose pieces differ from their claims.
    """

    def one_of(members: list[int]) -> int:
        return members[next(draws) % len(members)]

    outside = state.outside_band()
    if outside.any():
        pool = [one_of(np.flatnonzero(outside).tolist())]
        near = np.flatnonzero(outside < 0 if outside[pool[0]] > 0 else outside > 0).tolist()
    else:
        topics, owners = np.nonzero(state.pieces < state.owned if state.moved else state.pieces)
        at = next(draws) % len(topics)
        pool = [int(owners[at])]
        near = [m for m in np.flatnonzero(state.pieces[topics[at]]).tolist() if m != pool[0]]
    touched = np.flatnonzero((state.pieces != state.owned).any(axis=0)).tolist()
    left = [m for m in range(len(state.load)) if m != pool[0]]
    states, top = 1, np.maximum(state.load, state.band.high)
    while left and len(pool) < _POOL_SIZE:
        states *= int(top[pool[-1]]) + 1
        if states > _STATES:
            break
        among = near if len(pool) == 1 else [m for m in touched if m in left] if next(draws) % 2 else left
        pool.append(one_of(among or left))
        left.remove(pool[-1])
    return np.array(pool)


def _divide(state: SearchState, pool: I64, draws: Iterator[int]) -> bool:
    """Divide all partitions of the pool at the lowest cost; return whether every division was tried."""
    items, whole = _items(state, pool)
    shape = tuple((np.maximum(state.load, state.band.high)[pool[:-1]] + 1).tolist())
    table = np.full(shape, _NO)
    table[(0,) * len(shape)] = 0
    tables = [table]
    for item in items:
        mixed = mix64s(np.arange(len(item.cost), dtype=np.uint64) + np.uint64(next(draws))) % np.uint64(_MIXED)
        item.cost[:] += mixed.astype(np.int64)
        table = _with(item, table)
        tables.append(table)
        state.work += _TOPIC_WORK + len(item.cost) * (_DIVISION_WORK + table.size // _CELLS_A_UNIT)
    best = int((table + _OUTSIDE * _outside(state, pool, shape)).argmin())
    _walk_back(state, pool, items, tables, tuple(int(i) for i in np.unravel_index(best, shape)))
    return whole


def _with(item: _Item, table: I64) -> I64:
    """Return the lowest cost of each vector of loads with one more topic."""
    longer = np.full(table.shape, _NO)
    for counts, cost in zip(item.counts.tolist(), item.cost.tolist(), strict=True):
        into = tuple(slice(n, None) for n in counts[:-1])
        out = tuple(slice(0, max(0, size - n)) for n, size in zip(counts, table.shape, strict=False))
        np.minimum(longer[into], table[out] + cost, out=longer[into])
    return longer


def _outside(state: SearchState, pool: I64, shape: tuple[int, ...]) -> I64:
    """Return how far each vector of loads, with the rest for the last member of the pool, is outside the bounds."""
    loads = np.indices(shape)
    last = int(state.load[pool].sum()) - loads.sum(axis=0)
    out = np.zeros(shape, dtype=np.int64)
    for load, low, high in zip((*loads, last), state.band.low[pool], state.band.high[pool], strict=True):
        out += np.maximum(low - load, 0) + np.maximum(load - high, 0)
    return np.minimum(out, _FAR)


def _items(state: SearchState, pool: I64) -> tuple[list[_Item], bool]:
    pieces, caps = state.pieces[:, pool], state.caps
    held = pieces.sum(axis=1)
    outside = state.readers - (pieces > 0).sum(axis=1)
    items, whole, racked = [], True, bool(state.off.any())
    for topic in np.flatnonzero(held).tolist():
        counts, every = divisions(pieces[topic], min(int(caps[topic] - outside[topic]), len(pool)))
        whole &= every
        barred = ~state.may[topic, pool]
        if barred.any():
            counts = counts[(counts[:, barred] == 0).all(axis=1)]
        cost = _CLAIM * np.maximum(state.owned[topic, pool] - counts, 0).sum(axis=1)
        if racked:
            others = state.pieces[topic] > 0
            others[pool] = False
            theirs = int(state.pieces[topic, others].sum())
            cost += _OFF * off_rack(state.sets[topic], state.off[:, pool], state.off[:, others], theirs, counts)
            state.work += _RACK_WORK
        items.append(_Item(topic, counts, cost))
    return items, whole


def _walk_back(state: SearchState, pool: I64, items: list[_Item], tables: list[I64], at: tuple[int, ...]) -> None:
    for item, before, after in zip(items[::-1], tables[-2::-1], tables[:0:-1], strict=True):
        for counts, cost in zip(item.counts.tolist(), item.cost.tolist(), strict=True):
            came = tuple(i - n for i, n in zip(at, counts, strict=False))
            if min(came) >= 0 and before[came] + cost == after[at]:
                state.put(item.topic, pool, np.array(counts))
                at = came
                break
