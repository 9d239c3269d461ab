"""The published rule of thresholds: steps by the lag and its trend, scaled by the time that retention leaves."""

from dataclasses import dataclass

import numpy as np

from assignors.errors import LimitsError
from assignors.scaling.lag import lag_records
from assignors.scaling.policy_contract import Proposal, State
from assignors.scaling.stalled_lag import View


@dataclass(frozen=True, slots=True, kw_only=True)
class Thresholds:
    """Steps by the lag and its trend; retention makes steps up larger and steps down smaller.

    The trend is the slope of a straight line fitted to the lag by least squares. A topic gets more workers if its lag
    is above `max_lag` and rises, and fewer if little waits, or if its lag falls sharply.

    Let used be the fraction of the retention that the oldest unread record has used up. Up to `retention_begin` a step
    up is `step`; from there it grows in proportion, and is `retention_step` from 1 - `retention_part` on. There it
    needs neither a high nor a rising lag. A step down is (1 - used) x `step_down`, rounded: with half of the retention
    used up, a single worker stays.

    Attributes:
        min_lag, max_lag: records of the whole topic: below `min_lag` little waits.
        step: workers to add at once.
        step_down: workers to remove at once.
        falling_s: the lag falls sharply if it is gone within this time at its current pace; 0 for never.
        trend_s: the trend covers this time; None for the whole window.
        retention_begin: used fraction of the retention up to which a step up is `step`.
        retention_part: if less than this fraction of the retention is left, add `retention_step` workers.
        retention_s: the topic's retention; None if it is unlimited.
        retention_step: workers to add at once in that case; `step` if that is larger.

    Source: the rule that Hevo Data published for its Kafka integration in 2021.
    """

    min_lag: int = 30_000
    max_lag: int = 150_000
    step: int = 1
    step_down: int = 1
    falling_s: float = 60.0
    trend_s: float | None = None
    retention_begin: float = 0.25
    retention_part: float = 0.25
    retention_s: float | None = None
    retention_step: int = 4

    def __post_init__(self) -> None:
        for name in ("max_lag", "step", "step_down", "retention_step"):
            if not getattr(self, name) > 0:
                raise LimitsError(f"thresholds: {name}={getattr(self, name)!r}, need more than 0")
        if not 0 <= self.min_lag < self.max_lag:
            raise LimitsError(
                f"thresholds: min_lag={self.min_lag} must be below max_lag={self.max_lag}, and not below 0"
            )
        if not self.falling_s >= 0:
            raise LimitsError(f"thresholds: falling_s={self.falling_s!r}, need 0 or more")
        if self.trend_s is not None and not self.trend_s > 0:
            raise LimitsError(f"thresholds: trend_s={self.trend_s!r}, need more than 0")
        for name in ("retention_begin", "retention_part"):
            if not 0 <= getattr(self, name) <= 1:
                raise LimitsError(f"thresholds: {name}={getattr(self, name)!r}, need 0 to 1")
        if self.retention_begin + self.retention_part > 1:
            raise LimitsError(
                f"thresholds: retention_begin={self.retention_begin:g} and retention_part={self.retention_part:g} "
                "are more than the whole retention"
            )

    @property
    def name(self) -> str:
        """The policy's name in settings and reports."""
        return "thresholds"

    def propose(self, view: View, state: State) -> Proposal:
        """As in `Policy`."""
        lag, now, used = view.lag_total, state.workers, self._used(view)
        up = self.step_up(used)
        if self.retention_s and view.deadline_s < self.retention_part * self.retention_s:
            reason = f"retention deletes unread records in {view.deadline_s:.0f} s: {up} more"
            return Proposal(workers=now + up, reason=reason)
        trend = slope(view, self.trend_s)
        said = f"lag of {lag} records, {trend:+.1f} a second"
        if used:
            said += f", {used:.0%} of the retention used up"
        if lag > self.max_lag and trend > 0:
            return Proposal(workers=now + up, reason=f"{said}, above {self.max_lag} and rising")
        little, falls = lag < self.min_lag, lag + trend * self.falling_s <= 0 and trend < 0
        if not (little or falls):
            return Proposal(workers=now, reason=f"{said}: no reason to change")
        why = f"below {self.min_lag}" if little else f"gone within {self.falling_s:g} s at this pace"
        down = round((1 - used) * self.step_down)
        if not down:
            return Proposal(workers=now, reason=f"{said}: {why}, but too near to the retention for fewer")
        return Proposal(workers=max(now - down, 1), reason=f"{said}, {why}")

    def step_up(self, used: float) -> int:
        """Return the workers to add at once, when this fraction of the retention is used up."""
        most = max(self.step, self.retention_step)
        span = 1 - self.retention_part - self.retention_begin
        part = (used - self.retention_begin) / span if span > 0 else float(used >= self.retention_begin)
        return self.step + round((most - self.step) * min(max(part, 0.0), 1.0))

    def _used(self, view: View) -> float:
        if not self.retention_s:
            return 0.0
        return min(max(1 - view.deadline_s / self.retention_s, 0.0), 1.0)


def slope(view: View, over_s: float | None = None) -> float:
    """Fit a straight line to the lag of the flowing partitions.

    Args:
        view: the topic.
        over_s: time before the last observation that the line covers; None for the whole window.

    Returns:
        Records per second; 0 without two observations.
    """
    seen, use = view.window, view.flowing
    begin = 0 if over_s is None else int(np.searchsorted(seen.times_s, seen.now_s - over_s - 1e-6))
    begin = max(min(begin, len(seen.times_s) - 2), 0)
    if len(seen.times_s) < 2 or not use.any():  # noqa: PLR2004 -- a line needs two points
        return 0.0
    lag = lag_records(seen.start[begin:, use], seen.end[begin:, use], seen.committed[begin:, use])
    known = (lag >= 0).all(axis=1)
    times, total = seen.times_s[begin:][known], lag[known].sum(axis=1)
    if len(times) < 2:  # noqa: PLR2004 -- a line needs two points
        return 0.0
    times = times - times.mean()
    return float((times * (total - total.mean())).sum() / (times**2).sum())
