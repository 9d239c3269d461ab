"""Policies of other systems with the same contract, for comparison: published rules with their published constants."""

import math
from dataclasses import dataclass

import numpy as np

from assignors.errors import LimitsError
from assignors.scaling.lag import lag_records
from assignors.scaling.lag_gate import PartitionState, View
from assignors.scaling.observation import NEVER
from assignors.scaling.policy_contract import Proposal, State


def _need_above_0(policy: str, **settings: float) -> None:
    for name, value in settings.items():
        if not value > 0:
            raise LimitsError(f"{policy}: {name}={value!r}, need more than 0")


@dataclass(frozen=True, slots=True, kw_only=True)
class Static:
    """A constant number."""

    workers: int = 1

    def __post_init__(self) -> None:
        _need_above_0("static", workers=self.workers)

    @property
    def name(self) -> str:
        """The policy's name in settings and reports."""
        return "static"

    def propose(self, view: View, state: State) -> Proposal:  # noqa: ARG002 -- it needs no input
        """As in `Policy`."""
        return Proposal(workers=self.workers, reason=f"always {self.workers}")


@dataclass(frozen=True, slots=True, kw_only=True)
class Thresholds:
    """A step by the lag and its trend, and a larger step before retention deletes unread records.

    The trend is the slope of a straight line fitted to the lag of the window by least squares. Above `max_lag` and
    rising: one step more. Below `min_lag` and not rising: one step fewer. In between, or if the trend already has the
    right direction: no change.

    Attributes:
        min_lag, max_lag: records of the whole topic.
        step: workers to add or remove at once.
        retention_part: if less than this fraction of the retention is left, add `retention_step` workers.
        retention_s: the topic's retention; None if it is unlimited.
        retention_step: workers to add at once in that case.

    Source: the rule that Hevo Data published for its Kafka integration in 2021.
    """

    min_lag: int = 30_000
    max_lag: int = 150_000
    step: int = 1
    retention_part: float = 0.25
    retention_s: float | None = None
    retention_step: int = 4

    def __post_init__(self) -> None:
        _need_above_0("thresholds", max_lag=self.max_lag, step=self.step, retention_step=self.retention_step)
        if not 0 <= self.min_lag < self.max_lag:
            raise LimitsError(
                f"thresholds: min_lag={self.min_lag} must be below max_lag={self.max_lag}, and not below 0"
            )

    @property
    def name(self) -> str:
        """The policy's name in settings and reports."""
        return "thresholds"

    def propose(self, view: View, state: State) -> Proposal:
        """As in `Policy`."""
        lag, now = view.lag_total, state.workers
        if self.retention_s and view.deadline_s < self.retention_part * self.retention_s:
            reason = f"retention deletes unread records in {view.deadline_s:.0f} s: {self.retention_step} more"
            return Proposal(workers=now + self.retention_step, reason=reason)
        trend = slope(view)
        said = f"lag of {lag} records, {trend:+.1f} a second"
        if lag > self.max_lag and trend > 0:
            return Proposal(workers=now + self.step, reason=f"{said}, above {self.max_lag} and rising")
        if lag < self.min_lag and trend <= 0:
            return Proposal(workers=max(now - self.step, 1), reason=f"{said}, below {self.min_lag} and not rising")
        return Proposal(workers=now, reason=f"{said}: no reason to change")


def slope(view: View) -> float:
    """Fit a straight line to the lag of the flowing partitions: records per second."""
    seen, use = view.window, view.flowing
    if len(seen.times_s) < 2 or not use.any():  # noqa: PLR2004 -- a line needs two points
        return 0.0
    lag = lag_records(seen.start[:, use], seen.end[:, use], seen.committed[:, use])
    known = (lag >= 0).all(axis=1)
    times, total = seen.times_s[known], lag[known].sum(axis=1)
    if len(times) < 2:  # noqa: PLR2004 -- as above
        return 0.0
    times = times - times.mean()
    return float((times * (total - total.mean())).sum() / (times**2).sum())


