"""Divides all partitions of a few members among them with fewer moves, while all loads stay within their bounds.

Two to five members, one of which misses a piece, form a pool. All their partitions are divided exactly
(`reachable_loads`); then the next pool follows (large neighbourhood search). Among divisions of equal cost one is drawn
at random, because it may lead to a cheaper one.

Source: Shaw 1998.
"""

from bisect import bisect_left
from collections.abc import Iterator
from functools import lru_cache
from typing import Final

import numpy as np

from assignors.planner.capped.pool_divisions import divisions
from assignors.planner.capped.reachable_loads import Division, Known, Shifts, Way, Ways
from assignors.planner.capped.search_state import SearchState
from assignors.planner.input_arrays import I64

_POOL_SIZE: Final = 5
_STATES: Final = 200_000  # vectors of loads; if there were more, the pool is made smaller
# Work, in hand-overs that could be priced in the same time: of a pool, a topic in the pool.
_POOL_WORK: Final = 400
_TOPIC_WORK: Final = 60
# The search ends when this work has found no fewer moves, and as much work again as was needed until then. In a large
# group all other steps take more time, and this one less.
_PATIENCE: Final = 400_000  # less one for each cell of topics x members
_LEAST_PATIENCE: Final = 80_000
# Ways to draw a member of the pool: the members that are touched, readers of a topic of the pool, or else any.
_KINDS: Final = 4
_TOUCHED: Final = 0
_PARTNERS: Final = (1, 2)

_Item = tuple[int, Way, Ways]
"""A topic, how the pool divides it now, and the ways to divide it."""


