"""Finds the cheapest counts within the bounds of the loads: fewest partitions off rack, then fewest moved.

The problem is a minimum cost flow between kinds of partitions and members. It is solved by a good start and by
cancelling negative cycles (Klein 1967). If no cycle is left, the counts are optimal and `Flow.proven` is true. Costs
are arrays of members x kinds, so a round of Bellman-Ford is a handful of vectorised operations (`cheapest_lines`).
"""

from dataclasses import dataclass
from typing import Final

import numpy as np

from assignors.planner.balance.cheapest_lines import SingleCells, lines_of, single_cells
from assignors.planner.balance.fairest_loads import water_fill_capped
from assignors.planner.input_arrays import I64, Bools

_OFF: Final = 1 << 24
_NEVER: Final = 1 << 50
_FIRST_ROUNDS: Final = 4  # most cycles are short: each of these rounds searches for cycles, later rounds only sometimes
ROUNDS: Final = 2_000
"""Maximum number of rounds of cancelling: bounds the work of a leader while its heartbeats wait; no test reaches it."""


@dataclass(frozen=True, slots=True)
class Exchange:
    """Decides which loads may change by one in exchange for each other.

    With a band (`exact=False`) any load may rise to `high` and fall to `low`. With exact loads a member with load l and
    weight w may only swap loads with a member with load l - 1 and weight w, so the sorted loads stay the same.
    """

    low: I64
    high: I64
    exact: bool
    weights: I64

    def classes(self, load: I64) -> tuple[I64, I64, int]:
        """Number the classes: a member may take one more if another of the same class gives one."""
        if not self.exact:
            return np.where(load < self.high, 0, -1), np.where(load > self.low, 0, -1), 1
        span = int(load.max(initial=0)) + 2
        take, give = self.weights * span + load + 1, self.weights * span + load
        names, numbers = np.unique(np.r_[take, give], return_inverse=True)
        return numbers[: len(load)], numbers[len(load) :], len(names)

    def step(self, load: I64, taker: int, giver: int) -> int:
        """Return how many partitions may be exchanged at once."""
        return 1 if self.exact else int(min(self.high[taker] - load[taker], load[giver] - self.low[giver]))


