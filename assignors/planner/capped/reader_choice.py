"""Chooses the readers of a topic with a worker cap: its owners first, then new readers by rank.

Choosing readers so that loads are within their bounds is bin packing. With `workers=1` and epsilon 0 each load is a sum
of whole topics. The question whether three topics fill each of M members exactly is 3-PARTITION, which is NP-complete
even if sizes are in unary, as partitions are (Garey and Johnson 1979, SP15). So no leader can find the optimum of every
group in time. `exact_small_groups` plans small groups exactly. For larger groups this module chooses a first set of
readers, `local_search` and `neighbourhood_search` improve it, and `min_cost_flow` moves the fewest partitions for these
readers.
"""

import heapq
from dataclasses import dataclass

import numpy as np

from assignors.planner.balance.fairest_loads import water_fill
from assignors.planner.capped.local_search import bring_into_band
from assignors.planner.capped.search_state import SearchState
from assignors.planner.input_arrays import I32, I64, Bools, Problem, equal_rows
from assignors.planner.load_bounds import Band
from assignors.planner.place_unowned import Scores
from assignors.planner.rack_locality import Racks
from assignors.planner.worker_caps import NO_CAP


@dataclass(frozen=True, slots=True, kw_only=True)
class ChosenReaders:
    """The readers of each topic.

    Attributes:
        may: which members may read which topic, shape (T, M).
        pieces: partitions of each topic on each member, shape (T, M), or empty if no cap binds. Topics without a cap
            that the same members read share the row of the first of them.
        fairest: whether loads are outside their bounds, but no plan has more even ones, and no member is off rack.
    """

    may: Bools
    pieces: I64
    fairest: bool


