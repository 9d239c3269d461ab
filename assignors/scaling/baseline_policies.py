"""Policies of other systems with the same contract, for comparison: published rules with their published constants."""

import math
from dataclasses import dataclass

import numpy as np

from assignors.errors import LimitsError
from assignors.scaling.observation import NEVER
from assignors.scaling.policy_contract import Proposal, State
from assignors.scaling.stalled_lag import PartitionState, View


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
class Keda:
    """KEDA's Kafka scaler behind the Horizontal Pod Autoscaler of Kubernetes.

    KEDA reports the total lag, limited to `partitions x lag_threshold` so that no consumer is idle. The autoscaler
    divides by the threshold, and changes nothing while the ratio of the current average to it is within the tolerance.
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
    """Time to read the backlog at the current speed, divided by a target time.

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
            reason = "nothing waits and nothing is read" if pending == 0 else "nothing is read: the number stays"
            return Proposal(workers=0 if pending == 0 else state.workers, reason=reason)
        wanted = max(round(pending / speed / self.target_s * state.workers), 1)
        reason = (
            f"{pending} records wait and {speed:.0f} a second are read, to be done in {self.target_s:g} s: {wanted}"
        )
        return Proposal(workers=wanted, reason=reason)
