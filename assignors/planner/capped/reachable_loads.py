"""Divides the topics of a few members at the lowest cost within the bounds of their loads.

A dynamic programme over the topics finds which vectors of loads can be reached at which cost. The vectors are bits of
one number for each cost, so a way to divide a topic takes a shift and an `or` for thousands of vectors at once. Costs
are counted above the lowest of each topic, and nothing that costs more than a known division is followed, so there are
few of them.

Source: Bellman's dynamic programme for subset sums, with sets as bits.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Final

Way = tuple[int, ...]
"""Partitions of a topic on each member."""
Ways = list[tuple[int, Way]]
"""Ways to divide a topic, with their costs above the cheapest, ascending."""

_BITS_A_UNIT: Final = 8192
_UNITS: Final = 4
MOST_WORK: Final = 100_000
"""Limit of the work of one division, about 10 ms."""

Known = dict[tuple[Way, Way, Way], int]
"""Vectors of loads between two vectors, by these and the lengths of the loads."""
Shifts = dict[tuple[Way, Way], tuple[int, int]]
"""By a way and the lengths of the loads: how far it shifts vectors of loads, and those that it can be added to."""
_MOST_KNOWN: Final = 512


@dataclass(slots=True)
class Division:
    """Cheapest divisions of the topics of a few members.

    Attributes:
        low: smallest loads of the members.
        high: largest loads of the members.
        budget: cost of a known division: the sum of what each topic costs above its cheapest way.
        draws: numbers that select among divisions of equal cost.
        known: sets of loads that divisions of other members needed, too.
        shifts: the same of ways to divide a topic.
        work: work done, in hand-overs that could be priced in the same time.
    """

    low: list[int]
    high: list[int]
    budget: int
    draws: Iterator[int]
    known: Known
    shifts: Shifts = field(default_factory=dict)
    work: int = field(init=False, default=0)

    def cheapest(self, topics: list[Ways]) -> list[Way]:
        """Find the cheapest ways to divide all topics.

        Args:
            topics: their ways to be divided; the known division is one of them, and within the bounds.

        Returns:
            One way for each topic, or nothing if this takes too much work.
        """
        shape = tuple(most + 1 for most in self.high[:-1])
        reached: dict[int, int] = {0: 1}
        tables = [reached]
        for ways in topics:
            reached = self._with(ways, reached, shape)
            tables.append(reached)
            if self.work > MOST_WORK:
                return []
        total = sum(sum(ways[0][1]) for ways in topics)
        cost, at = self._best(reached, shape, total)
        return self._walk_back(topics, tables, cost, at, shape)

    def _with(self, ways: Ways, reached: dict[int, int], shape: Way) -> dict[int, int]:
        """Return the loads that are reached with one more topic, by cost."""
        longer: dict[int, int] = {}
        steps = 0
        for more, way in ways:
            by, room = self._shift(way, shape)
            for cost, loads in reached.items():
                if cost + more <= self.budget:
                    steps += 1
                    longer[cost + more] = longer.get(cost + more, 0) | (loads & room) << by
        self.work += steps * _UNITS * (1 + _size(shape) // _BITS_A_UNIT)
        return {cost: loads for cost, loads in longer.items() if loads}

    def _shift(self, way: Way, shape: Way) -> tuple[int, int]:
        """Return by how much a way to divide a topic shifts vectors of loads, and those it can be added to."""
        key = way, shape
        if key not in self.shifts:
            if len(self.shifts) >= _MOST_KNOWN:
                self.shifts.clear()
            room = tuple(n - 1 - count for n, count in zip(shape, way, strict=False))
            self.shifts[key] = _index(way, shape), self._between((0,) * len(shape), room, shape)
        return self.shifts[key]

    def _between(self, low: Way, high: Way, shape: Way) -> int:
        key = low, high, shape
        if key not in self.known:
            if len(self.known) >= _MOST_KNOWN:
                self.known.clear()
            self.known[key] = _between(low, high, shape)
        return self.known[key]

    def _best(self, reached: dict[int, int], shape: Way, total: int) -> tuple[int, list[int]]:
        """Return the lowest cost of loads within the bounds, and one vector of such loads."""
        box = self._between(tuple(self.low[:-1]), tuple(self.high[:-1]), shape)
        for cost in sorted(reached):
            within = reached[cost] & box
            start = next(self.draws) % _size(shape)
            # The first vector from a random one on whose rest fits the last member.
            for part, base in ((within >> start, start), (within & ((1 << start) - 1), 0)):
                left = part
                while left:
                    first = left & -left
                    at = _loads(base + first.bit_length() - 1, shape)
                    if self.low[-1] <= total - sum(at) <= self.high[-1]:
                        return cost, at
                    left ^= first
        raise AssertionError  # the known division is within the bounds

    def _walk_back(
        self, topics: list[Ways], tables: list[dict[int, int]], cost: int, at: list[int], shape: Way
    ) -> list[Way]:
        out: list[Way] = []
        for ways, reached in zip(topics[::-1], tables[-2::-1], strict=True):
            came = []
            for more, way in ways:
                loads = reached.get(cost - more)
                if loads is None:
                    continue
                before = [load - count for load, count in zip(at, way, strict=False)]
                if min(before, default=0) >= 0 and loads >> _index(before, shape) & 1:
                    came.append((more, way, before))
            more, way, at = came[next(self.draws) % len(came)]
            cost -= more
            out.append(way)
        return out[::-1]


def _size(shape: Way) -> int:
    size = 1
    for length in shape:
        size *= length
    return size


def _index(loads: list[int] | Way, shape: Way) -> int:
    index = 0
    for load, length in zip(loads, shape, strict=False):
        index = index * length + load
    return index


def _loads(index: int, shape: Way) -> list[int]:
    out = []
    for length in reversed(shape):
        index, load = divmod(index, length)
        out.append(load)
    return out[::-1]


def _between(low: Way, high: Way, shape: Way) -> int:
    """Return the vectors of loads between two vectors."""
    loads, stride = 1, 1
    for least, most, length in zip(reversed(low), reversed(high), reversed(shape), strict=True):
        row, loads = loads, 0
        for load in range(least, most + 1):
            loads |= row << load * stride
        stride *= length
    return loads
