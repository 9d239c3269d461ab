"""Plans that balance the volume of partitions instead of their number. Pure.

The partitions of a topic have equal volumes, whole numbers, so that every leader computes the same sums. What moves
together is a unit: a partition; where a worker cap binds, an even part of the topic for each of its readers. Claims are
kept first, the rest is placed by rank, the largest first, and single units then move until no move brings the loads
nearer to their bounds. So a plan of its own result moves nothing.

Source: Graham 1969 (the largest first); Mirrokni, Thorup, Zadimoghaddam 2018 (bounded loads).
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from assignors.hashing.murmur3_hash import U64
from assignors.planner.input_arrays import I32, I64, NO_OWNER, Bools, Problem
from assignors.planner.place_unowned import Scores
from assignors.planner.plan_request import PlanRequest
from assignors.planner.topic_volumes import TopicWeights, largest_first, seat_volumes, volume_bounds


@dataclass(slots=True)
class _Units:
    """Sets of partitions that move together, topic by topic.

    Attributes:
        topic: shape (U,), ascending.
        size: partitions, shape (U,).
        volume: shape (U,).
        owner: member that has it, or NO_OWNER; shape (U,); changed.
        apart: whether the units of a topic have different members, because a cap binds; shape (T,).
    """

    topic: I64
    size: I64
    volume: I64
    owner: I64
    apart: Bools


def volume_owners(request: PlanRequest, weights: TopicWeights, scores: Scores) -> I32:
    """Compute the owner of each partition.

    Args:
        request: what is planned; its caps count, and its racks where there is a choice.
        weights: of the topics; a topic without a weight counts as the median topic.
        scores: preference of the members for a topic.

    Returns:
        Owners, shape (P,).
    """
    problem = request.problem
    ranks = scores(np.arange(len(problem.topics)))
    sizes = np.diff(problem.first)
    volumes = np.array(seat_volumes([weights.get(t.name) for t in problem.topics], sizes.tolist()), dtype=np.int64)
    allowed = problem.subscribed[problem.group_of].T  # (T, M)
    caps = np.minimum(request.caps, allowed.sum(axis=1))
    units = _units(problem, caps, ranks, volumes)
    bounds = _Bounds.of(units.volume, problem.weights.tolist(), request.epsilon)
    state = _Loads(units, allowed, ranks, _off_rack(request), bounds, len(problem.members))
    state.place()
    state.improve()
    return _owners(problem, units)


@dataclass(frozen=True, slots=True)
class _Bounds:
    """The smallest and the largest volume of each member, shapes (M,)."""

    low: I64
    high: I64

    @classmethod
    def of(cls, volumes: I64, weights: Sequence[float], epsilon: float) -> "_Bounds":
        units = volumes.tolist()
        low = volume_bounds(units, weights, -min(epsilon, 1.0))
        high = volume_bounds(units, weights, epsilon)
        return cls(np.minimum(low, high), np.array(high, dtype=np.int64))


def _units(problem: Problem, caps: I32 | I64, ranks: U64, volumes: I64) -> _Units:
    """Return the units with the owners that their claims name: each partition, or parts of a capped topic."""
    topic: list[int] = []
    size: list[int] = []
    owner: list[int] = []
    for number, (begin, end) in enumerate(zip(problem.first[:-1].tolist(), problem.first[1:].tolist(), strict=True)):
        claimed, count = problem.owner[begin:end], end - begin
        parts = min(int(caps[number]), count)
        if parts == count:
            owner += claimed.tolist()
            size += [1] * count
        else:
            held = np.bincount(claimed[claimed >= 0], minlength=len(problem.members))
            first = np.lexsort((~ranks[number], -held))[:parts].tolist()
            owner += [one if held[one] else NO_OWNER for one in first]
            size += [count // parts + (part < count % parts) for part in range(parts)]
        topic += [number] * parts
    at = np.array(topic, dtype=np.int64)
    sizes = np.array(size, dtype=np.int64)
    return _Units(at, sizes, volumes[at] * sizes, np.array(owner, dtype=np.int64), caps < np.diff(problem.first))


def _off_rack(request: PlanRequest) -> Bools:
    """Return whether a member is in none of the racks of a topic's partitions, shape (T, M)."""
    problem, racks = request.problem, request.racks
    shape = len(problem.topics), len(problem.members)
    if not racks.off.any():
        return np.zeros(shape, dtype=bool)
    return np.logical_and.reduceat(racks.off[racks.kind_of], problem.first[:-1], axis=0)


