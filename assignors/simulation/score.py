"""Scores a run: time over the objective, worker-hours, changes, moves, losses."""

from dataclasses import dataclass

import numpy as np

from assignors.scaling.observation import F64, I64, Mask
from assignors.simulation.simulator import Run
from assignors.simulation.traces import hot, readable


@dataclass(frozen=True, slots=True, kw_only=True)
class Score:
    """Figures of one run.

    Attributes:
        over_slo: fraction of the time in which some partition's oldest unread record was older than the objective.
        over_slo_avoidable: the same without delays that no number of workers can prevent. The age counts from the time
            at which a group with one worker per partition could first have read the record (outages). A partition that
            is too hot for one worker does not count until it meets the objective again.
        worker_hours: sum of workers over time.
        resizes_per_day, flips_per_day: changes of the number; changes of their direction.
        moved: partitions that changed their worker.
        lost: records that retention deleted unread.
    """

    over_slo: float
    over_slo_avoidable: float
    worker_hours: float
    resizes_per_day: float
    flips_per_day: float
    moved: int
    lost: int


def score(run: Run, slo_s: float) -> Score:
    """Compute the figures of a run."""
    step, days = run.trace.step_s, run.trace.days
    changes = np.sign(np.diff(run.workers))
    changes = changes[changes != 0]
    late = record_ages(run.written, run.committed, step).max(axis=1) > slo_s
    hurts = (record_ages(readable(run.trace), run.committed, step) > slo_s) & ~_excused(run, slo_s)
    avoidable = hurts.any(axis=1)
    return Score(
        over_slo=float(late.mean()),
        over_slo_avoidable=float(avoidable.mean()),
        worker_hours=float(run.workers.sum() * step / 3600),
        resizes_per_day=len(changes) / days,
        flips_per_day=float(np.count_nonzero(changes[1:] != changes[:-1])) / days,
        moved=run.moved,
        lost=run.lost,
    )


def _excused(run: Run, slo_s: float) -> Mask:
    """Mark the steps from the time a partition becomes hot until it meets the objective again, shape (T, P)."""
    excused = hot(run.trace, slo_s)
    late = record_ages(run.written, run.committed, run.trace.step_s) > slo_s
    for p in np.flatnonzero(excused.any(axis=0)):
        for t in range(1, len(excused)):
            excused[t, p] |= excused[t - 1, p] and late[t, p]
    return excused


def together(scores: list[Score]) -> Score:
    """Combine the scores of several topics: the mean of the time fractions, the sum of everything else."""
    return Score(
        over_slo=float(np.mean([one.over_slo for one in scores])),
        over_slo_avoidable=float(np.mean([one.over_slo_avoidable for one in scores])),
        worker_hours=sum(one.worker_hours for one in scores),
        resizes_per_day=sum(one.resizes_per_day for one in scores),
        flips_per_day=sum(one.flips_per_day for one in scores),
        moved=sum(one.moved for one in scores),
        lost=sum(one.lost for one in scores),
    )


def record_ages(reached: I64, committed: I64, step_s: float) -> F64:
    """Return how long ago the oldest unread record arrived.

    Args:
        reached: end offsets at each step, shape (T, P), never falling.
        committed: offsets read, shape (T, P).
        step_s: seconds per step.

    Returns:
        Seconds, shape (T, P), 0 where no record was unread.
    """
    steps = np.arange(len(reached))
    found = np.zeros(reached.shape)
    for p in range(reached.shape[1]):
        there = np.searchsorted(reached[:, p], committed[:, p], side="right")
        found[:, p] = np.where(committed[:, p] < reached[:, p], (steps - there) * step_s, 0.0)
    return found
