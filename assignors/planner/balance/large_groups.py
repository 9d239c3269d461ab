"""Plans groups too large for exact counts: topic by topic, claims first, then the least loaded readers.

The plans are valid, within the caps, and as balanced as one pass allows; they are not proven optimal. They are used if
members x kinds of partitions would need gigabytes, with some thousands of different subscriptions or capped topics.
"""

import numpy as np

from assignors.planner.balance.fairest_loads import water_fill
from assignors.planner.input_arrays import I64, NO_OWNER, Bools, Problem
from assignors.planner.load_bounds import Band, fair_band
from assignors.planner.place_unowned import Placement, Scores


def topic_by_topic_plan(  # noqa: PLR0913, PLR0917 -- the parts of a request
    problem: Problem, readers: Bools, pieces: I64, epsilon: float, placement: Placement, scores: Scores
) -> None:
    """Plan into `placement.owner`.

    Args:
        problem: what is planned.
        readers: which members may read which topic, shape (T, M).
        pieces: number of partitions of each capped topic that its readers should get, shape (T, M), or empty.
        epsilon: allowed distance from the fair share.
        placement: places the free partitions, and has the result.
        scores: preference of the members for a topic.
    """
    high = fair_band(problem.partitions, problem.weights, epsilon).high
    load = np.zeros(len(problem.members), dtype=np.int64)
    placement.owner = np.full(problem.partitions, NO_OWNER, dtype=np.int32)
    sizes = np.diff(problem.first)
    for topic in np.lexsort((-sizes, readers.sum(axis=1))).tolist():
        start, end = int(problem.first[topic]), int(problem.first[topic + 1])
        who = np.flatnonzero(readers[topic])
        owned = _claims(problem, topic, len(load))
        if pieces.size and pieces[topic].any():
            quota = pieces[topic]
        else:
            quota = np.where(readers[topic], np.minimum(owned, np.maximum(high - load, 0)), 0)
            quota[who] += water_fill(end - start - int(quota.sum()), (load + quota)[who], problem.weights[who])
        _give(problem, topic, np.minimum(owned, quota), quota, placement, scores)
        load += quota


def _claims(problem: Problem, topic: int, members: int) -> I64:
    owner = problem.owner[int(problem.first[topic]) : int(problem.first[topic + 1])]
    return np.bincount(owner[owner >= 0], minlength=members)


def _give(problem: Problem, topic: int, kept: I64, quota: I64, placement: Placement, scores: Scores) -> None:  # noqa: PLR0913, PLR0917 -- the parts of a request
    """Keep the first claims of each member up to its count; place the rest."""
    start, end = int(problem.first[topic]), int(problem.first[topic + 1])
    left = kept.copy()
    for at in range(start, end):
        owner = int(problem.owner[at])
        if owner >= 0 and left[owner] > 0:
            placement.owner[at] = owner
            left[owner] -= 1
    more = quota - kept
    if more.any():
        free = start + np.flatnonzero(placement.owner[start:end] == NO_OWNER)
        placement.place(scores, free, Band(more, more), np.zeros_like(more), more / more.sum())