@dataclass(frozen=True, slots=True, kw_only=True)
class Keda:
    """KEDA's Kafka scaler behind the Horizontal Pod Autoscaler of Kubernetes.

    KEDA reports the total lag, limited to `partitions x lag_threshold` so that no consumer is idle. The autoscaler
    divides by the threshold, and changes nothing while the ratio of the present average to it is within the tolerance.
    KEDA counts a partition without a commit as 1 (offsetResetPolicy latest) or as its end offset (earliest). The
    autoscaler's stabilisation (5 minutes down, none up) and its speed (double, or 4 more, in 15 s) are limits.

    Attributes:
        lag_threshold: average records per worker.
        tolerance: tolerance of the ratio, the autoscaler's default.
        reset_earliest: whether offsetResetPolicy is earliest.

    Source: kedacore/keda pkg/scalers/kafka_scaler.go; Kubernetes, "Horizontal Pod Autoscaling", algorithm details.
    """

    lag_threshold: int = 60_000
    tolerance: float = 0.1
    reset_earliest: bool = False

    def __post_init__(self) -> None:
        _need_above_0("keda", lag_threshold=self.lag_threshold)

    @property
    def name(self) -> str:
        """The policy's name in settings and reports."""
        return "keda"

    def propose(self, view: View, state: State) -> Proposal:
        """As in `Policy`."""
        metric = self.metric(view)
        average = metric / max(state.workers, 1)
        said = f"average lag {average:.0f} a worker against {self.lag_threshold}"
        if abs(average / self.lag_threshold - 1) <= self.tolerance:
            return Proposal(workers=state.workers, reason=f"{said}: within the tolerance")
        return Proposal(workers=math.ceil(metric / self.lag_threshold), reason=said)

    def metric(self, view: View) -> int:
        """Return the lag as KEDA reports it: without a gate, all known lag counts."""
        seen = view.window
        committed, end = seen.committed[-1], seen.end[-1]
        known = (end >= 0) & (committed >= NEVER)
        never = known & (committed == NEVER)
        lag = np.where(known & ~never, np.maximum(end - committed, 0), 0)
        lag = np.where(never, end if self.reset_earliest else 1, lag)
        return min(int(lag.sum()), seen.partitions * self.lag_threshold)


@dataclass(frozen=True, slots=True, kw_only=True)
class DS2:
    """Arrivals divided by the true processing rate of one worker; the backlog does not count.

    Its activation time (a number of consecutive decisions must agree) is the limit `Confirmed`.

    Source: Kalavri et al., "Three steps is all you need", OSDI 2018, equation 7 for one operator.
    """

    @property
    def name(self) -> str:
        """The policy's name in settings and reports."""
        return "ds2"

    def propose(self, view: View, state: State) -> Proposal:
        """As in `Policy`."""
        if view.worker_rate is None:
            return Proposal(workers=state.workers, reason="the true processing rate is not measured yet")
        come = float(view.arriving.sum())
        wanted = max(math.ceil(come / view.worker_rate - 1e-9), 1)
        reason = f"{come:.0f} records a second come and a worker's true rate is {view.worker_rate:.0f}: {wanted}"
        return Proposal(workers=wanted, reason=reason)


@dataclass(frozen=True, slots=True, kw_only=True)
class Numaflow:
    """Time to read the backlog at the present speed, divided by a target time.

    Attributes:
        target_s: targetProcessingSeconds of a source.

    Source: numaproj/numaflow pkg/reconciler/vertex/scaling/scaling.go, desiredReplicas for sources; its cool-downs of
    90 s and its step of 2 are limits.
    """

    target_s: float = 20.0

    def __post_init__(self) -> None:
        _need_above_0("numaflow", target_s=self.target_s)

    @property
    def name(self) -> str:
        """The policy's name in settings and reports."""
        return "numaflow"

    def propose(self, view: View, state: State) -> Proposal:
        """As in `Policy`."""
        pending = int(np.maximum(view.lag, 0)[view.states != PartitionState.UNCOMMITTED].sum())
        speed = float(view.leaving.sum())
        if speed <= 0:
            reason = "nothing waits and nothing is read" if pending == 0 else "nothing is read: left alone"
            return Proposal(workers=0 if pending == 0 else state.workers, reason=reason)
        wanted = max(round(pending / speed / self.target_s * state.workers), 1)
        reason = (
            f"{pending} records wait and {speed:.0f} a second are read, to be done in {self.target_s:g} s: {wanted}"
        )
        return Proposal(workers=wanted, reason=reason)
