"""Divides all partitions of a few members among them with fewer moves, while all loads stay within their bounds.

Two to five members, one of which misses a piece, form a pool. All their partitions are divided exactly
(`reachable_loads`); then the next pool follows (large neighbourhood search). Among divisions of equal cost one is drawn
at random, because it may lead to a cheaper one.

Source: Shaw 1998.
"""

from collections.abc import Iterator
from functools import lru_cache
from typing import Final

import numpy as np

from assignors.planner.capped.pool_divisions import divisions
from assignors.planner.capped.reachable_loads import Division, Known, Way, Ways
from assignors.planner.capped.search_state import SearchState
from assignors.planner.input_arrays import I64

_POOL_SIZE: Final = 5
_STATES: Final = 200_000  # vectors of loads; if there were more, the pool is made smaller
# Work, in hand-overs that could be priced in the same time: of a pool, a member, a topic in the pool.
_POOL_WORK: Final = 400
_MEMBER_WORK: Final = 2
_TOPIC_WORK: Final = 60

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
        self.low, self.high, self.caps = state.band.low.tolist(), state.band.high.tolist(), state.caps.tolist()
        self.may = None if state.may.all() else state.may
        self.held, self.claims = _by_member(state.pieces), _by_member(state.owned)
        self.readers: list[set[int]] = [set() for _ in self.caps]
        for member, mine in enumerate(self.held):
            for topic in mine:
                self.readers[topic].add(member)
        self.missing = [self._missing(m) for m in range(len(self.held))]
        self.lost = [self._lost(m) for m in range(len(self.held))]

    def search(self, least: int, end: int) -> None:
        """Divide pools until the moved claims reach `least`, or the work of the state reaches `end`."""
        moved = sum(self.lost)
        while self.state.work < end and moved > least:
            self.state.work += _POOL_WORK + _MEMBER_WORK * len(self.held)
            if self._divide(self._pool()):
                break  # the optimum
            moved = sum(self.lost)
        pieces = np.zeros_like(self.state.pieces)
        for member, mine in enumerate(self.held):
            pieces[list(mine), member] = list(mine.values())
        self.state.reset(pieces)

    def _missing(self, member: int) -> list[int]:
        mine = self.held[member]
        return [topic for topic, count in self.claims[member].items() if mine.get(topic, 0) < count]

    def _lost(self, member: int) -> int:
        mine, claims = self.held[member], self.claims[member]
        return sum(claims[topic] - mine.get(topic, 0) for topic in self.missing[member])

    # -- the pool -------------------------------------------------------------------------------------------------

    def _pool(self) -> list[int]:
        """Draw an owner that misses a piece and one of its readers; add others.

        Half of the others are drawn from the members whose pieces differ from their claims.
        """
        first, topic = self._one_piece(self.missing)
        pool, states = [first], 1
        near = sorted(self.readers[topic] - {first})
        while len(pool) < min(_POOL_SIZE, len(self.held)):
            states *= self.high[pool[-1]] + 1
            if states > _STATES:
                break
            among: list[int] = near if len(pool) == 1 else []
            if len(pool) > 1 and next(self.draws) % 2:
                among = [m for m, mine in enumerate(self.held) if mine != self.claims[m] and m not in pool]
            among = among or [m for m in range(len(self.held)) if m not in pool]
            pool.append(among[next(self.draws) % len(among)])
        return pool

    def _one_piece(self, topics: list[list[int]]) -> tuple[int, int]:
        pairs = [(member, topic) for member, mine in enumerate(topics) for topic in mine]
        return pairs[next(self.draws) % len(pairs)]

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
        division = Division([self.low[m] for m in pool], [self.high[m] for m in pool], budget, self.draws, self.known)
        found = division.cheapest([ways for _, _, ways in items])
        self.state.work += division.work
        for (topic, now, _), way in zip(items, found, strict=False):
            if way != now:
                self._give(topic, pool, way)
        for member in pool:
            self.missing[member] = self._missing(member)
            self.lost[member] = self._lost(member)
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


def _by_member(pieces: I64) -> list[dict[int, int]]:
    """List the topics of each member with their partitions, ascending."""
    out: list[dict[int, int]] = [{} for _ in range(pieces.shape[1])]
    members, topics = np.nonzero(pieces.T)
    for member, topic, count in zip(members.tolist(), topics.tolist(), pieces[topics, members].tolist(), strict=True):
        out[member][topic] = count
    return out


@lru_cache(maxsize=4096)
def _rated_ways(now: Way, most: int, owned: Way, barred: Way) -> tuple[Ways, bool]:
    """Return the ways to divide a topic with the claims that each moves above the fewest, and whether these are all."""
    counts, every = divisions(np.array(now), most)
    allowed = [tuple(way) for way in counts.tolist() if not any(way[i] for i in barred)]
    rated = [(sum(max(claim - count, 0) for claim, count in zip(owned, way, strict=True)), way) for way in allowed]
    rated.sort()
    least = rated[0][0]
    return [(cost - least, way) for cost, way in rated], every