class FewerMoves:
    """The pieces of each member while pools are divided."""

    def __init__(self, state: SearchState, draws: Iterator[int]) -> None:
        """Take the start.

        Args:
            state: changed by the search; all its loads are within their bounds, and no member is off rack.
            draws: numbers that decide at random.
        """
        self.state = state
        self.draws = draws
        self.known: Known = {}
        self.shifts: Shifts = {}
        self.low, self.high, self.caps = state.band.low.tolist(), state.band.high.tolist(), state.caps.tolist()
        self.may = None if state.may.all() else state.may
        self.held, self.claims = _by_member(state.pieces), _by_member(state.owned)
        self.readers: list[set[int]] = [set() for _ in self.caps]
        for member, mine in enumerate(self.held):
            for topic in mine:
                self.readers[topic].add(member)
        self.total, self.changed = len(self.held), set[int]()
        self.missing = [self._missing(m) for m in range(self.total)]
        self.lost = [self._lost(m) for m in range(self.total)]
        self.moved = sum(self.lost)
        self.pieces_missing = sum(map(len, self.missing))
        self.lacking = [m for m, topics in enumerate(self.missing) if topics]
        self.touched = [m for m, mine in enumerate(self.held) if mine != self.claims[m]]

    def search(self, least: int, end: int) -> None:
        """Divide pools until the moved claims reach `least`, or more work is not likely to find fewer moves.

        Args:
            least: lower bound of the claims that move.
            end: limit of the work of the state.
        """
        start = last = self.state.work
        patience = max(_LEAST_PATIENCE, _PATIENCE - self.state.owned.size)
        while self.moved > least and self.state.work < min(end, last + patience + (last - start)):
            self.state.work += _POOL_WORK
            before = self.moved
            if self._divide(self._pool()):
                break  # the optimum
            last = self.state.work if self.moved < before else last
        pieces = self.state.pieces
        for member in sorted(self.changed):
            mine = self.held[member]
            pieces[:, member] = 0
            pieces[list(mine), member] = list(mine.values())
        self.state.reset(pieces)

    def _missing(self, member: int) -> list[int]:
        mine = self.held[member]
        return [topic for topic, count in self.claims[member].items() if mine.get(topic, 0) < count]

    def _lost(self, member: int) -> int:
        mine, claims = self.held[member], self.claims[member]
        return sum(claims[topic] - mine.get(topic, 0) for topic in self.missing[member])

    def _recount(self, member: int) -> None:
        """Count again what a member misses."""
        pieces, lost = len(self.missing[member]), self.lost[member]
        self.missing[member] = missing = self._missing(member)
        self.lost[member] = self._lost(member)
        self.pieces_missing += len(missing) - pieces
        self.moved += self.lost[member] - lost
        _keep_sorted(self.lacking, member, belongs=bool(missing))
        _keep_sorted(self.touched, member, belongs=self.held[member] != self.claims[member])

    # -- the pool -------------------------------------------------------------------------------------------------

    def _pool(self) -> list[int]:
        """Draw an owner that misses a piece and one of its readers; add others.

        A quarter of the others are drawn from the members whose pieces differ from their claims, a half from the
        readers of a topic that the pool reads: their pieces can be exchanged without another reader.
        """
        first, topic = self._missing_piece()
        pool, states = [first], 1
        among = sorted(self.readers[topic] - {first})
        while len(pool) < min(_POOL_SIZE, self.total):
            states *= self.high[pool[-1]] + 1
            if states > _STATES:
                break
            if len(pool) > 1:
                kind = next(self.draws) % _KINDS
                if kind == _TOUCHED:
                    among = [m for m in self.touched if m not in pool]
                else:
                    among = self._partners(pool) if kind in _PARTNERS else []
            pool.append(among[next(self.draws) % len(among)] if among else self._any_other(pool))
        return pool

    def _missing_piece(self) -> tuple[int, int]:
        """Draw an owner and a topic of which it misses partitions."""
        left = next(self.draws) % self.pieces_missing
        for member in self.lacking:
            topics = self.missing[member]
            if left < len(topics):
                return member, topics[left]
            left -= len(topics)
        raise AssertionError

    def _partners(self, pool: list[int]) -> list[int]:
        """Return the other readers of a topic that is drawn from those of a member of the pool."""
        topics = sorted(self.held[pool[next(self.draws) % len(pool)]])
        if not topics:
            return []
        return sorted(self.readers[topics[next(self.draws) % len(topics)]].difference(pool))

    def _any_other(self, pool: list[int]) -> int:
        """Draw from all members outside the pool."""
        drawn = next(self.draws) % (self.total - len(pool))
        for member in sorted(pool):
            drawn += drawn >= member
        return drawn

    # -- its division ---------------------------------------------------------------------------------------------

    def _divide(self, pool: list[int]) -> bool:
        """Divide all partitions of the pool at the lowest cost; return whether no better plan exists.

        If that takes too much work, the pool gets smaller.
        """
        while len(pool) > 1:
            items, whole = self._items(pool)
            self.state.work += _TOPIC_WORK * len(items)
            if self._put(pool, items):
                return whole and len(pool) == len(self.held)
            pool = pool[:-1]
        return False

    def _items(self, pool: list[int]) -> tuple[list[_Item], bool]:
        """Return the topics that the pool reads, and whether all their ways are known."""
        items, whole = [], True
        for topic in sorted(set().union(*(self.held[m] for m in pool))):
            now = tuple([self.held[m].get(topic, 0) for m in pool])
            ways, every = self._ways(topic, pool, now)
            whole &= every
            items.append((topic, now, ways))
        return items, whole

    def _put(self, pool: list[int], items: list[_Item]) -> bool:
        """Divide the topics; return whether that was possible."""
        budget = sum(next(cost for cost, way in ways if way == now) for _, now, ways in items)
        if not budget:
            return True
        items = [(topic, now, [way for way in ways if way[0] <= budget]) for topic, now, ways in items]
        # Topics with one way first, then those whose ways cost the same, then the most expensive: this keeps the number
        # of costs small for long.
        items.sort(key=lambda item: (len(item[2]) > 1, item[2][-1][0] > 0, -item[2][-1][0]))
        division = Division(
            [self.low[m] for m in pool], [self.high[m] for m in pool], budget, self.draws, self.known, self.shifts
        )
        found = division.cheapest([ways for _, _, ways in items])
        self.state.work += division.work
        for (topic, now, _), way in zip(items, found, strict=False):
            if way != now:
                self._give(topic, pool, way)
                self.changed.update(pool)
        for member in pool if found else ():
            self._recount(member)
        return bool(found)

    def _give(self, topic: int, pool: list[int], way: Way) -> None:
        for member, count in zip(pool, way, strict=True):
            if count:
                self.held[member][topic] = count
                self.readers[topic].add(member)
            else:
                self.held[member].pop(topic, None)
                self.readers[topic].discard(member)

    def _ways(self, topic: int, pool: list[int], now: Way) -> tuple[Ways, bool]:
        """Return the ways to divide a topic, and whether these are all."""
        owned = tuple([self.claims[m].get(topic, 0) for m in pool])
        most = min(self.caps[topic] - len(self.readers[topic].difference(pool)), len(pool))
        barred = () if self.may is None else tuple(np.flatnonzero(~self.may[topic, pool]).tolist())
        return _rated_ways(now, most, owned, barred)


def _keep_sorted(members: list[int], member: int, *, belongs: bool) -> None:
    """Insert the member into the sorted list, or remove it."""
    at = bisect_left(members, member)
    inside = at < len(members) and members[at] == member
    if belongs and not inside:
        members.insert(at, member)
    elif inside and not belongs:
        del members[at]


def _by_member(pieces: I64) -> list[dict[int, int]]:
    """List the topics of each member with their partitions, ascending."""
    out: list[dict[int, int]] = [{} for _ in range(pieces.shape[1])]
    topics, members = np.divmod(np.flatnonzero(pieces != 0), pieces.shape[1])
    order = np.argsort(members, kind="stable")
    topics, members = topics[order], members[order]
    for member, topic, count in zip(members.tolist(), topics.tolist(), pieces[topics, members].tolist(), strict=True):
        out[member][topic] = count
    return out


@lru_cache(maxsize=4096)
def _rated_ways(now: Way, most: int, owned: Way, barred: Way) -> tuple[Ways, bool]:
    """Return the ways to divide a topic with the claims that each moves above the fewest, and whether these are all."""
    counts, every = divisions(np.array(now), most)
    if barred:
        counts = counts[~counts[:, barred].any(axis=1)]
    costs = np.maximum(np.array(owned) - counts, 0).sum(axis=1)
    order = np.lexsort((*counts.T[::-1], costs))
    rated = zip((costs[order] - costs[order[0]]).tolist(), map(tuple, counts[order].tolist()), strict=True)
    return list(rated), every
