"""Places the partitions without an owner: topic by topic, on the best ranked members that have room."""

import math
from collections.abc import Callable

import numpy as np

from assignors.hashing.hash import F64, U64
from assignors.planner.input_arrays import I32, I64, Bools, Problem
from assignors.planner.load_bounds import Band

_SORT_ALL = 2  # times the needed members: more members are partitioned before they are sorted
Scores = Callable[[int], U64]
"""Preference of every member for the topic of this number, shape (M,); the highest is the first choice."""


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
        self.limit, self.limits = -1, band.high
        self.placed = int(load.sum())
        self.need = int(np.maximum(band.low - load, 0).sum())
        self.left = len(free)
        topic_of = np.searchsorted(first, free, side="right") - 1
        topics, starts, counts = np.unique(topic_of, return_index=True, return_counts=True)
        sizes = np.diff(first)
        for i in np.lexsort((topics, -counts)):
            topic, start, count = int(topics[i]), int(starts[i]), int(counts[i])
            places = free[start : start + count]
            if count == 1 and sizes[topic] == 1:
                owner[places[0]] = self._place_one(scores(topic))
            else:
                owner[places] = self._place(scores(topic), count, self._held(topic))

    def _held(self, topic: int) -> I64:
        held = self.owner[self.problem.first[topic] : self.problem.first[topic + 1]]
        return np.bincount(held[held >= 0], minlength=len(self.load))

    def _bound(self, more: int) -> I64:
        # The bound grows with the placed partitions: with the final bound, the last topics would find little room.
        if self.even:
            limit = math.ceil((1 + self.epsilon) * (self.placed + more) / len(self.load) - 1e-9)
            if limit != self.limit:  # the same for many topics in a row
                self.limit, self.limits = limit, np.minimum(self.band.high, limit)
            return self.limits
        limits = np.ceil(np.round((1 + self.epsilon) * (self.placed + more) * self.share, 9)).astype(np.int64)
        return np.minimum(self.band.high, limits)

    def _place_one(self, score: U64) -> int:
        limit = self._bound(1)
        if self.left <= self.need:
            limit = np.minimum(limit, self.band.low)
        best = int((score * (self.load < limit)).argmax())
        if self.load[best] >= limit[best]:  # no member is below the running bound
            room = self.load < (self.band.low if self.left <= self.need else self.band.high)
            best = int((score * room).argmax())
            if not room[best]:  # the only member with room has a score of 0
                best = int(room.argmax())
        self.need -= int(self.load[best] < self.band.low[best])
        self.load[best] += 1
        self.left -= 1
        self.placed += 1
        return best

    def _place(self, score: U64, count: int, have: I64) -> I32:
        out = np.empty(count, dtype=np.int32)
        done = 0
        while done < count:
            room = self.load < self.band.high
            if self.left <= self.need:
                room &= self.load < self.band.low
            level = have[room].min()
            takers = np.flatnonzero(room & (have == level))
            takers = self._in_order(takers, score, have, count - done)[: count - done]
            takers = self._leave_enough_for_lower_bounds(takers)
            self._give(takers)
            have[takers] += 1
            out[done : done + len(takers)] = takers
            done += len(takers)
        return out

    def _in_order(self, takers: I64, score: U64, have: I64, more: int) -> I64:
        """Sort by: below the running bound, on a node with few of the topic, best rank."""
        over = self.load[takers] >= self._bound(more)[takers]
        if not self.several_nodes and len(takers) - int(over.sum()) >= more:
            # Only the best members below the running bound are needed, so not all members are sorted for each topic.
            takers = takers[~over]
            if len(takers) > _SORT_ALL * more:
                takers = takers[np.sort(np.argpartition(~score[takers], more - 1)[:more])]
            return takers[np.argsort(~score[takers], kind="stable")]
        points = score[takers]
        rank = np.argsort(~points, kind="stable")
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

    def _leave_enough_for_lower_bounds(self, takers: I64) -> I64:
        """Drop takers above their lower bound if the members below theirs need the rest."""
        needy = self.load[takers] < self.band.low[takers]
        free = self.left - self.need
        if int((~needy).sum()) <= free:
            return takers
        return takers[needy | (np.cumsum(~needy) <= free)]

    def _give(self, takers: I64) -> None:
        self.need -= int((self.load[takers] < self.band.low[takers]).sum())
        self.load[takers] += 1
        self.left -= len(takers)
        self.placed += len(takers)
