"""Hand-overs that may be done between the readers of capped topics, a row each: what a look of the search prices."""

from dataclasses import dataclass, fields, replace
from typing import Final

import numpy as np

from assignors.planner.capped.search_state import Seats, Step
from assignors.planner.input_arrays import I64

_TRIES: Final = 8  # fullest and emptiest members that are looked at in a step
_FEW: Final = 3  # of them, those that exchange pieces
_WIDE: Final = 4  # of the fullest, for a look that finds many hand-overs


@dataclass(frozen=True, slots=True)
class Steps:
    """Hand-overs that may be done, one a row, and what goes the other way in exchange (topic -1: nothing)."""

    topic: I64
    giver: I64
    taker: I64
    count: I64
    back: I64
    back_count: I64

    def without(self, topic: int, member: int) -> "Steps":
        """Leave out those by which the member gives of the topic."""
        stays = ((self.topic == topic) & (self.giver == member)) | ((self.back == topic) & (self.taker == member))
        if not stays.any():
            return self
        return Steps(*(getattr(self, f.name)[~stays] for f in fields(self)))

    def first(self, count: int) -> "Steps":
        """The first so many."""
        return Steps(*(getattr(self, f.name)[:count] for f in fields(self)))

    def step(self, i: int) -> Step:
        """One of them."""
        topic, giver, taker, count = (int(a[i]) for a in (self.topic, self.giver, self.taker, self.count))
        out = [(topic, giver, taker, count)]
        if self.back[i] >= 0:
            out.append((int(self.back[i]), taker, giver, int(self.back_count[i])))
        return out


def wide_gifts(seats: Seats) -> Steps:
    """What many of the fullest can give to all that lack something.

    Where nobody lacks, to those with room; where nobody has too much, of those with some to spare.
    """
    room, spare = seats.band.high - seats.load, seats.load - seats.band.low
    lacking, over = np.flatnonzero(spare < 0), np.flatnonzero(room < 0)
    givers = over[np.argsort(room[over], kind="stable")] if over.size else np.argsort(-spare, kind="stable")
    return _between(seats, givers[:_WIDE], lacking if lacking.size else np.flatnonzero(room > 0))


def _between(seats: Seats, givers: I64, takers: I64) -> Steps:
    topic, who = np.nonzero(seats.pieces[:, givers])
    topics, givers = np.repeat(topic, len(takers)), np.repeat(givers[who], len(takers))
    return _whole(seats, topics, givers, np.tile(takers, len(topic)))


def _whole(seats: Seats, topics: I64, givers: I64, takers: I64) -> Steps:
    """Whole pieces, where the takers may read them."""
    fits = seats.may[topics, takers] & (givers != takers)
    topics, givers, takers = topics[fits], givers[fits], takers[fits]
    piece = seats.pieces[topics, givers]
    return Steps(topics, givers, takers, piece, np.full(len(topics), -1), np.zeros_like(piece))


def extremes(seats: Seats) -> tuple[I64, I64]:
    """The members that are farthest above their bounds, and those that are farthest below."""
    beside = seats.beside()
    order = np.argsort(beside, kind="stable")
    full, empty = order[::-1][:_TRIES], order[:_TRIES]
    return full[beside[full] > 0], empty[beside[empty] < 0]


def gifts(seats: Seats, full: I64, empty: I64) -> Steps:
    """What the fullest can give to anybody, and the emptiest take from anybody."""
    given = _between(seats, full, np.arange(len(seats.load)))
    topic, giver = np.nonzero(seats.pieces) if empty.size else (given.topic[:0], given.giver[:0])
    topics, givers = np.tile(topic, len(empty)), np.tile(giver, len(empty))
    taken = _whole(seats, topics, givers, np.repeat(empty, len(topic)))
    return Steps(*(np.r_[getattr(given, f.name), getattr(taken, f.name)] for f in fields(Steps)))


def swaps(seats: Seats, full: I64, empty: I64) -> Steps:
    """Whole pieces that the fullest can exchange with the least loaded, and the emptiest with the most loaded."""
    order = np.argsort(seats.load / seats.weights, kind="stable")
    low, high = order[:_TRIES], order[::-1][:_TRIES]
    one, two = _exchanges(seats, full[:_FEW], low), _exchanges(seats, high, empty[:_FEW])
    topic, giver, back, taker = (np.r_[a, b] for a, b in zip(one, two, strict=True))
    return Steps(topic, giver, taker, seats.pieces[topic, giver], back, seats.pieces[back, taker])


def _exchanges(seats: Seats, givers: I64, takers: I64) -> tuple[I64, I64, I64, I64]:
    """Each piece of these with each piece of those, where both may read what they get: topic, giver, topic, taker."""
    mine, giver = np.nonzero(seats.pieces[:, givers])
    theirs, taker = np.nonzero(seats.pieces[:, takers])
    one, two = np.repeat(np.arange(len(mine)), len(theirs)), np.tile(np.arange(len(theirs)), len(mine))
    topic, back, giver, taker = mine[one], theirs[two], givers[giver[one]], takers[taker[two]]
    fits = (topic != back) & (giver != taker) & seats.may[topic, taker] & seats.may[back, giver]
    return topic[fits], giver[fits], back[fits], taker[fits]


def part(seats: Seats, steps: Steps, wanted: I64) -> Steps:
    """Where the taker reads the topic, or a seat is free, give as many as wanted; otherwise the whole piece."""
    seated = seats.pieces[steps.topic, steps.taker] > 0
    seated |= seats.readers[steps.topic] < seats.caps[steps.topic]
    count = np.where(seated & (steps.back < 0), np.minimum(np.maximum(wanted, 1), steps.count), steps.count)
    return replace(steps, count=count)
