"""Decides how many workers a topic needs: gate, policy, limits; the result contains the decision and its inputs."""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from assignors.scaling.observation import Window
from assignors.scaling.policy_contract import Policy, Proposal, State
from assignors.scaling.recommendation_limits import Limit
from assignors.scaling.stalled_lag import GateSettings, View, findings, gate

_SMOOTHING = 0.2
_SETTLED_S = 60.0
_MOST = 0.9


@dataclass(frozen=True, slots=True, kw_only=True)
class Scaler:
    """The settings of the decisions for one topic, without state.

    Attributes:
        policy: chooses the number.
        limits: limit the number, in this order.
        gate: thresholds for stalled and hot partitions.
        worker_rate: records per second that one worker reads; None to measure it.
        retention_s: the topic's retention; None if it is unlimited or the topic is compacted.
    """

    policy: Policy
    limits: Sequence[Limit] = ()
    gate: GateSettings = field(default_factory=GateSettings)
    worker_rate: float | None = None
    retention_s: float | None = None

    @property
    def remembers_s(self) -> float:
        """The longest time that a limit needs of `State.wanted`."""
        return max((limit.remembers_s for limit in self.limits), default=0.0)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Decision:
    """A decision and its inputs.

    Attributes:
        topic: name of the topic.
        workers: number from now on.
        before: previous number.
        reason: the policy's sentence and the changes by limits.
        proposed: the policy's number.
        view: the inputs.
        findings: sentences about partitions that do not flow, by state.
        state: state for the next decision.
    """

    topic: str
    workers: int
    before: int
    reason: str
    proposed: Proposal
    view: View
    findings: dict[str, str]
    state: State


def decide(scaler: Scaler, seen: Window, state: State, topic: str = "topic") -> Decision:
    """Choose the number of workers from a window of observations.

    Pure: equal arguments give an equal decision. A topic of which no partition flows keeps its number.
    """
    rate = scaler.worker_rate or state.worker_rate
    view = gate(seen, workers=state.workers, worker_rate=rate, retention_s=scaler.retention_s, settings=scaler.gate)
    proposed = scaler.policy.propose(view, state)
    workers, reasons = proposed.workers, [proposed.reason]
    for limit in scaler.limits:
        held = limit.apply(workers, view, state)
        if held.reason:
            reasons.append(held.reason)
        workers = held.workers
    now = seen.now_s
    changed = workers != state.workers
    begin = now - scaler.remembers_s
    # Wanted numbers with a future time come from a clock that jumped; they would count forever.
    wanted = (*(one for one in state.wanted if begin <= one[0] < now), (now, proposed.workers))
    return Decision(
        topic=topic,
        workers=workers,
        before=state.workers,
        reason="; ".join(reasons),
        proposed=proposed,
        view=view,
        findings=findings(view, topic) if view.states.any() else {},
        state=replace(
            state,
            workers=workers,
            changed_s=now if changed else state.changed_s,
            wanted=wanted,
            worker_rate=state.worker_rate if scaler.worker_rate else measured_rate(view, state),
        ),
    )


def measured_rate(view: View, state: State) -> float | None:
    """Measure the records per second of one worker, over a time in which there were always records to read.

    Only if nearly all partitions had a backlog for the whole time did every worker read as fast as it can. The result
    is the mean over such times, in which the newest has a weight of a fifth. At any other time the observed rate is a
    lower bound. A window in which the number of workers changed is not measured.

    Returns:
        Records per second, or the value of the state if there was no measurement.
    """
    over_s = GateSettings().rate_s
    seen, known = view.window, state.worker_rate
    begin = int(np.searchsorted(seen.times_s, seen.now_s - over_s))
    settled = state.changed_s is None or seen.now_s - state.changed_s > over_s + _SETTLED_S
    if not settled or len(seen.times_s) - begin < 3 or seen.now_s - seen.times_s[0] < over_s:  # noqa: PLR2004 -- a rate
        return known
    sample = float(view.leaving.sum()) / max(state.workers, 1)
    gap = np.diff(seen.times_s[begin:]).max()
    behind = view.flowing & (view.lag > view.arriving * gap)
    behind &= (seen.end[begin:] > seen.committed[begin:]).all(axis=0)
    if sample <= 0 or np.count_nonzero(behind) < _MOST * seen.partitions:
        return known if known is None else max(known, sample)
    return sample if known is None else (1 - _SMOOTHING) * known + _SMOOTHING * sample