class _Loads:
    """The volumes of members while units are placed and moved."""

    def __init__(  # noqa: PLR0913, PLR0917 -- the arrays of one plan
        self,
        units: _Units,
        allowed: Bools,
        ranks: U64,
        off: Bools,
        bounds: _Bounds,
        members: int,
    ) -> None:
        self.units, self.allowed, self.ranks, self.off, self.bounds = units, allowed, ranks, off, bounds
        owned = units.owner >= 0
        self.load = np.zeros(members, dtype=np.int64)
        np.add.at(self.load, units.owner[owned], units.volume[owned])
        self.held = np.zeros(allowed.shape, dtype=np.int64)
        np.add.at(self.held, (units.topic[owned], units.owner[owned]), 1)

    def place(self) -> None:
        """Place the units without an owner, the largest first, on the best ranked members with room."""
        units, bounds = self.units, self.bounds
        free = np.flatnonzero(units.owner == NO_OWNER)
        left = int(units.volume[free].sum())
        need = int(np.maximum(bounds.low - self.load, 0).sum())
        for at in free[largest_first(units.volume[free].tolist())].tolist():
            topic, volume = int(units.topic[at]), int(units.volume[at])
            may = self.allowed[topic]
            if units.apart[topic]:
                may = may & (self.held[topic] == 0)  # not in place: `allowed` stays
            room = may & (self.load + volume <= bounds.high)
            if left <= need and (needy := may & (self.load < bounds.low)).any():
                room = needy & room if (needy & room).any() else needy
            taker = self._best(topic, room) if room.any() else self._least(topic, volume, may)
            before = int(max(bounds.low[taker] - self.load[taker], 0))
            self._give(at, taker)
            need -= min(before, volume)
            left -= volume

    def improve(self) -> None:
        """Move single units while that brings loads nearer to their bounds, the units that help most first.

        The rounds end because every move reduces the sum of the penalties.
        """
        bounds, everyone, moved = self.bounds, np.arange(len(self.load)), True
        while moved:
            moved = False
            over = self.load - bounds.high
            for giver in np.argsort(-over, kind="stable")[: np.count_nonzero(over > 0)].tolist():
                while self.load[giver] > bounds.high[giver]:
                    if not self._best_move(np.flatnonzero(self.units.owner == giver), everyone):
                        break
                    moved = True
            under = bounds.low - self.load
            for taker in np.argsort(-under, kind="stable")[: np.count_nonzero(under > 0)].tolist():
                while self.load[taker] < bounds.low[taker]:
                    if not self._best_move(np.flatnonzero(self.units.owner != taker), np.array([taker])):
                        break
                    moved = True

    def _best(self, topic: int, room: Bools) -> int:
        """Return the best of these members: with the fewest units of the topic, in its racks, by rank."""
        held = self.held[topic]
        room = room & (held == held[room].min())
        local = room & ~self.off[topic]
        room = local if local.any() else room
        best = int((self.ranks[topic] * room).argmax())
        return best if room[best] else int(room.argmax())  # the only one may have a score of 0

    def _least(self, topic: int, volume: int, may: Bools) -> int:
        """Return the member that is the least above its bound with this volume."""
        over = np.where(may, (self.load + volume) / np.maximum(self.bounds.high, 1), np.inf)
        return self._best(topic, over == over.min())

    def _best_move(self, at: I64, takers: I64) -> bool:
        """Move one of these units to one of these members, if that reduces the sum of the penalties; say whether."""
        units, penalty = self.units, self._penalty_of(self.load, np.arange(len(self.load)))
        volume, giver = units.volume[at][:, None], units.owner[at]
        before = penalty[giver][:, None] + penalty[takers]
        after_giver = self._penalty_of(self.load[giver] - units.volume[at], giver)[:, None]
        after = after_giver + self._penalty_of(self.load[takers] + volume, takers)
        topic = units.topic[at]
        may = self.allowed[topic][:, takers] & ~(units.apart[topic][:, None] & (self.held[topic][:, takers] > 0))
        gain = np.where(may & (giver[:, None] != takers), before - after, 0)
        best = int(gain.max(initial=0))
        if best <= 0:
            return False
        unit, taker = np.nonzero(gain == best)
        topics = units.topic[at[unit]]
        spread, away = self.held[topics, takers[taker]], self.off[topics, takers[taker]]
        first = int(np.lexsort((~self.ranks[topics, takers[taker]], units.volume[at[unit]], away, spread))[0])
        self._give(int(at[unit[first]]), int(takers[taker[first]]))
        return True

    def _give(self, at: int, taker: int) -> None:
        topic, volume, giver = self.units.topic[at], self.units.volume[at], self.units.owner[at]
        if giver != NO_OWNER:
            self.load[giver] -= volume
            self.held[topic, giver] -= 1
        self.units.owner[at] = taker
        self.load[taker] += volume
        self.held[topic, taker] += 1

    def _penalty_of(self, load: I64, member: I64) -> I64:
        """Return how far loads are outside the bounds of these members."""
        low, high = self.bounds.low[member], self.bounds.high[member]
        outside: I64 = np.maximum(load - high, 0) + np.maximum(low - load, 0)
        return outside


def _owners(problem: Problem, units: _Units) -> I32:
    """Give partitions to the owners of their topic's units; owners keep theirs as far as the size of a unit allows."""
    out = np.empty(problem.partitions, dtype=np.int32)
    starts = np.searchsorted(units.topic, np.arange(len(problem.first)))
    for number, (begin, end) in enumerate(zip(problem.first[:-1].tolist(), problem.first[1:].tolist(), strict=True)):
        mine = slice(int(starts[number]), int(starts[number + 1]))
        takers = units.owner[mine]
        if len(takers) == end - begin:
            out[begin:end] = takers
            continue
        room = np.zeros(len(problem.members), dtype=np.int64)
        np.add.at(room, takers, units.size[mine])
        left: list[int] = []
        for at in range(begin, end):
            owner = int(problem.owner[at])
            if owner >= 0 and room[owner]:
                room[owner] -= 1
                out[at] = owner
            else:
                left.append(at)
        out[left] = np.repeat(np.arange(len(room)), room)
    return out
