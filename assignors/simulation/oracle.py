"""The oracle knows the future load and tries every number of workers. No policy can match it; it shows the minimum."""

from dataclasses import dataclass

import numpy as np

from assignors.scaling.observation import F64, I64
from assignors.scaling.policy_contract import Proposal, State
from assignors.scaling.stalled_lag import View
from assignors.scaling.workers_from_lag_policy import REBALANCE_S
from assignors.simulation.simulated_group import SimulatedGroup
from assignors.simulation.traces import Trace, hot, readable

_BLOCK_S = 600.0
_DEBT_S = 60.0


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Oracle:
    """The smallest number of workers with which no record gets too old, for each ten minutes, found by trial.

    The trials run the simulator's own group: real placement, and the pause of each change. Records that are unread at
    the end of a ten-minute block may be at most a minute old, so no block leaves a backlog for the next one. The age
    counts from the time at which the record could first be read, and a partition too hot for one worker stops counting.

    Attributes:
        begins_s: time at which each number should be requested, shape (B,).
        numbers: the workers, shape (B,).
    """

    begins_s: F64
    numbers: I64

    @classmethod
    def of(cls, trace: Trace, slo_s: float, *, start_s: float = 30.0, rebalance_s: float = REBALANCE_S) -> "Oracle":
        """Find the numbers for a trace.

        Args:
            trace: the future load.
            slo_s: the objective.
            start_s: from a decision to the rebalance it causes.
            rebalance_s: time without a reader, at each change.
        """
        # No policy is responsible for a partition from the time it was hot.
        due = np.where(np.logical_or.accumulate(hot(trace, slo_s), axis=0), 0, readable(trace))
        block = max(round(_BLOCK_S / trace.step_s), 1)
        group = SimulatedGroup(trace, rebalance_s=rebalance_s, workers=1)
        numbers = []
        for begin in range(0, len(due), block):
            steps = range(begin, min(begin + block, len(due)))
            group = _least(group, steps, due, slo_s)
            numbers.append(group.count)
        begins = (np.arange(len(numbers)) * block * trace.step_s - start_s).astype(np.float64)
        return cls(begins_s=begins, numbers=np.array(numbers, dtype=np.int64))

    @property
    def name(self) -> str:
        """The policy's name in reports."""
        return "oracle"

    def propose(self, view: View, state: State) -> Proposal:  # noqa: ARG002 -- it needs no memory
        """As in `Policy`."""
        at = int(np.searchsorted(self.begins_s, view.window.now_s + 1e-6, side="right")) - 1
        workers = int(self.numbers[max(at, 0)])
        return Proposal(workers=workers, reason=f"{workers} are enough for what is to come, and fewer are not")


def _least(group: SimulatedGroup, steps: range, due: I64, slo_s: float) -> SimulatedGroup:
    """Return the group after these steps, with the smallest number of workers that meets the objective."""
    count = group.count
    after = _trial(group, count, steps, due, slo_s)
    if after is not None:
        while count > 1 and (fewer := _trial(group, count - 1, steps, due, slo_s)) is not None:
            after, count = fewer, count - 1
        return after
    while count < group.partitions:
        count += 1
        after = _trial(group, count, steps, due, slo_s)
        if after is not None:
            return after
    # Even one worker per partition misses the objective: take the maximum number of workers and continue.
    group = group.copy()
    group.resize(group.partitions)
    for t in steps:
        group.step(t)
    return group


def _trial(group: SimulatedGroup, count: int, steps: range, due: I64, slo_s: float) -> SimulatedGroup | None:
    trial = group.copy()
    if count != trial.count:
        trial.resize(count)
    step = trial.trace.step_s
    for t in steps:
        position = trial.step(t)
        allowed_s = slo_s if t < steps[-1] else min(slo_s, _DEBT_S)
        if (position < _before(due, t, allowed_s / step)).any():
            return None
    return trial


def _before(due: I64, t: int, steps: float) -> I64:
    at = t - round(steps)
    return due[at] if at >= 0 else np.zeros_like(due[0])