class Flow:
    """Counts of each kind on each member, while they are improved to the cheapest ones.

    Attributes:
        given: partitions of each kind on each member, shape (M, K).
        load: partitions of each member, shape (M,).
        proven: whether no cheaper counts exist.
    """

    def __init__(self, counts: I64, allowed: Bools, off: Bools, owned: I64) -> None:
        """Take the problem.

        Args:
            counts: partitions of each kind, shape (K,); 0 where no member may read it.
            allowed: which members may read which kind, shape (M, K).
            off: which members are off the racks of which kind, shape (M, K).
            owned: valid claims, shape (M, K); 0 if not allowed.
        """
        self.counts, self.allowed, self.owned = counts, allowed, owned
        self.off = np.where(off, _OFF, 0).astype(np.int64)
        self.given = np.zeros(allowed.shape, dtype=np.int64)
        self.load = np.zeros(allowed.shape[0], dtype=np.int64)
        self.proven = False
        self.to_kind, self.to_member = lines_of(allowed)

    def solve(self, exchange: Exchange, preferred: I64 | None, least: int) -> bool:
        """Place all partitions within the bounds, at the lowest cost.

        Args:
            exchange: the bounds.
            preferred: counts to begin with, shape (M, K).
            least: lower bound of the claims that move, if known.

        Returns:
            Whether a plan within the bounds was found.
        """
        near = self.allowed & (self.off == 0)
        if preferred is not None:
            self._keep(preferred, exchange.high)
        self._keep(np.where(near, self.owned, 0), exchange.high)
        self._spread(near, exchange)
        self._keep(self.owned, exchange.high)
        self._spread(self.allowed, exchange)
        self._price()
        if not self._connect(exchange):
            return False
        self._cancel(exchange, least)
        return True

    # -- the start ------------------------------------------------------------------------------------------------

    def _free(self) -> I64:
        free: I64 = self.counts - self.given.sum(axis=0)
        return free

    def _keep(self, claims: I64, high: I64) -> None:
        """Keep claims that are not placed yet, as far as loads stay within `high`."""
        free = self._free()
        if not free.any():
            return
        if isinstance(self.to_kind, SingleCells):
            self._keep_cells(self.to_kind, claims, high, free)
            return
        wanted = np.maximum(claims - self.given, 0)
        wanted = np.clip(free - (np.cumsum(wanted, axis=0) - wanted), 0, wanted)
        # Kinds that few members may read go first, because the others are easier to place elsewhere.
        order = np.argsort(self.allowed.sum(axis=0), kind="stable")
        ranked = wanted[:, order]
        ranked = np.clip((high - self.load)[:, None] - (np.cumsum(ranked, axis=1) - ranked), 0, ranked)
        self.given[:, order] += ranked
        self.load += ranked.sum(axis=1)

    def _keep_cells(self, by_kind: SingleCells, claims: I64, high: I64, free: I64) -> None:
        """Keep claims as `_keep` does, for the allowed cells alone."""
        if not by_kind.cells.size:
            return
        kind = by_kind.repeat(by_kind.lines)
        wanted = np.maximum(by_kind.costs(claims) - by_kind.costs(self.given), 0)
        wanted = np.clip(free[kind] - by_kind.before(wanted), 0, wanted)
        rank = np.empty(len(self.counts), dtype=np.int64)
        rank[np.argsort(self.allowed.sum(axis=0), kind="stable")] = np.arange(len(rank))
        order = np.lexsort((rank[kind], by_kind.others))
        member = by_kind.others[order]
        by_member = single_cells(member, kind[order], by_kind.cells[order], len(self.load))
        ranked = np.clip((high - self.load)[member] - by_member.before(wanted[order]), 0, wanted[order])
        self.given.reshape(-1)[by_member.cells] += ranked
        self.load[by_member.lines] += np.add.reduceat(ranked, by_member.starts)

    def _spread(self, where: Bools, exchange: Exchange) -> None:
        """Distribute free partitions evenly among members with room, first to those below their lower bound."""
        free = self._free()
        order = np.argsort(where.sum(axis=0), kind="stable")
        for kind in order[free[order] > 0]:
            for cap in (exchange.low, exchange.high):
                who = np.flatnonzero(where[:, kind] & (self.load < cap))
                if free[kind] and who.size:
                    more = water_fill_capped(int(free[kind]), self.load[who], cap[who])
                    self.given[who, kind] += more
                    self.load[who] += more
                    free[kind] -= more.sum()

    # -- prices and paths -----------------------------------------------------------------------------------------

    def _price(self) -> None:
        if isinstance(self.to_kind, SingleCells):  # the other cells are never read
            cells = self.to_kind.cells
            given, owned, off = (a.reshape(-1)[cells] for a in (self.given, self.owned, self.off))
            self.give_cost, self.take_cost = np.empty_like(self.given), np.empty_like(self.given)
            self.give_cost.reshape(-1)[cells] = off - (given < owned)
            self.take_cost.reshape(-1)[cells] = np.where(given > 0, (given <= owned) - off, _NEVER)
            return
        below = (self.given < self.owned).astype(np.int64)
        kept = (self.given <= self.owned).astype(np.int64)
        self.give_cost = np.where(self.allowed, self.off - below, _NEVER)
        self.take_cost = np.where(self.given > 0, kept - self.off, _NEVER)

    def _price_one(self, member: int, kind: int) -> None:
        given, owned, off = self.given[member, kind], self.owned[member, kind], self.off[member, kind]
        self.give_cost[member, kind] = off - int(given < owned)
        self.take_cost[member, kind] = int(given <= owned) - off if given > 0 else _NEVER

    def _connect(self, exchange: Exchange) -> bool:
        """Place the rest along paths; return whether all is placed and every load reaches its lower bound."""
        none_of_members = np.full(len(self.load), _NEVER)
        while (free := self._free()).any():
            if not self._push(np.where(free > 0, 0, _NEVER), none_of_members, self.load < exchange.high):
                return False
        while (short := self.load < exchange.low).any():
            sources = np.where(self.load > exchange.low, 0, _NEVER)
            if not self._push(np.full(len(self.counts), _NEVER), sources, short):
                return False
        return True

    def _push(self, by_kind: I64, by_member: I64, targets: Bools) -> bool:
        """Move one partition along a cheapest path to each target that has one; return whether any moved."""
        source_kinds, source_members = by_kind == 0, by_member == 0
        kinds, members = by_kind.copy(), by_member.copy()
        from_kind = np.full(len(members), -1)
        from_member = np.full(len(kinds), -1)
        # Gains count as 0: with negative cycles, which are cancelled later, a cheapest path does not exist.
        take_cost = np.maximum(self.to_kind.costs(self.take_cost), 0)
        give_cost = np.maximum(self.to_member.costs(self.give_cost), 0)
        for _ in range(len(members) + len(kinds)):
            best, cost = self.to_kind.cheapest(take_cost, members)
            better = cost < kinds
            kinds[better], from_member[better] = cost[better], best[better]
            best, cost = self.to_member.cheapest(give_cost, kinds)
            closer = (cost < members) & ~source_members
            members[closer], from_kind[closer] = cost[closer], best[closer]
            if not better.any() and not closer.any():
                break
        ends = np.flatnonzero(targets & (members < _NEVER >> 1))
        free = np.where(source_kinds, self._free(), 0)
        pushed = False
        for end in ends[np.argsort(members[ends], kind="stable")]:
            pushed |= self._push_to(int(end), from_kind, from_member, source_members, free)
        return pushed

    def _push_to(self, end: int, from_kind: I64, from_member: I64, source_members: Bools, free: I64) -> bool:
        steps: list[tuple[int, int, int]] = []
        at, seen = end, {end}
        while True:
            kind = int(from_kind[at])
            before = int(from_member[kind]) if kind >= 0 else -1
            if kind < 0 or (before in seen):
                return False
            steps.append((before, kind, at))
            if before < 0:
                if free[kind] < 1:
                    return False
                free[kind] -= 1
                break
            if self.given[before, kind] < 1:
                return False
            if source_members[before]:
                break
            at = before
            seen.add(before)
        for before, kind, after in steps:
            if before >= 0:
                self._change(before, kind, -1)
            self._change(after, kind, 1)
        return True

    def _change(self, member: int, kind: int, by: int) -> None:
        self.given[member, kind] += by
        self.load[member] += by
        self._price_one(member, kind)

    # -- negative cycles ------------------------------------------------------------------------------------------

    def _cancel(self, exchange: Exchange, least: int) -> None:
        claims = np.flatnonzero(self.owned)
        moved = int(np.maximum(self.owned.reshape(-1)[claims] - self.given.reshape(-1)[claims], 0).sum())
        if moved <= least and not self.off[self.given > 0].any():
            self.proven = True
            return
        for _ in range(ROUNDS):
            cycles = self._negative_cycles(exchange)
            if not cycles:
                self.proven = True
                return
            for cycle in cycles:
                self._apply(cycle, exchange)

    def _negative_cycles(self, exchange: Exchange) -> list[list[tuple[int, int, int]]]:
        """Find disjoint cycles as (giver, kind or -1 - class, taker)."""
        takes, gives, classes = exchange.classes(self.load)
        count, kinds_count = len(self.load), len(self.counts)
        kinds, members, swaps = (
            np.zeros(kinds_count, dtype=np.int64),
            np.zeros(count, dtype=np.int64),
            np.zeros(classes),
        )
        take_cost, give_cost = self.to_kind.costs(self.take_cost), self.to_member.costs(self.give_cost)
        via = np.full(count, -1)  # kind, or kinds_count + class
        from_member = np.full(kinds_count, -1)
        from_swap = np.full(classes, -1)
        takers, givers = np.flatnonzero(takes >= 0), np.flatnonzero(gives >= 0)
        for turn in range(1, 2 * (count + kinds_count) + 4):
            best, cost = self.to_kind.cheapest(take_cost, members)
            better = cost < kinds
            kinds[better], from_member[better] = cost[better], best[better]
            by_cost = takers[np.argsort(members[takers], kind="stable")[::-1]]
            least, who = np.zeros(classes), np.full(classes, -1)
            least[takes[by_cost]], who[takes[by_cost]] = members[by_cost], by_cost
            lower = (who >= 0) & (least < swaps)
            swaps[lower], from_swap[lower] = least[lower], who[lower]
            best, cost = self.to_member.cheapest(give_cost, kinds)
            closer = cost < members
            members[closer], via[closer] = cost[closer], best[closer]
            swapped = givers[swaps[gives[givers]] < members[givers]]
            members[swapped], via[swapped] = swaps[gives[swapped]].astype(np.int64), kinds_count + gives[swapped]
            if not (better.any() or lower.any() or closer.any() or swapped.size):
                return []
            if turn <= _FIRST_ROUNDS or turn % _FIRST_ROUNDS == 0:
                found = _cycles(via, from_member, from_swap, kinds_count)
                if found:
                    return found
        return []

    def _apply(self, cycle: list[tuple[int, int, int]], exchange: Exchange) -> None:
        cost, amount = 0, _NEVER
        for giver, kind, taker in cycle:
            if kind < 0:  # the load of `giver` grows and that of `taker` shrinks
                amount = min(amount, exchange.step(self.load, giver, taker))
                continue
            cost += int(self.take_cost[giver, kind] + self.give_cost[taker, kind])
            has, claim = self.given[giver, kind], self.owned[giver, kind]
            amount = min(amount, int(has - claim if has > claim else has))
            if self.given[taker, kind] < self.owned[taker, kind]:
                amount = min(amount, int(self.owned[taker, kind] - self.given[taker, kind]))
        if cost >= 0 or amount < 1:
            return
        for giver, kind, taker in cycle:
            if kind >= 0:
                self._change(giver, kind, -amount)
                self._change(taker, kind, amount)


def _cycles(via: I64, from_member: I64, from_swap: I64, kinds: int) -> list[list[tuple[int, int, int]]]:
    """Find the cycles of the parent pointers."""
    from_kind_or_swap = np.r_[from_member, from_swap, -1]
    before = from_kind_or_swap[via]  # via == -1 reads the last entry
    far = before.copy()
    for _ in range(max(1, len(via)).bit_length() + 1):
        if far.max(initial=-1) < 0:  # every parent chain ends
            return []
        far = np.where(far >= 0, far[far], -1)
    found, seen = [], set()
    for start in np.unique(far[far >= 0]).tolist():
        if start in seen:
            continue
        cycle, at = [], start
        while at not in seen:
            seen.add(at)
            kind = int(via[at])
            cycle.append((int(before[at]), kind if kind < kinds else kinds - 1 - kind, at))
            at = int(before[at])
        found.append(cycle)
    return found
