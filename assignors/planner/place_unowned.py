"""Places the partitions without an owner: topic by topic, on the best ranked members that have room."""

import math
from collections.abc import Callable

import numpy as np

from assignors.hashing.murmur3_hash import F64, U64
from assignors.planner.input_arrays import I32, I64, Bools, Problem
from assignors.planner.load_bounds import Band
from assignors.planner.plan_loops import give_best
from assignors.planner.plan_loops_interpreted import best

_SCORES_AT_ONCE = 1 << 13  # 64 kB: the system maps larger arrays at each allocation, which costs more than their mixing
Scores = Callable[[I64], U64]
"""Preference of every member for the topics of these numbers, shape (K, M); the highest is the first choice."""


class Placement:
    """The owners while the plan grows from the kept claims to all partitions.

    Attributes:
        owner: owner of each partition so far, shape (P,).
    """

    def __init__(self, problem: Problem, node_of: I32, epsilon: float) -> None:
        """Take the input that is common to all topics.

        Args:
            problem: what is planned.
            node_of: node of each member, shape (M,).
            epsilon: how far above the running fair share a member may be and still be preferred by rank.
        """
        self.problem = problem
        self.node_of = node_of
        self.epsilon = epsilon
        self.several_nodes = 1 < int(node_of.max(initial=0)) + 1 < len(node_of)
        self.owner: I32 = problem.owner

    def place(self, scores: Scores, free: I64, band: Band, load: I64, share: F64) -> None:
        """Place the free partitions, topics with many first.

        Args:
            scores: preference of the members for a topic.
            free: partitions to place, ascending, shape (F,).
            band: bounds of `load`; their sums leave room for all free partitions.
            load: the loads that these bounds limit, shape (M,); changed.
            share: fair share of each member, sum 1, shape (M,).
        """
        first, owner = self.problem.first, self.owner
        self.band, self.load, self.share = band, load, share
        self.even = bool((share == share[0]).all())
        self.limit, self.limited, self.limits = -1, band.high, band.high
        self.lowest = int(band.low.min())
        self.placed = int(load.sum())
        self.need = int(np.maximum(band.low - load, 0).sum())
        self.left = len(free)
        ends = np.searchsorted(free, first)
        topics = (ends[1:] > ends[:-1]).nonzero()[0]
        starts, counts, sizes = ends[topics], np.diff(ends)[topics], np.diff(first)[topics]
        order = np.lexsort((topics, -counts))
        batch = max(1, _SCORES_AT_ONCE // len(load))
        for at in range(0, len(order), batch):
            some = order[at : at + batch]
            rows = topics[some].tolist(), starts[some].tolist(), counts[some].tolist(), sizes[some].tolist()
            for score, topic, start, count, size in zip(scores(topics[some]), *rows, strict=True):
                if size == 1:
                    owner[free[start]] = self._place_one(score)
                    continue
                takers: I32 | I64 | None = None
                if count == size and not self.several_nodes:
                    takers = self._place_one_each(score, count)
                if takers is None:
                    takers = self._place(score, count, self._held(topic))
                if count == size:  # they lie side by side: a slice takes a third of the time
                    begin = int(free[start])
                    owner[begin : begin + size] = takers
                else:
                    owner[free[start : start + count]] = takers

    def _held(self, topic: int) -> I64:
        held = self.owner[self.problem.first[topic] : self.problem.first[topic + 1]]
        return np.bincount(held[held >= 0], minlength=len(self.load))

    def _top(self) -> I64:
        """Return the loads that no member may exceed now."""
        return self.band.low if self.left <= self.need else self.band.high

    def _bound(self, more: int) -> I64:
        """Return the loads up to which rank decides.

        They grow with the placed partitions: with the final bounds, the last topics would find little room.
        """
        top = self._top()
        if not self.even:
            limits = np.ceil(np.round((1 + self.epsilon) * (self.placed + more) * self.share, 9)).astype(np.int64)
            return np.minimum(top, limits)
        limit = math.ceil((1 + self.epsilon) * (self.placed + more) / len(self.load) - 1e-9)
        if limit != self.limit or top is not self.limited:  # the same for many topics in a row
            self.limit, self.limited, self.limits = limit, top, np.minimum(top, limit)
        return self.limits

    def _place_one(self, score: U64) -> int:
        limit = self._bound(1)
        best = int((score * (self.load < limit)).argmax())
        if self.load[best] >= limit[best]:  # no member is below the running bound
            room = self.load < self._top()
            best = int((score * room).argmax())
            if not room[best]:  # the only member with room has a score of 0
                best = int(room.argmax())
        self.need -= int(self.load[best] < self.band.low[best])
        self.load[best] += 1
        self.left -= 1
        self.placed += 1
        return best

    def _place_one_each(self, score: U64, count: int) -> I32 | I64 | None:
        """Give each of the best members below the running bound one partition; None if `_place` has to choose."""
        limit = self._bound(count)
        low = None if self.even and self.limit <= self.lowest else self.band.low
        given = give_best(score, self.load, limit, low, count, self.left - self.need)
        if given is None:
            return None
        takers, needed = given
        self.need -= needed
        self.left -= count
        self.placed += count
        return takers

    def _place(self, score: U64, count: int, have: I64) -> I32:
        out = np.empty(count, dtype=np.int32)
        done = fewest = 0
        while True:
            more = count - done
            takers = ((self.load < self._bound(more)) & (have == fewest)).nonzero()[0]
            if self.several_nodes or len(takers) < more:
                takers = self._in_order(score, have, more)[:more]
            else:
                takers = best(takers, score, more)
            takers = self._give(takers)
            have[takers] += 1
            out[done : done + len(takers)] = takers
            done += len(takers)
            if done == count:
                return out
            fewest = int(have.min())

    def _in_order(self, score: U64, have: I64, more: int) -> I64:
        """Sort members with room and the fewest of the topic: below the bound, on a node with few of it, by rank."""
        room = self.load < self._top()
        takers = np.flatnonzero(room & (have == have[room].min()))
        over = self.load[takers] >= self._bound(more)[takers]
        rank = np.argsort(~score[takers], kind="stable")
        keys: tuple[I64 | Bools, ...] = (over[rank],)
        if self.several_nodes:
            node = self.node_of[takers[rank]]
            on_node = np.bincount(self.node_of, weights=have).astype(np.int64)
            by_node = np.lexsort((over[rank], node))
            runs = np.r_[0, np.flatnonzero(np.diff(node[by_node])) + 1]
            nth = np.empty(len(takers), dtype=np.int64)
            nth[by_node] = np.arange(len(takers)) - np.repeat(runs, np.diff(np.r_[runs, len(takers)]))
            keys = (over[rank], nth + on_node[node])
        return takers[rank[np.lexsort(keys)]]

    def _give(self, takers: I64) -> I64:
        """Give a partition to each taker; without those that must leave the rest to members below their lower bound."""
        load = self.load[takers]
        needy = load < self.band.low[takers]
        needed, spare = int(np.count_nonzero(needy)), self.left - self.need
        if len(takers) - needed > spare:
            stays = needy | (np.cumsum(~needy) <= spare)
            takers, load = takers[stays], load[stays]
        self.load[takers] = load + 1
        self.need -= needed
        self.left -= len(takers)
        self.placed += len(takers)
        return takers
