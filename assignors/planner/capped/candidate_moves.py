"""Hand-overs between the readers of capped topics, one per row, from which one step of the search chooses.

Takers are alike for a topic if they have the same weight, bounds and load, and neither hold nor claim any of it. A
hand-over to one of them is as good as to the others, and the search takes the first of equally good ones. So a row to
the first of them stands for all: 1,000 members have a few different loads.
"""

from dataclasses import dataclass, fields, replace
from typing import Final

import numpy as np

from assignors.planner.capped.search_state import Move, SearchState
from assignors.planner.input_arrays import I64, Bools

_TRIES: Final = 8  # fullest and emptiest members that a step considers
_FEW: Final = 3  # the number of these that exchange pieces
_WIDE: Final = 4  # fullest members of a step that finds many hand-overs


@dataclass(frozen=True, slots=True)
class CandidateMoves:
    """Hand-overs, one per row, with the topic given in exchange (`back`; -1 for none).

    `alike` is the number of equivalent hand-overs that a row represents.
    """

    topic: I64
    giver: I64
    taker: I64
    count: I64
    back: I64
    back_count: I64
    alike: I64

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
    takers = lacking if lacking.size else np.flatnonzero(room > 0)
    topic, giver = np.nonzero(state.pieces[:, givers[:_WIDE]])
    topics, givers = np.repeat(topic, len(takers)), np.repeat(givers[giver], len(takers))
    takers = np.tile(takers, len(topic))
    fits = state.may[topics, takers] & (givers != takers)
    return _whole(state, topics[fits], givers[fits], takers[fits], np.ones(int(fits.sum()), dtype=np.int64))


def wide_swaps(state: SearchState) -> CandidateMoves:
    """Return whole pieces that the members farthest above their bounds can exchange with those farthest below."""
    full, empty = extremes(state)
    return _as_moves(state, _exchanges(state, full, empty))


def _whole(state: SearchState, topics: I64, givers: I64, takers: I64, alike: I64) -> CandidateMoves:
    """Return hand-overs of whole pieces."""
    piece = state.pieces[topics, givers]
    return CandidateMoves(topics, givers, takers, piece, np.full(len(topics), -1), np.zeros_like(piece), alike)


def extremes(state: SearchState) -> tuple[I64, I64]:
    """Return the members farthest above their bounds, and those farthest below."""
    outside = state.outside_band()
    order = np.argsort(outside, kind="stable")
    full, empty = order[::-1][:_TRIES], order[:_TRIES]
    return full[outside[full] > 0], empty[outside[empty] < 0]


def gifts(state: SearchState, full: I64, empty: I64) -> CandidateMoves:
    """Return pieces that the fullest can give to any member, and that the emptiest can take from any.

    Args:
        state: the members and their pieces.
        full: numbers of the fullest members.
        empty: numbers of the emptiest members.
    """
    given = _given(state, full)
    if not empty.size:
        return given
    taken = _taken(state, empty)
    return CandidateMoves(*(np.r_[getattr(given, f.name), getattr(taken, f.name)] for f in fields(CandidateMoves)))


def _given(state: SearchState, givers: I64) -> CandidateMoves:
    """Return pieces of the givers, each to one of the takers that are alike; by piece, then by taker."""
    topics, giver = np.nonzero(state.pieces[:, givers])
    givers, every = givers[giver], np.arange(len(state.load))
    known = (state.pieces[topics] > 0) | (state.owned[topics] > 0)
    alike = _first_of_alike(state, state.may[topics], known, every)
    alike[np.arange(len(topics)), givers] = 0
    piece, taker = np.nonzero(alike)
    return _whole(state, topics[piece], givers[piece], taker, alike[piece, taker])


def _taken(state: SearchState, takers: I64) -> CandidateMoves:
    """Return all pieces, each to one of the takers that are alike; by taker, then by piece."""
    topics, givers = state.held()
    known = (state.pieces[:, takers] > 0) | (state.owned[:, takers] > 0)
    alike = _first_of_alike(state, state.may[:, takers], known, takers)[topics]
    alike[givers[:, None] == takers] = 0
    taker, piece = np.nonzero(alike.T)
    return _whole(state, topics[piece], givers[piece], takers[taker], alike[piece, taker])


def _first_of_alike(state: SearchState, may: Bools, known: Bools, takers: I64) -> I64:
    """Return how many equivalent takers each taker represents; the first of each set represents the set.

    Args:
        state: the members.
        may: which takers subscribe to the topic of each row, shape (R, N).
        known: which takers hold or claim partitions of it, shape (R, N); each of these represents itself.
        takers: the members of the columns, shape (N,).

    Returns:
        Numbers of takers, 0 for those that another one stands for, and for those that do not subscribe, shape (R, N).
    """
    key = state.kind[takers] * (int(state.load.max()) + 1) + state.load[takers]
    order = np.argsort(key, kind="stable")
    starts = np.flatnonzero(np.r_[True, np.diff(key[order]) > 0])
    out: I64 = (may & known).astype(np.int64)
    like = (may & ~known)[:, order]
    count = np.add.reduceat(like, starts, axis=1, dtype=np.int64)
    first = np.minimum.reduceat(np.where(like, order, len(takers)), starts, axis=1)
    row, group = np.nonzero(count)
    out[row, first[row, group]] = count[row, group]
    return out


def swaps(state: SearchState, full: I64, empty: I64) -> CandidateMoves:
    """Return whole pieces that the fullest can exchange with the least loaded, the emptiest with the most loaded.

    Args:
        state: the members and their pieces.
        full: numbers of the fullest members.
        empty: numbers of the emptiest members.
    """
    order = np.argsort(state.load / state.weights, kind="stable")
    low, high = order[:_TRIES], order[::-1][:_TRIES]
    one, two = _exchanges(state, full[:_FEW], low), _exchanges(state, high, empty[:_FEW])
    topic, giver, back, taker = (np.r_[a, b] for a, b in zip(one, two, strict=True))
    return _as_moves(state, (topic, giver, back, taker))


def _as_moves(state: SearchState, exchanges: tuple[I64, I64, I64, I64]) -> CandidateMoves:
    topic, giver, back, taker = exchanges
    piece, alike = state.pieces[topic, giver], np.ones(len(topic), dtype=np.int64)
    return CandidateMoves(topic, giver, taker, piece, back, state.pieces[back, taker], alike)


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
    """Limit counts to `wanted` if the taker already reads the topic, or the cap allows one more reader.

    Args:
        state: the members and their pieces.
        moves: R hand-overs; those with an exchange keep their counts.
        wanted: partitions to hand over by each row, shape (R,); below 1 counts as 1.
    """
    divisible = state.pieces[moves.topic, moves.taker] > 0
    divisible |= state.readers[moves.topic] < state.caps[moves.topic]
    count = np.where(divisible & (moves.back < 0), np.minimum(np.maximum(wanted, 1), moves.count), moves.count)
    return replace(moves, count=count)
