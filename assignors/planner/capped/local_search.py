"""Hand-overs between the readers of capped topics that bring the loads into their bounds.

A piece is the part of a topic that one reader has. A part of it can go to another reader, or to a new reader if the cap
allows one more; otherwise a new reader takes the whole piece. Each step takes the hand-over, or the exchange of two
pieces, that brings the loads nearest to their bounds with the fewest moved claims. `neighbourhood_search` finds
solutions that single steps miss: loads within their bounds, and then fewer moves. Where few partitions are outside the
bounds, as after a join, `hand_over_chains` comes first. If no loads within the bounds are found, the search moves each
piece to another member and repairs the loads. It keeps the result if the loads are more even (iterated local search).
"""

from collections.abc import Iterator
from typing import Final

import numpy as np

from assignors.planner.capped import candidate_moves
from assignors.planner.capped.candidate_moves import CandidateMoves, limit_counts
from assignors.planner.capped.hand_over_chains import CHAIN_DISTANCES, settle_by_chains
from assignors.planner.capped.neighbourhood_search import search_neighbourhoods
from assignors.planner.capped.newcomer_bound import newcomer_moves
from assignors.planner.capped.search_state import Key, Move, SearchState
from assignors.planner.input_arrays import I64

_NEARER: Final = 1 << 20
_NEVER: Final = 1 << 62
_ENDLESS: Final = 1 << 62
_LEAST: Final = 1e-9
_REPAIR_STEPS: Final = 8  # after a piece was moved to another member
_MANY: Final = 8  # members outside their bounds: with more, one step finds many hand-overs
_POOLS_HELP: Final = 64  # members outside their bounds: with more, dividing the pieces of a few does not help
_CHAINS_HELP: Final = 64  # partitions outside the bounds: with more, chains take longer than single hand-overs
_SMALL: Final = 100_000  # cells of topics x members: up to these, all ways to come into the bounds take little time
_NEAR: Final = 1.3  # times the bound: as many moved claims are enough in larger groups
_CALL_WORK: Final = 2_000  # hand-overs that could be priced in the time of an empty call
_MIXED: Final = 1009
BALANCE_WORK: Final = 4_000_000
"""Limit of the work that brings loads near to their bounds, and separately of the work that brings them inside: about
a second each, during which the leader's heartbeats wait."""
SEARCH_WORK: Final = 2_000_000
"""Limit of the work for fewer moves; two thirds of it if loads are outside their bounds, often beyond repair."""


def bring_into_band(state: SearchState, least: int) -> None:
    """Bring loads into their bounds, then pieces back to their owners.

    Args:
        state: changed.
        least: lower bound of the claims that move; the search ends when it is reached.
    """
    if not state.off.any() and (state.moved > least or state.outside_band().any()):
        least = max(least, newcomer_moves(state.owned, state.pieces.sum(axis=1), state.caps, state.band))
    _settle(state, least)
    if state.outside_band().any() and not state.is_fairest():
        _come_inside(state, least)
    if not state.outside_band().any():
        search_neighbourhoods(state, least, state.work + SEARCH_WORK)


def _settle(state: SearchState, least: int) -> None:
    """Bring loads into their bounds in one of three ways, the quickest first; keep the best that was tried."""
    before, tried = state.pieces, list[tuple[Key, I64]]()
    enough = least * (_NEAR if state.owned.size > _SMALL else 1)
    for far in CHAIN_DISTANCES if _chains_help(state) else ():
        state.reset(before.copy())
        settle_by_chains(state, far)
        if not state.outside_band().any() and state.moved <= enough:
            return
        tried.append((state.key(), state.pieces))
    if tried:
        state.reset(before)
    _approach_band(state)
    _balance(state, _ENDLESS, end=state.work + BALANCE_WORK)
    if _chains_help(state):
        tried.append((state.key(), state.pieces.copy()))
        settle_by_chains(state, CHAIN_DISTANCES[0])
    for key, pieces in tried:
        if key < state.key():
            state.reset(pieces)


def _chains_help(state: SearchState) -> bool:
    few = 0 < int(np.abs(state.outside_band()).sum()) <= _CHAINS_HELP
    return few and not state.off.any() and not state.is_fairest()


