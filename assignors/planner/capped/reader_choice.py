"""Who may read a topic that not all may read: at most `workers` members, owners first, newcomers by rank.

To choose readers so that loads come within bounds is bin packing: with `workers=1` and epsilon 0 each load is a
sum of whole topics, and whether three topics fill each of M members exactly is 3-PARTITION, which is NP-complete also
where sizes are written in unary, as partitions are (Garey and Johnson 1979, SP15). So no leader finds the optimum of
every group in time. `exact_small_groups` plans small groups exactly. In larger ones this module seats owners and
newcomers, `local_search` and `neighbourhood_search` search from there, and `min_cost_flow` moves the fewest partitions
for the readers chosen.
"""

import numpy as np

from assignors.planner.balance.fairest_loads import pour
from assignors.planner.capped.local_search import settle
from assignors.planner.capped.search_state import Seats
from assignors.planner.fill_unowned import Scores
from assignors.planner.input_arrays import I32, I64, Bools, Problem, equal_rows
from assignors.planner.load_bounds import Band
from assignors.planner.rack_locality import Racks
from assignors.planner.worker_caps import NO_CAP


def choose_readers(  # noqa: PLR0913, PLR0917
    problem: Problem, racks: Racks, caps: I32, alone: Bools, band: Band, scores: Scores, least: int
) -> tuple[Bools, I64]:
    """Choose the readers of each capped topic; owners stay while loads are in the band.

    Args:
        problem: what is planned.
        racks: who is local to what.
        caps: most distinct members of each topic, shape (T,).
        alone: topics whose cap binds, shape (T,).
        band: loads of a balanced plan.
        scores: preference of the members for a topic.
        least: claims that must move whatever is done.

    Returns:
        Who may read which topic, shape (T, M), and how many partitions of the capped ones each is meant to have.
    """
    readers = problem.subscribed[problem.group_of].T.copy()
    if not alone.any():
        return readers, np.zeros((0, 0), dtype=np.int64)
    capped = np.flatnonzero(alone)
    seats = _seat_owners(problem, racks, caps, alone, band, readers)
    sizes = np.diff(problem.first)[capped]
    chunk = -(-sizes // caps[capped])
    for topic in capped[np.lexsort((capped, -sizes, -chunk))].tolist():
        _seat_newcomers(problem, racks, seats, topic, scores)
    _seat_the_rest(problem, seats, alone)
    settle(seats, least)
    readers[capped] = seats.pieces[capped] > 0
    seats.pieces[~alone] = 0
    return readers, seats.pieces


def _seat_owners(  # noqa: PLR0913, PLR0917
    problem: Problem, racks: Racks, caps: I32, alone: Bools, band: Band, may: Bools
) -> Seats:
    owned = np.zeros(may.shape, dtype=np.int64)
    np.add.at(owned, _rows(problem, alone), problem.owned)
    pieces = owned.copy()
    for topic in np.flatnonzero(alone & ((owned > 0).sum(axis=1) > caps)).tolist():
        # Where owners are more than the cap, those with the largest pieces stay.
        pieces[topic, np.argsort(-owned[topic], kind="stable")[int(caps[topic]) :]] = 0
    return Seats(
        weights=problem.weights,
        band=band,
        caps=np.where(alone, caps, NO_CAP),
        may=may,
        owned=owned,
        sets=_rack_sets(problem, racks, alone),
        off=racks.off,
        pieces=pieces,
    )


def _rack_sets(problem: Problem, racks: Racks, alone: Bools) -> I64:
    """Partitions of each capped topic by their rack set, shape (T, K)."""
    topic_of = np.repeat(np.arange(len(alone)), np.diff(problem.first))
    sets = np.zeros((len(alone), len(racks.off)), dtype=np.int64)
    np.add.at(sets, (topic_of, racks.kind_of), 1)
    return sets * alone[:, None]


def _rows(problem: Problem, alone: Bools) -> I64:
    """Row of each topic: its own, or for topics without a cap that of the first one the same members read.

    Their partitions may go anywhere among these members, so they are one topic.
    """
    column_of = equal_rows(problem.subscribed.T)[1]
    first = np.full(len(alone), len(alone))
    np.minimum.at(first, column_of[~alone], np.flatnonzero(~alone))
    return np.where(alone, np.arange(len(alone)), first[column_of])


def _seat_the_rest(problem: Problem, seats: Seats, alone: Bools) -> None:
    """Pour what is free of the topics without a cap to the least loaded."""
    rows = _rows(problem, alone)
    counts = np.bincount(rows, weights=np.diff(problem.first), minlength=len(rows)).astype(np.int64)
    for row in np.unique(rows[~alone]).tolist():
        who = np.flatnonzero(seats.may[row])
        left = int(counts[row] - seats.pieces[row].sum())
        if left and who.size:
            seats.take(row, who, pour(left, seats.load[who], seats.weights[who]))


def _seat_newcomers(problem: Problem, racks: Racks, seats: Seats, topic: int, scores: Scores) -> None:
    """Share what the owners do not hold: among them, and the best newcomers with room for a whole piece."""
    start, end = int(problem.first[topic]), int(problem.first[topic + 1])
    owned = seats.pieces[topic]
    left = end - start - int(owned.sum())
    if not left:
        return
    cap = min(int(seats.caps[topic]), int(seats.may[topic].sum()))
    load, high = seats.load, seats.band.high
    away = racks.off[racks.kind_of[start:end]].sum(axis=0)
    full = load + -(-(end - start) // cap) > high
    behind = np.where(full, load / problem.weights, 0.0)
    order = np.lexsort((~scores(topic), away, behind, full, owned == 0, ~seats.may[topic]))
    who = np.sort(order[: max(int((owned > 0).sum()), min(cap, int((owned > 0).sum()) + left))])
    seats.take(topic, who, _share_out(left, owned[who], load[who], high[who]))


def _share_out(count: int, owned: I64, load: I64, high: I64) -> I64:
    """Share partitions among readers so that each holds as many of the topic, as far as their room allows."""
    out = np.zeros(len(load), dtype=np.int64)
    for _ in range(count):
        out[int(np.lexsort((load + out, owned + out, load + out >= high))[0])] += 1
    return out
