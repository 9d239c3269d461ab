"""Plans under different subscriptions, racks and worker caps: keep what may stay, then give by load, zone and rank."""

import numpy as np

from assignors._bound import Band
from assignors._fill import Scores
from assignors._hash import U64
from assignors._problem import I32, I64, NOBODY, Bools, Problem
from assignors._racks import Racks


def general_plan(problem: Problem, band: Band, caps: I32, racks: Racks, scores: Scores) -> I32:
    """Place everything.

    Args:
        problem: what is planned.
        band: bounds of the loads where all members could read everything.
        caps: largest number of distinct members of each topic, shape (T,).
        racks: who is local to what.
        scores: preference of the members for a topic.
    """
    owner = np.full(problem.partitions, NOBODY, dtype=np.int32)
    load = np.zeros(len(problem.members), dtype=np.int64)
    for topic in np.argsort(-np.diff(problem.first), kind="stable"):
        allowed = problem.subscribed[problem.group_of, topic]
        if allowed.any():
            _place_topic(problem, int(topic), allowed, band, int(caps[topic]), racks, scores(int(topic)), owner, load)
    return owner


def _place_topic(  # noqa: PLR0913, PLR0917
    problem: Problem,
    topic: int,
    allowed: Bools,
    band: Band,
    cap: int,
    racks: Racks,
    score: U64,
    owner: I32,
    load: I64,
) -> None:
    readers = np.zeros(len(load), dtype=bool)
    for at in range(int(problem.first[topic]), int(problem.first[topic + 1])):
        may = allowed & readers if readers.sum() >= cap else allowed
        stay = problem.owner[at]
        if stay >= 0 and may[stay] and load[stay] < band.high[stay] and not racks.off[racks.kind_of[at], stay]:
            best = int(stay)
        else:
            away = racks.off[racks.kind_of[at]]
            keys = (~score, away, load / problem.weights, ~may)
            best = int(np.lexsort(keys)[0])
        owner[at] = best
        load[best] += 1
        readers[best] = True