def _come_inside(state: SearchState, least: int) -> None:
    """Search for loads within the bounds, which may not exist; then for more even loads."""
    if np.count_nonzero(state.outside_band()) <= _POOLS_HELP:
        before, pieces = state.key(), state.pieces.copy()
        search_neighbourhoods(state, least, state.work + SEARCH_WORK // 3)
        if state.key() > before:
            state.reset(pieces)
    end, again = state.work + SEARCH_WORK // 3, True
    while again:
        again = False
        for find in (_returns, _other_readers):
            for move in find(state):
                if state.work >= end or not state.outside_band().any():
                    return
                again |= _try(state, move)


def _try(state: SearchState, move: Move) -> bool:
    """Do a move and repair the loads; undo both unless the plan is better. Return whether it stays."""
    before = state.key()
    topic, _, taker, _ = move[0]
    for swaps in (False, True):
        state.apply(move)
        done = [move, *_balance(state, _REPAIR_STEPS, (topic, taker), swaps=swaps)]
        if state.key() < before:
            return True
        state.undo(done)
    return False


def _approach_band(state: SearchState) -> None:
    """Bring loads near to their bounds by many hand-overs or exchanges per step, while many members are outside."""
    end = state.work + BALANCE_WORK
    while np.count_nonzero(state.outside_band()) > _MANY and state.work < end:
        chosen = _disjoint_moves(state, candidate_moves.wide_gifts(state))
        chosen = chosen or _disjoint_exchanges(state, candidate_moves.wide_swaps(state))
        if not chosen:
            return
        for move in chosen:
            state.apply(move)


def _disjoint_moves(state: SearchState, gifts: CandidateMoves) -> list[Move]:
    """Choose the cheapest hand-over to each taker, without those that conflict with a cheaper one."""
    if not gifts.topic.size:
        return []
    moves, order = _cheapest_first(state, gifts)
    order = order[np.sort(np.unique(moves.taker[order], return_index=True)[1])]
    over, surplus = state.load - state.band.high, state.load - state.band.low
    left = np.where(over > 0, over, surplus)
    topics, givers, out = set[int](), set[int](), list[Move]()
    for i in order.tolist():
        topic, giver, count = int(moves.topic[i]), int(moves.giver[i]), int(moves.count[i])
        if topic not in topics and (giver not in givers or count <= left[giver]):
            out.append(moves.move(i))
            topics.add(topic)
            givers.add(giver)
            left[giver] -= count
    return out


def _disjoint_exchanges(state: SearchState, swaps: CandidateMoves) -> list[Move]:
    """Choose the cheapest exchanges of which no two have a member or a topic in common."""
    if not swaps.topic.size:
        return []
    moves, order = _cheapest_first(state, swaps)
    members, topics, out = set[int](), set[int](), list[Move]()
    for i in order.tolist():
        between, changed = {int(moves.giver[i]), int(moves.taker[i])}, {int(moves.topic[i]), int(moves.back[i])}
        if members.isdisjoint(between) and topics.isdisjoint(changed):
            out.append(moves.move(i))
            members |= between
            topics |= changed
    return out


def _cheapest_first(state: SearchState, candidates: CandidateMoves) -> tuple[CandidateMoves, I64]:
    """Price moves; return them with limited counts, and the numbers of those that bring loads nearer, by price."""
    moves, price = _priced(state, candidates)
    # Among equal prices, each taker starts with a different piece, because otherwise all would choose the same one.
    mixed = (moves.topic * 31 + moves.giver * 17 + moves.taker * 7) % _MIXED
    order = np.lexsort((mixed, price))
    return moves, order[price[order] < _NEVER]


def _returns(state: SearchState) -> Iterator[Move]:
    """Yield moves that return missing partitions to their owners, largest first; each fits the state at that time."""
    topics, owners = np.nonzero(state.pieces < state.owned)
    missing = state.owned[topics, owners] - state.pieces[topics, owners]
    for i in np.argsort(-missing, kind="stable").tolist():
        topic, owner = int(topics[i]), int(owners[i])
        for holder in np.flatnonzero(state.pieces[topic]).tolist():
            pieces, owned = state.pieces[topic], state.owned[topic]
            lacks, surplus = int(owned[owner] - pieces[owner]), int(pieces[holder] - owned[holder])
            divisible = pieces[owner] > 0 or state.readers[topic] < state.caps[topic]
            if holder == owner or lacks <= 0 or pieces[holder] == 0:
                continue
            if not divisible:
                yield [(topic, holder, owner, int(pieces[holder]))]
            elif surplus > 0:
                yield [(topic, holder, owner, min(lacks, surplus))]


def _other_readers(state: SearchState) -> Iterator[Move]:
    """Yield moves of whole pieces of capped topics to other members."""
    topics, readers = np.nonzero(state.pieces * (state.caps < len(state.load))[:, None])
    for topic, reader in zip(topics.tolist(), readers.tolist(), strict=True):
        for other in np.flatnonzero(state.may[topic]).tolist():
            count = int(state.pieces[topic, reader])
            if other != reader and count:
                yield [(topic, reader, other, count)]


def _balance(
    state: SearchState, most: int, stays: tuple[int, int] = (-1, -1), *, swaps: bool = True, end: int = _ENDLESS
) -> list[Move]:
    """Move towards the bounds; if no move leads there, relieve the fullest member. Return the moves."""
    done: list[Move] = []
    while len(done) < most and state.work < end and state.outside_band().any():
        move = _best_move(state, stays, swaps=swaps)
        if move is None:
            break
        state.apply(move)
        done.append(move)
    return done


def _best_move(state: SearchState, stays: tuple[int, int], *, swaps: bool) -> Move | None:
    full, empty = candidate_moves.extremes(state)
    gifts = candidate_moves.gifts(state, full, empty).without(*stays)
    best = _nearest(state, gifts)
    if best is not None and (best[0] < 0 or not swaps):  # a negative price: each moved claim brings a load nearer
        return best[1]
    exchanges = candidate_moves.swaps(state, full, empty).without(*stays) if swaps else gifts.first(0)
    found = [b for b in (best, _nearest(state, exchanges)) if b is not None]
    if found:
        return min(found, key=lambda b: b[0])[1]
    return _lowest(state, gifts, exchanges)


def _nearest(state: SearchState, moves: CandidateMoves) -> tuple[int, Move] | None:
    """Find the move that brings loads nearest to their bounds with the fewest claims, and its price.

    The price counts claims that bring no load nearer. A claim that moves from a member above its bounds to one below
    brings both nearer.
    """
    if not moves.topic.size:
        return None
    moves, price = _priced(state, moves)
    best = int(np.lexsort((state.load[moves.taker], price))[0])
    return None if price[best] == _NEVER else (int(price[best]), moves.move(best))


def _priced(state: SearchState, moves: CandidateMoves) -> tuple[CandidateMoves, I64]:
    """Limit each hand-over to the needed count, and price it; _NEVER if it brings no load nearer."""
    state.work += _CALL_WORK + int(moves.alike.sum())  # the same limit however many rows stand for others
    load, low, high = state.load, state.band.low, state.band.high
    giver, taker = moves.giver, moves.taker
    over, under = np.maximum(load - high, 0)[giver], np.maximum(low - load, 0)[taker]
    surplus, room = np.maximum(load - low, 0)[giver], np.maximum(high - load, 0)[taker]
    both = np.where(under > 0, np.minimum(over, under), np.minimum(over, room))
    wanted = np.where(over > 0, both, np.minimum(under, surplus))
    moves = limit_counts(state, moves, wanted)
    net = moves.count - moves.back_count
    outside = np.abs(state.outside_band())
    after = _distance(load[giver] - net, low[giver], high[giver]) + _distance(
        load[taker] + net, low[taker], high[taker]
    )
    nearer = outside[giver] + outside[taker] - after
    price = (2 * _lost(state, moves) - nearer) * _NEARER - nearer
    return moves, np.where(nearer > 0, price, _NEVER)


def _lowest(state: SearchState, gifts: CandidateMoves, swaps: CandidateMoves) -> Move | None:
    """Find the move that lowers the higher of two loads most; used if the bounds cannot be reached."""
    best: tuple[float, float, Move] | None = None
    for found in (gifts, swaps):
        if not found.topic.size:
            continue
        load, weights = state.load, state.weights
        giver, taker = found.giver, found.taker
        level = (load[giver] + load[taker]) / (weights[giver] + weights[taker])
        moves = limit_counts(
            state, found, np.maximum(np.floor(load[giver] - level * weights[giver]), 1).astype(np.int64)
        )
        net = moves.count - moves.back_count
        after = np.maximum((load[giver] - net) / weights[giver], (load[taker] + net) / weights[taker])
        gain = np.maximum(load[giver] / weights[giver], load[taker] / weights[taker]) - after
        price = _lost(state, moves)
        i = int(np.lexsort((price, -np.round(gain, 9)))[0])
        if gain[i] > _LEAST and (best is None or (-gain[i], price[i]) < best[:2]):
            best = (-float(gain[i]), float(price[i]), moves.move(i))
    return None if best is None else best[2]


def _lost(state: SearchState, moves: CandidateMoves) -> I64:
    """Return how many more claims each move costs."""
    out = _missing(state, moves.topic, moves.giver, -moves.count)
    out += _missing(state, moves.topic, moves.taker, moves.count)
    back = _missing(state, moves.back, moves.taker, -moves.back_count)
    back += _missing(state, moves.back, moves.giver, moves.back_count)
    return out + np.where(moves.back >= 0, back, 0)


def _missing(state: SearchState, topic: I64, member: I64, more: I64) -> I64:
    missing = state.owned[topic, member] - state.pieces[topic, member]
    out: I64 = np.maximum(missing - more, 0) - np.maximum(missing, 0)
    return out


def _distance(load: I64, low: I64, high: I64) -> I64:
    out: I64 = np.maximum(load - high, 0) + np.maximum(low - load, 0)
    return out