def choose_readers(  # noqa: PLR0913, PLR0917 -- the parts of a request
    problem: Problem, racks: Racks, caps: I32, cap_binds: Bools, band: Band, scores: Scores, least: int
) -> ChosenReaders:
    """Choose the readers of each capped topic; owners stay while loads are in the band.

    Args:
        problem: what is planned.
        racks: which members are local to which partitions.
        caps: maximum number of different members of each topic, shape (T,).
        cap_binds: topics whose cap is below their size and the number of possible readers, shape (T,).
        band: loads of a balanced plan.
        scores: preference of the members for a topic.
        least: lower bound of the claims that move.
    """
    readers = problem.subscribed[problem.group_of].T.copy()
    if not cap_binds.any():
        return ChosenReaders(may=readers, pieces=np.zeros((0, 0), dtype=np.int64), fairest=False)
    capped = np.flatnonzero(cap_binds)
    rows = _rows(problem, cap_binds)
    state = _keep_owners(problem, racks, caps, cap_binds, band, readers, rows)
    sizes = np.diff(problem.first)[capped]
    chunk = -(-sizes // caps[capped])
    order = np.lexsort((capped, -sizes, -chunk))
    unowned = sizes > state.pieces.sum(axis=1)[capped]
    for topic in capped[order[unowned[order]]].tolist():
        _add_newcomers(problem, racks, state, topic, scores)
    _place_uncapped(problem, state, cap_binds, rows)
    bring_into_band(state, least)
    np.copyto(readers, state.pieces > 0, where=cap_binds[:, None])
    fairest = not racks.off.any() and bool(state.outside_band().any()) and state.is_fairest()
    return ChosenReaders(may=readers, pieces=state.pieces, fairest=fairest)


def _keep_owners(  # noqa: PLR0913, PLR0917 -- the parts of a request
    problem: Problem, racks: Racks, caps: I32, cap_binds: Bools, band: Band, may: Bools, rows: I64
) -> SearchState:
    owned = _owned(problem, rows, may.shape)
    pieces = owned.copy()
    for topic in np.flatnonzero(cap_binds & ((owned > 0).sum(axis=1) > caps)).tolist():
        # If a topic has more owners than its cap, those with the largest pieces stay readers.
        pieces[topic, np.argsort(-owned[topic], kind="stable")[int(caps[topic]) :]] = 0
    return SearchState(
        weights=problem.weights,
        band=band,
        caps=np.where(cap_binds, caps, NO_CAP),
        may=may,
        owned=owned,
        sets=_rack_sets(problem, racks, cap_binds),
        off=racks.off,
        pieces=pieces,
    )


def _owned(problem: Problem, rows: I64, shape: tuple[int, ...]) -> I64:
    """Count the valid claims of each member on each row of topics."""
    topic_of = np.repeat(np.arange(len(rows)), np.diff(problem.first))
    held = problem.owner >= 0
    cells = rows[topic_of[held]] * shape[1] + problem.owner[held]
    return np.bincount(cells, minlength=shape[0] * shape[1]).reshape(shape)


def _rack_sets(problem: Problem, racks: Racks, cap_binds: Bools) -> I64:
    """Count the partitions of each capped topic by rack set, shape (T, K)."""
    shape = len(cap_binds), len(racks.off)
    topic_of = np.repeat(np.arange(shape[0]), np.diff(problem.first))
    sets = np.bincount(topic_of * shape[1] + racks.kind_of, minlength=shape[0] * shape[1]).reshape(shape)
    out: I64 = sets * cap_binds[:, None]
    return out


def _rows(problem: Problem, cap_binds: Bools) -> I64:
    """Number the row of each topic; topics without a cap that the same members read share a row.

    Their partitions may go to any of these members, so the search treats them as one topic.
    """
    column_of = equal_rows(problem.subscribed.T)[1]
    first = np.full(len(cap_binds), len(cap_binds))
    np.minimum.at(first, column_of[~cap_binds], np.flatnonzero(~cap_binds))
    return np.where(cap_binds, np.arange(len(cap_binds)), first[column_of])


def _place_uncapped(problem: Problem, state: SearchState, cap_binds: Bools, rows: I64) -> None:
    """Give unowned partitions of topics without a cap to the least loaded members."""
    counts = np.bincount(rows, weights=np.diff(problem.first), minlength=len(rows)).astype(np.int64)
    for row in np.unique(rows[~cap_binds]).tolist():
        members = np.flatnonzero(state.may[row])
        left = int(counts[row] - state.pieces[row].sum())
        if left and members.size:
            state.take(row, members, water_fill(left, state.load[members], state.weights[members]))


def _add_newcomers(problem: Problem, racks: Racks, state: SearchState, topic: int, scores: Scores) -> None:
    """Divide unowned partitions among the owners and the best ranked new readers with room for a whole piece."""
    start, end = int(problem.first[topic]), int(problem.first[topic + 1])
    owned = state.pieces[topic]
    left = end - start - int(owned.sum())
    if not left:
        return
    cap = min(int(state.caps[topic]), int(state.may[topic].sum()))
    load, high = state.load, state.band.high
    away = racks.off[racks.kind_of[start:end]].sum(axis=0)
    full = load + -(-(end - start) // cap) > high
    behind = np.where(full, load / problem.weights, 0.0)
    order = np.lexsort((~scores(np.array([topic]))[0], away, behind, full, owned == 0, ~state.may[topic]))
    readers = np.sort(order[: max(int((owned > 0).sum()), min(cap, int((owned > 0).sum()) + left))])
    state.take(topic, readers, _share_out(left, owned[readers], load[readers], high[readers]))


def _share_out(count: int, owned: I64, load: I64, high: I64) -> I64:
    """Divide partitions evenly among the readers of a topic, as far as their room allows."""
    out = np.zeros(len(load), dtype=np.int64)
    # The first one is the next to get a partition: with room, with the smallest piece, with the smallest load.
    rows = zip(load.tolist(), owned.tolist(), high.tolist(), strict=True)
    order = [(full >= most, piece, full, i, most) for i, (full, piece, most) in enumerate(rows)]
    heapq.heapify(order)
    for _ in range(count):
        _, piece, full, i, most = order[0]
        heapq.heapreplace(order, (full + 1 >= most, piece + 1, full + 1, i, most))
        out[i] += 1
    return out
