"""Brings the last members into the bounds of their loads by chains of hand-overs, with few moved claims.

A chain leads from a member that can give a partition to one that lacks one, or has room; each of its hand-overs is
between two readers of one topic, or to a new reader if the cap allows one more. A topic that has as many readers as its
cap allows is open to a member only if a reader leaves and gives its whole piece. This reader may then lack partitions
itself. Single hand-overs of `local_search` do not see this; here the choice of the piece counts how far the partitions
that replace it must come.

In each step the member that lacks the most receives a partition by a chain, or a reader's whole piece, whichever costs
fewer further hand-overs for each partition that it gets in this way. When no member lacks partitions, those above their
bounds give theirs by chains.
"""

from typing import Final

import numpy as np

from assignors.planner.capped.search_state import Move, SearchState
from assignors.planner.input_arrays import I64, Bools

_FAR: Final = 1 << 20
_LONGEST: Final = 4  # hand-overs of a chain
_STEPS: Final = 100
CHAIN_DISTANCES: Final = (2, 1)
"""Assumed least hand-overs to a member without a common topic: 2 is right before, 1 often after other hand-overs."""


def settle_by_chains(state: SearchState, far: int) -> None:
    """Bring loads into their bounds; the search ends early where no chain leads.

    Args:
        state: changed.
        far: one of `CHAIN_DISTANCES`.
    """
    topics, members = state.held()
    for _ in range(_STEPS):
        lacks, over = state.band.low - state.load, np.maximum(state.load - state.band.high, 0)
        needy = int(lacks.argmax())
        if lacks[needy] > 0:
            move = _fill(state, needy, topics, members, over if over.any() else np.maximum(-lacks, 0), far)
        elif over.any():
            move = _relieve(state, topics, members, over)
        else:
            return
        if not move:
            return
        new = [(topic, taker) for topic, _, taker, _ in move if not state.pieces[topic, taker]]
        state.apply(move)
        held = state.pieces[topics, members] > 0
        topics, members = topics[held], members[held]
        for topic, taker in new:
            at = int(np.searchsorted(topics * len(over) + members, topic * len(over) + taker))
            topics, members = np.insert(topics, at, topic), np.insert(members, at, taker)


def _fill(  # noqa: PLR0913, PLR0917 - arrays of one step
    state: SearchState, needy: int, topics: I64, members: I64, spare: I64, far: int
) -> Move:
    """Return a chain to the member that lacks most, or the hand-over of a whole piece."""
    distance = _distances(state, spare, topics, members)
    piece, ratio = _best_piece(state, needy, topics, members, spare, np.maximum(distance, far))
    length = 1 + int(distance[members[_near(state, needy)[topics]]].min(initial=_FAR))
    if length < _FAR and length - 1 <= ratio:
        return _chain(state, needy, length, topics, members, distance)
    if piece < 0:
        return []
    topic, reader = int(topics[piece]), int(members[piece])
    return [(topic, reader, needy, int(state.pieces[topic, reader]))]


def _relieve(state: SearchState, topics: I64, members: I64, over: I64) -> Move:
    """Return a chain from a member above its bounds to the nearest one with room."""
    distance = _distances(state, over, topics, members)
    near = np.where(state.load < state.band.high, distance, _FAR)
    taker = int(near.argmin())
    return _chain(state, taker, int(near[taker]), topics, members, distance) if near[taker] < _FAR else []


def _near(state: SearchState, member: int) -> Bools:
    """Return the topics of which a member can get a part, shape (T,)."""
    out: Bools = (state.pieces[:, member] > 0) | ((state.readers < state.caps) & state.may[:, member])
    return out


def _distances(state: SearchState, spare: I64, topics: I64, members: I64) -> I64:
    """Return the fewest hand-overs to each member from one that can give, shape (M,)."""
    is_open = state.readers < state.caps
    front = spare > 0
    distance = np.where(front, 0, _FAR)
    for hand_overs in range(1, _LONGEST + 1):
        reached = np.zeros(len(is_open), dtype=bool)
        reached[topics[front[members]]] = True
        front = np.logical_or.reduce(state.may[reached & is_open], axis=0)
        front[members[reached[topics]]] = True
        front &= distance == _FAR
        distance[front] = hand_overs
    return distance


def _best_piece(  # noqa: PLR0913, PLR0917 - arrays of one step
    state: SearchState, needy: int, topics: I64, members: I64, spare: I64, distance: I64
) -> tuple[int, float]:
    """Find the piece that the member should take, and its further hand-overs for each partition; -1 for none."""
    pieces, low, load = state.pieces[topics, members], state.band.low, state.load
    need, room = int(low[needy] - load[needy]), int(state.band.high[needy] - load[needy])
    direct = np.minimum(spare[members], pieces)
    of_topic = np.bincount(topics, direct, len(state.caps)).astype(np.int64)
    closed = (state.readers >= state.caps) & state.may[:, needy] & (state.pieces[:, needy] == 0)
    lost = np.maximum(low[members] - load[members] + pieces, 0) - np.maximum(low - load, 0)[members]
    can_give = spare[members] > 0
    others = np.bincount(topics, can_give, len(state.caps))[topics] - can_give > 0  # another reader can give
    near = np.bincount(members, others, len(load))[members] - others > 0  # also in a topic that the reader keeps
    further = lost * np.where(near, 1, distance[members])
    fits = np.flatnonzero(closed[topics] & (pieces <= room) & (further < _FAR))
    if not fits.size:
        return -1, np.inf
    gain = np.minimum(pieces + of_topic[topics] - direct, need)[fits]
    ratio = further[fits] / gain
    best = int(np.lexsort((-gain, ratio))[0])
    return int(fits[best]), float(ratio[best])


def _chain(  # noqa: PLR0913, PLR0917 - arrays of one step
    state: SearchState, taker: int, length: int, topics: I64, members: I64, distance: I64
) -> Move:
    """Return the first of the shortest chains to a member, each hand-over of one partition."""
    out: Move = []
    for left in range(length - 1, -1, -1):
        cell = int((_near(state, taker)[topics] & (distance[members] == left)).argmax())
        topic, giver = int(topics[cell]), int(members[cell])
        out.append((topic, giver, taker, 1))
        taker = giver
    return out[::-1]
