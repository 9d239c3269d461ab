"""The default policy: enough workers to read backlog and arrivals before their deadline."""

import functools
import math
import statistics
from dataclasses import dataclass
from typing import Final

import numpy as np

from assignors.errors import LimitsError
from assignors.scaling.lag import lag_seconds, per_second
from assignors.scaling.observation import F64
from assignors.scaling.policy_contract import Proposal, State
from assignors.scaling.retention import rescue
from assignors.scaling.stalled_lag import PartitionState, View

REBALANCE_S: Final = 8.0
"""Time without a record from some partition at a change, on real brokers: 2 to 8 s if members revoke all partitions,
else 3 to 4 s for the moved partitions (14 changes, 32 partitions, 6 members, the clients' default times)."""
# A worker's rate can be measured after this time without a change; a change within that time would distort it.
_MEASURE_S = 420.0
# Parts of the trend's time: five minutes each, so that the noise of one part does not bend the line.
_PARTS = 24
_TIMES = ("slo_s", "rebalance_s", "drain_s", "ahead_s", "shortfall", "price_s", "up_rate_s", "down_rate_s", "trend_s")


@dataclass(frozen=True, slots=True, kw_only=True)
class Capacity:
    """The number of workers from a balance of work and time.

    Let u be the records per second of a worker, and T the shorter of the objective and the time that retention leaves.
    Then a worker reads C = u T records before the deadline. The policy needs

        lag / C  +  rate R / C  +  rate / u

    workers: for the backlog, for the records that arrive during the rebalance of a change (R seconds), and for later
    arrivals. Workers hold whole partitions, so the number is rounded up to one at which the worker with the most
    partitions can read its part. A backlog younger than the objective does not get older while the group reads as fast
    as records arrive. So reading it may take `drain_s`: more workers would be superfluous soon afterwards.

    The number changes only if needed, not whenever noise crosses a boundary. It rises if the oldest unread record, at
    its current pace of ageing, would use up a part of T within `ahead_s`. It falls if, by the equation over a longer
    time, fewer workers are enough, and stay enough until the change has paid. A small change needs longer than a large
    one, so a dip in a rising load removes no worker, and the end of a burst soon does.

    Attributes:
        slo_s: largest age of an unread record.
        rebalance_s: seconds without reading that a change costs.
        retention_part: usable fraction of the time until retention deletes the oldest unread record.
        patience: the part of T that the oldest unread record may use up.
        drain_s: time to read the backlog while all of it is younger than T; at most the time that retention allows.
        ahead_s: time for which the age is projected.
        shortfall: the capacity of fewer workers may be too small by at most this fraction of the arrivals, and by no
            more than uses up the patience in the time for which they must be enough. Workers hold whole partitions, so
            one more worker for a while then costs less than one more all the time.
        price_s: a change to fewer must save its price: the fraction of the workers that it saves, times the duration of
            the current number, must reach this many seconds. And along the trend, fewer workers must be enough until
            the change has paid twice, for itself and for the change that reverts it.
        up_rate_s: time over which the rate is measured for more workers.
        down_rate_s: time over which the rate is measured for fewer workers.
        trend_s: the trend covers the past for twice this time, and the future for at most twice this time.
    """

    slo_s: float = 300.0
    rebalance_s: float = REBALANCE_S
    retention_part: float = 0.5
    patience: float = 0.55
    drain_s: float = 600.0
    ahead_s: float = 150.0
    shortfall: float = 0.03
    price_s: float = 700.0
    up_rate_s: float = 60.0
    down_rate_s: float = 600.0
    trend_s: float = 3600.0

    def __post_init__(self) -> None:
        for name in _TIMES:
            if not getattr(self, name) >= 0:
                raise LimitsError(f"capacity: {name}={getattr(self, name)!r}, need 0 or more")
        for name in ("retention_part", "patience"):
            if not 0 < getattr(self, name) <= 1:
                raise LimitsError(f"capacity: {name}={getattr(self, name)!r}, need more than 0, 1 at most")
        if not self.slo_s > self.rebalance_s:
            raise LimitsError(
                f"capacity: slo_s={self.slo_s:g} is not above rebalance_s={self.rebalance_s:g}: "
                "no change could be made within the objective"
            )

    @property
    def name(self) -> str:
        """The policy's name in settings and reports."""
        return "capacity"

    def propose(self, view: View, state: State) -> Proposal:
        """As in `Policy`."""
        rate = view.worker_rate
        if not view.moving.any():
            return Proposal(workers=state.workers, reason="no partition flows, so nothing says how many would help")
        if rate is None:
            return self._without_rate(view, state)
        proposal = self._in_time(view, state, rate)
        kept = rescue(view, rate, self.retention_part)
        if kept <= proposal.workers:
            return proposal
        hot = int(view.lag[view.states == PartitionState.HOT].max())
        return Proposal(
            workers=kept,
            reason=f"{_chosen(kept)}: {hot} records wait in a partition too hot for one worker, whose reader must hold "
            f"fewer others, or retention deletes some unread; {proposal.workers} would do for all else",
        )

    def _in_time(self, view: View, state: State, rate: float) -> Proposal:
        deadline_s = min(self.slo_s, self.retention_part * view.deadline_s)
        if deadline_s <= self.rebalance_s:
            return Proposal(workers=view.usable, reason=f"retention deletes unread records in {view.deadline_s:.0f} s")
        seen = view.window
        soon = np.maximum(view.arriving, per_second(seen.end, seen.times_s, self.up_rate_s))
        worst = self.projected_age_s(view, soon, rate)
        if worst > self.patience * deadline_s:
            oldest_s = view.lag_s[view.flowing].max(initial=0.0)
            drain_s = deadline_s
            if oldest_s < deadline_s:
                drain_s = max(min(self.drain_s, self.retention_part * view.deadline_s), deadline_s)
            needed = self.demand(view, soon, drain_s, pause_s=self.rebalance_s)
            more = workers_for(needed, rate)
            late = oldest_s > self.patience * deadline_s
            if more <= state.workers and late and self.ageing(view) > 0:
                # The rates show enough workers, but the age does not: some worker has more than its share.
                more = _next_useful(state.workers, view.usable)
            more = max(more, state.workers)
            return Proposal(workers=more, reason=self._reason(view, needed, drain_s, more))
        fewer, needed, ahead_s = self._fewer(view, state, deadline_s, rate)
        promised = f"; for what the trend brings in {ahead_s / 60:.0f} min, when it would have paid" if ahead_s else ""
        # Without it the sentence of a burst contradicts itself: it keeps one worker, and names a demand of several.
        above = needed.sum() > fewer * rate
        calm = f"; more only if a record would soon be {self.patience * deadline_s:.0f} s old" if above else ""
        return Proposal(workers=fewer, reason=self._reason(view, needed, deadline_s, fewer) + promised + calm)

    def projected_age_s(self, view: View, arriving: F64, rate: float) -> float:
        """Project the age of the oldest unread record in `ahead_s` without a change, in seconds.

        The age grows by a second per second without a reader, and by 1 - u / load at an overloaded worker. The result
        is the larger of the ageing computed from loads and the observed ageing, because the assignment is not known
        here.
        """
        use = view.flowing
        age = float(view.lag_s[use].max(initial=0.0))
        busy = arriving[view.moving & (arriving > 0)]
        load = float(np.ceil(len(busy) / view.workers) * busy.mean()) if len(busy) else 0.0
        growing = 1.0 - rate / load if load > rate else 0.0
        growing = max(growing, self.ageing(view))
        return age + min(growing, 1.0) * self.ahead_s

    def demand(self, view: View, arriving: F64, deadline_s: float, pause_s: float) -> F64:
        """Return the records per second to be read from each partition, shape (P,)."""
        lag = np.where(view.flowing, view.lag, 0)
        work = lag / deadline_s + arriving * (pause_s / deadline_s + 1.0)
        if view.flowing.any() and not view.flowing.all():
            # A partition that does not flow needs a reader like any other, but its backlog needs no more workers.
            fair = float(np.mean(work[view.flowing]))
            work = np.where(view.flowing, work, np.minimum(arriving, fair))
        return work

    def ageing(self, view: View) -> float:
        """Return the observed ageing of the oldest unread record per second; below 0 while the group catches up."""
        use, seen = view.flowing, view.window
        age = float(view.lag_s[use].max(initial=0.0))
        then = int(np.searchsorted(seen.times_s, seen.now_s - self.up_rate_s - 1e-6))
        if age <= 0 or then >= len(seen.times_s) - 1:
            return 0.0
        before, _ = lag_seconds(seen.until(then))
        return (age - float(before[use].max(initial=0.0))) / (seen.now_s - float(seen.times_s[then]))

    def _fewer(self, view: View, state: State, deadline_s: float, rate: float) -> tuple[int, F64, float]:
        """Return the smallest number that is enough until it has paid; the current one if there is none below it.

        Returns:
            Workers; the records per second to be read from each partition for this number; and the seconds for which
            the trend was extended.
        """
        seen = view.window
        # The rate of the longer time: the lower of two rates would follow each dip.
        calm = np.maximum(view.arriving, per_second(seen.end, seen.times_s, self.down_rate_s))
        stood_s = np.inf if state.changed_s is None else abs(seen.now_s - state.changed_s)
        level, slope = self._trend(view)
        needed, ahead_s = self.demand(view, calm, deadline_s, pause_s=0.0), 0.0
        fewer = 1
        while True:
            saved = 1 - fewer / state.workers
            if saved <= 0 or saved * stood_s < self.price_s:
                return state.workers, needed, ahead_s
            # A smaller saving needs longer to pay. In that time more records may arrive, and the backlog of a slightly
            # overloaded worker gets older.
            ahead_s = min(2 * self.price_s / saved, 2 * self.trend_s)
            grown = min(max(level + slope * ahead_s, 1.0), 2.0)
            short = min(self.shortfall, self.patience * deadline_s / max(ahead_s, 1.0))
            # The pause needs no workers: the records that arrive in it are much younger than the objective.
            needed = self.demand(view, calm * grown, deadline_s, pause_s=0.0) * (1 - short)
            enough = workers_for(needed, rate)
            if enough <= fewer:
                return fewer, needed, ahead_s
            fewer = enough

    def _trend(self, view: View) -> tuple[float, float]:
        """Return the current level of arrivals, and its rise per second, as fractions of their calm rate.

        It is the Theil-Sen line (1950, 1968) through the rates of equal parts of the last `2 trend_s`: a dip or a burst
        of less than a quarter of that time does not bend it. A falling line is not extended.
        """
        seen = view.window
        known = (seen.end >= 0).all(axis=0)
        part_s = 2 * self.trend_s / _PARTS
        parts = min(int((seen.now_s - float(seen.times_s[0]) + 1e-6) // part_s), _PARTS) if part_s else 0
        calm = float(per_second(seen.end[:, known], seen.times_s, self.down_rate_s).sum())
        if parts < 4 or calm <= 0:  # noqa: PLR2004 -- two points are always on a line
            return 1.0, 0.0
        total = seen.end[:, known].sum(axis=1)
        rates = np.diff(np.interp(seen.now_s - part_s * np.arange(parts, -1, -1), seen.times_s, total)) / part_s
        at = part_s * (np.arange(parts) - parts + 0.5)
        one, other = np.triu_indices(parts, 1)
        slope = float(np.median((rates[other] - rates[one]) / (at[other] - at[one])))
        return float(np.median(rates - slope * at)) / calm, max(slope, 0.0) / calm

    def _without_rate(self, view: View, state: State) -> Proposal:
        worst = float(view.lag_s[view.flowing].max(initial=0.0))
        since = float(view.window.times_s[0]) if state.changed_s is None else state.changed_s
        if worst > self.slo_s / 2 and view.window.now_s - since >= _MEASURE_S:
            more = min(state.workers + 1, max(view.usable, state.workers))
            return Proposal(workers=more, reason=f"{worst:.0f} s behind, and a worker's rate is not measured yet")
        return Proposal(workers=state.workers, reason="a worker's rate is not measured yet, and little waits")

    def _reason(self, view: View, needed: F64, deadline_s: float, workers: int) -> str:
        rate = view.worker_rate or math.inf
        return (
            f"{_chosen(workers)}: {view.lag_total} records wait and {view.arriving.sum():.0f} a second come; to read "
            f"them within {deadline_s:.0f} s takes {needed.sum():.0f} a second, and one worker reads {rate:.0f}"
        )


def _chosen(workers: int) -> str:
    return f"the policy chooses {workers} worker{'' if workers == 1 else 's'}"


def workers_for(work: F64, rate: float) -> int:
    """Return the smallest number of workers at which the worker with the most partitions can read its part.

    Partitions are distributed by count. So the heaviest part is about the mean of its partitions plus an excess by
    chance, because partitions differ: the expected largest sum of m out of P partitions, over the workers with m, or of
    m - 1, over the workers with m - 1, by the normal order statistic of Blom (1958). It is at most the sum of the m
    largest partitions, and at least the largest.

    Args:
        work: records per second to be read from each partition, shape (P,).
        rate: records per second that one worker reads, above 0.

    Returns:
        1 or more; at most P. Numbers that only make some workers idle are skipped, and a partition with too much for
        one worker counts as the capacity of one worker.
    """
    busy = np.minimum(work[work > 0], rate)
    count = len(busy)
    if not count:
        return 1
    mean, spread = float(busy.mean()), float(busy.std())
    numbers = np.arange(1, count + 1)
    most = np.ceil(count / numbers)
    # Drawn without replacement, so there is no variance if one worker has all partitions.
    finite = np.sqrt(np.maximum(count - most, 0) / max(count - 1, 1))
    with_most = (count - numbers * (most - 1)).astype(np.int64)
    chance = spread * np.sqrt(most) * finite * _largest_of(count)[with_most - 1]
    # Workers with one partition fewer are often many more, and then one of them is likely to have the heaviest part.
    rest = np.maximum(numbers - with_most, 1)
    finite = np.sqrt((count - most + 1) / max(count - 1, 1))
    others = (most - 1) * mean + spread * np.sqrt(most - 1) * finite * _largest_of(count)[rest - 1]
    largest = np.sort(busy)[::-1].cumsum()
    likely = np.maximum(most * mean + chance, others)
    heaviest = np.maximum(np.minimum(likely, largest[most.astype(np.int64) - 1]), largest[0])
    enough = np.flatnonzero(heaviest <= rate)
    return int(numbers[enough[0]]) if len(enough) else count


@functools.cache
def _largest_of(count: int) -> F64:
    """Return the expected largest of 1, 2, ... `count` standard normal numbers, shape (count,)."""
    normal = statistics.NormalDist()
    return np.array([normal.inv_cdf((k - 0.375) / (k + 0.25)) for k in range(1, count + 1)])


def _next_useful(workers: int, partitions: int) -> int:
    """Return the next number at which the worker with the most partitions has fewer, at most a quarter more."""
    most = math.ceil(partitions / max(workers, 1))
    if most <= 1:
        return workers
    return min(math.ceil(partitions / (most - 1)), workers + math.ceil(workers / 4))
