"""Give what nobody holds: topic by topic, to the best ranked members that have room."""

import math
from collections.abc import Callable

import numpy as np

from assignors.hashing.hash import F64, U64
from assignors.planner.input_arrays import I32, I64, Bools, Problem
from assignors.planner.load_bounds import Band

Scores = Callable[[int], U64]
"""Preference of every member for the topic of this number, shape (M,); the highest is the first choice."""


class Fill:
    """Owners on the way from kept claims to a whole plan.

    Attributes:
        owner: owner of each partition so far, shape (P,).
    """

    def __init__(self, problem: Problem, node_of: I32, epsilon: float) -> None:
        """Take what does not change.

        Args:
            problem: what is planned.
            node_of: node of each member, shape (M,).
            epsilon: how far above the running fair share a member may be while better ranked ones are still taken.
        """
        self.problem = problem
        self.node_of = node_of
        self.epsilon = epsilon
        self.several_nodes = 1 < int(node_of.max(initial=0)) + 1 < len(node_of)
        self.owner: I32 = problem.owner

    def run(self, scores: Scores, free: I64, band: Band, load: I64, share: F64) -> None:
        """Place the free partitions. Topics of many free ones choose first.

        Args:
            scores: preference of the members for a topic.
            free: partitions to place, ascending, shape (F,).
            band: bounds of `load`, the sum of which allows to place them all.
            load: where the members are between those bounds, shape (M,); changed.
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
        # The bound grows with what is placed: with the final bound alone the last topics find few members with room.
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
        if self.load[best] >= limit[best]:  # nobody is under the running bound
            room = self.load < (self.band.low if self.left <= self.need else self.band.high)
            best = int((score * room).argmax())
            if not room[best]:  # the only one with room has a score of 0
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
            who = np.flatnonzero(room & (have == level))
            who = self._in_order(who, score, have, count - done)[: count - done]
            who = self._spare_the_needed(who)
            self._give(who)
            have[who] += 1
            out[done : done + len(who)] = who
            done += len(who)
        return out

    def _in_order(self, who: I64, score: U64, have: I64, more: int) -> I64:
        """Best first: other nodes first, then members under the running bound, then by rank."""
        over = self.load[who] >= self._bound(more)[who]
        points = score[who]
        rank = np.argsort(~points, kind="stable")
        keys: tuple[I64 | Bools, ...] = (over[rank],)
        if self.several_nodes:
            node = self.node_of[who[rank]]
            on_node = np.bincount(self.node_of, weights=have).astype(np.int64)
            by_node = np.lexsort((over[rank], node))
            runs = np.r_[0, np.flatnonzero(np.diff(node[by_node])) + 1]
            nth = np.empty(len(who), dtype=np.int64)
            nth[by_node] = np.arange(len(who)) - np.repeat(runs, np.diff(np.r_[runs, len(who)]))
            keys = (over[rank], nth + on_node[node])
        return who[rank[np.lexsort(keys)]]

    def _spare_the_needed(self, who: I64) -> I64:
        """Leave as many partitions as the members below their lower bound still need."""
        needy = self.load[who] < self.band.low[who]
        free = self.left - self.need
        if int((~needy).sum()) <= free:
            return who
        return who[needy | (np.cumsum(~needy) <= free)]

    def _give(self, who: I64) -> None:
        self.need -= int((self.load[who] < self.band.low[who]).sum())
        self.load[who] += 1
        self.left -= len(who)
        self.placed += len(who)
