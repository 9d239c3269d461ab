"""Plans of groups too large for exact counts: topic by topic, claims first, then the least loaded readers.

Valid, capped and balanced as far as one pass can; not proven optimal. Used where members x kinds of partitions would
need gigabytes, with some thousands of different subscriptions or capped topics.
"""

import numpy as np

from assignors.planner.balance.fairest_loads import pour
from assignors.planner.fill_unowned import Fill, Scores
from assignors.planner.input_arrays import I64, NOBODY, Bools, Problem
from assignors.planner.load_bounds import Band, fair_band


def coarse_plan(  # noqa: PLR0913, PLR0917
    problem: Problem, readers: Bools, pieces: I64, epsilon: float, fill: Fill, scores: Scores
) -> None:
    """Place everything into `fill.owner`.

    Args:
        problem: what is planned.
        readers: who may read which topic, shape (T, M).
        pieces: how many partitions of each capped topic its readers are meant to have, shape (T, M), or empty.
        epsilon: allowed distance from the fair share.
        fill: what gives free partitions to members.
        scores: preference of the members for a topic.
    """
    high = fair_band(problem.partitions, problem.weights, epsilon).high
    load = np.zeros(len(problem.members), dtype=np.int64)
    fill.owner = np.full(problem.partitions, NOBODY, dtype=np.int32)
    sizes = np.diff(problem.first)
    for topic in np.lexsort((-sizes, readers.sum(axis=1))).tolist():
        start, end = int(problem.first[topic]), int(problem.first[topic + 1])
        who = np.flatnonzero(readers[topic])
        owned = _claims(problem, topic, len(load))
        if pieces.size and pieces[topic].any():
            quota = pieces[topic]
        else:
            quota = np.where(readers[topic], np.minimum(owned, np.maximum(high - load, 0)), 0)
            quota[who] += pour(end - start - int(quota.sum()), (load + quota)[who], problem.weights[who])
        _give(problem, topic, np.minimum(owned, quota), quota, fill, scores)
        load += quota


def _claims(problem: Problem, topic: int, members: int) -> I64:
    owner = problem.owner[int(problem.first[topic]) : int(problem.first[topic + 1])]
    return np.bincount(owner[owner >= 0], minlength=members)


def _give(problem: Problem, topic: int, kept: I64, quota: I64, fill: Fill, scores: Scores) -> None:  # noqa: PLR0913, PLR0917
    """Keep the first claims of each member up to its count; fill the rest."""
    start, end = int(problem.first[topic]), int(problem.first[topic + 1])
    left = kept.copy()
    for at in range(start, end):
        owner = int(problem.owner[at])
        if owner >= 0 and left[owner] > 0:
            fill.owner[at] = owner
            left[owner] -= 1
    more = quota - kept
    if more.any():
        free = start + np.flatnonzero(fill.owner[start:end] == NOBODY)
        fill.run(scores, free, Band(more, more), np.zeros_like(more), more / more.sum())
