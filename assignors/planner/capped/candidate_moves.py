"""Hand-overs between the readers of capped topics, one per row, from which one step of the search chooses."""

from dataclasses import dataclass, fields, replace
from typing import Final

import numpy as np

from assignors.planner.capped.search_state import Move, SearchState
from assignors.planner.input_arrays import I64

_TRIES: Final = 8  # fullest and emptiest members that a step considers
_FEW: Final = 3  # the number of these that exchange pieces
_WIDE: Final = 4  # fullest members of a step that finds many hand-overs


@dataclass(frozen=True, slots=True)
class CandidateMoves:
    """Hand-overs, one per row, with the topic given in exchange (`back`; -1 for none)."""

    topic: I64
    giver: I64
    taker: I64
    count: I64
    back: I64
    back_count: I64

    def without(self, topic: int, member: int) -> "CandidateMoves":
        """Leave out the rows in which the member gives partitions of the topic."""
        stays = ((self.topic == topic) & (self.giver == member)) | ((self.back == topic) & (self.taker == member))
        if not stays.any():
            return self
        return CandidateMoves(*(getattr(self, f.name)[~stays] for f in fields(self)))

    def first(self, count: int) -> "CandidateMoves":
        """Return the first rows."""
        return CandidateMoves(*(getattr(self, f.name)[:count] for f in fields(self)))

    def move(self, i: int) -> Move:
        """Return one row as a move."""
        topic, giver, taker, count = (int(a[i]) for a in (self.topic, self.giver, self.taker, self.count))
        out = [(topic, giver, taker, count)]
        if self.back[i] >= 0:
            out.append((int(self.back[i]), taker, giver, int(self.back_count[i])))
        return out


def wide_gifts(state: SearchState) -> CandidateMoves:
    """Return pieces that the fullest members can give to every member below its lower bound.

    If no member is below, every member with room can take; if none is above its upper bound, the most loaded can give.
    """
    room, surplus = state.band.high - state.load, state.load - state.band.low
    lacking, over = np.flatnonzero(surplus < 0), np.flatnonzero(room < 0)
    givers = over[np.argsort(room[over], kind="stable")] if over.size else np.argsort(-surplus, kind="stable")
    return _between(state, givers[:_WIDE], lacking if lacking.size else np.flatnonzero(room > 0))


def _between(state: SearchState, givers: I64, takers: I64) -> CandidateMoves:
    topic, giver = np.nonzero(state.pieces[:, givers])
    topics, givers = np.repeat(topic, len(takers)), np.repeat(givers[giver], len(takers))
    return _whole(state, topics, givers, np.tile(takers, len(topic)))


def _whole(state: SearchState, topics: I64, givers: I64, takers: I64) -> CandidateMoves:
    """Return hand-overs of whole pieces to takers that subscribe to the topic."""
    fits = state.may[topics, takers] & (givers != takers)
    topics, givers, takers = topics[fits], givers[fits], takers[fits]
    piece = state.pieces[topics, givers]
    return CandidateMoves(topics, givers, takers, piece, np.full(len(topics), -1), np.zeros_like(piece))


def extremes(state: SearchState) -> tuple[I64, I64]:
    """Return the members farthest above their bounds, and those farthest below."""
    outside = state.outside_band()
    order = np.argsort(outside, kind="stable")
    full, empty = order[::-1][:_TRIES], order[:_TRIES]
    return full[outside[full] > 0], empty[outside[empty] < 0]


def gifts(state: SearchState, full: I64, empty: I64) -> CandidateMoves:
    """Return pieces that the fullest can give to any member, and that the emptiest can take from any."""
    given = _between(state, full, np.arange(len(state.load)))
    topic, giver = np.nonzero(state.pieces) if empty.size else (given.topic[:0], given.giver[:0])
    topics, givers = np.tile(topic, len(empty)), np.tile(giver, len(empty))
    taken = _whole(state, topics, givers, np.repeat(empty, len(topic)))
    return CandidateMoves(*(np.r_[getattr(given, f.name), getattr(taken, f.name)] for f in fields(CandidateMoves)))


def swaps(state: SearchState, full: I64, empty: I64) -> CandidateMoves:
    """Return whole pieces that the fullest can exchange with the least loaded, the emptiest with the most loaded."""
    order = np.argsort(state.load / state.weights, kind="stable")
    low, high = order[:_TRIES], order[::-1][:_TRIES]
    one, two = _exchanges(state, full[:_FEW], low), _exchanges(state, high, empty[:_FEW])
    topic, giver, back, taker = (np.r_[a, b] for a, b in zip(one, two, strict=True))
    return CandidateMoves(topic, giver, taker, state.pieces[topic, giver], back, state.pieces[back, taker])


def _exchanges(state: SearchState, givers: I64, takers: I64) -> tuple[I64, I64, I64, I64]:
    """Pair each piece of the givers with each of the takers, if both may read the topic that they get.

    Returns:
        Topic, giver, the topic in exchange, taker.
    """
    mine, giver = np.nonzero(state.pieces[:, givers])
    theirs, taker = np.nonzero(state.pieces[:, takers])
    one, two = np.repeat(np.arange(len(mine)), len(theirs)), np.tile(np.arange(len(theirs)), len(mine))
    topic, back, giver, taker = mine[one], theirs[two], givers[giver[one]], takers[taker[two]]
    fits = (topic != back) & (giver != taker) & state.may[topic, taker] & state.may[back, giver]
    return topic[fits], giver[fits], back[fits], taker[fits]


def limit_counts(state: SearchState, moves: CandidateMoves, wanted: I64) -> CandidateMoves:
    """Limit counts to `wanted` if the taker already reads the topic, or the cap allows one more reader."""
    divisible = state.pieces[moves.topic, moves.taker] > 0
    divisible |= state.readers[moves.topic] < state.caps[moves.topic]
    count = np.where(divisible & (moves.back < 0), np.minimum(np.maximum(wanted, 1), moves.count), moves.count)
    return replace(moves, count=count)
