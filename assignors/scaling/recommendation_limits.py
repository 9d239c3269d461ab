"""Limits after a policy: each takes a number and returns one, with a reason if it changed the number."""

import math
from dataclasses import dataclass
from typing import Protocol

from assignors.errors import LimitsError
from assignors.scaling.policy_contract import Proposal, State
from assignors.scaling.stalled_lag import View


class Limit(Protocol):
    """Limits a number.

    Contract: pure; returns the wanted number, with an empty reason, if the limit does not apply.
    """

    @property
    def remembers_s(self) -> float:
        """The age up to which it reads `State.wanted`."""
        ...

    def apply(self, wanted: int, view: View, state: State) -> Proposal:
        """Limit `wanted`, the number so far."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Bounds:
    """The smallest and the largest number.

    Attributes:
        least, most: workers; `most` None for no bound.
    """

    least: int = 1
    most: int | None = None
    remembers_s: float = 0.0

    def __post_init__(self) -> None:
        if self.least < 1:
            raise LimitsError(f"min_workers={self.least}, need 1 or more")
        if self.most is not None and self.most < self.least:
            raise LimitsError(f"min_workers={self.least} is above max_workers={self.most}: no number fits")

    def apply(self, wanted: int, view: View, state: State) -> Proposal:  # noqa: ARG002 -- as in the contract
        """As in `Limit`."""
        if wanted < self.least:
            return Proposal(workers=self.least, reason=f"at least {self.least}")
        if self.most is not None and wanted > self.most:
            return Proposal(workers=self.most, reason=f"at most {self.most}")
        return Proposal(workers=wanted, reason="")


@dataclass(frozen=True, slots=True, kw_only=True)
class UsablePartitions:
    """No more workers than partitions with records to read.

    This limit does not remove current workers, because a quiet minute must not end workers. If no partition of a topic
    flows, its need is unknown, so no worker is added.
    """

    remembers_s: float = 0.0

    def apply(self, wanted: int, view: View, state: State) -> Proposal:
        """As in `Limit`."""
        most = max(view.usable, state.workers, 1)
        if wanted <= most:
            return Proposal(workers=wanted, reason="")
        return Proposal(workers=most, reason=f"{view.usable} partitions can use a worker")


@dataclass(frozen=True, slots=True, kw_only=True)
class Step:
    """The largest change at once.

    Attributes:
        up, down: workers; None for any number.
        up_factor: multiplying the workers by this factor is always allowed (Kubernetes: double, or 4 more).
    """

    up: int | None = None
    down: int | None = None
    up_factor: float = 1.0
    remembers_s: float = 0.0

    def __post_init__(self) -> None:
        for name in ("up", "down"):
            value = getattr(self, name)
            if value is not None and value < 1:
                raise LimitsError(f"step_{name}={value}, need 1 or more: no change could ever be made")

    def apply(self, wanted: int, view: View, state: State) -> Proposal:  # noqa: ARG002 -- as in the contract
        """As in `Limit`."""
        now = state.workers
        if self.up is not None and wanted > (most := max(now + self.up, math.floor(now * self.up_factor))):
            return Proposal(workers=most, reason=f"{most - now} more at once")
        if self.down is not None and wanted < now - self.down:
            return Proposal(workers=now - self.down, reason=f"{self.down} fewer at once")
        return Proposal(workers=wanted, reason="")


@dataclass(frozen=True, slots=True, kw_only=True)
class CoolDown:
    """No change too soon after the last one.

    Attributes:
        up_s: time before more workers.
        down_s: time before fewer workers.
    """

    up_s: float = 0.0
    down_s: float = 0.0
    remembers_s: float = 0.0

    def __post_init__(self) -> None:
        if not (self.up_s >= 0 and self.down_s >= 0):
            raise LimitsError(f"cool-down: up {self.up_s!r} s and down {self.down_s!r} s, need 0 or more")

    def apply(self, wanted: int, view: View, state: State) -> Proposal:
        """As in `Limit`."""
        if state.changed_s is None or wanted == state.workers:
            return Proposal(workers=wanted, reason="")
        # A clock that jumped back must not block changes of a topic forever.
        since = view.window.now_s - state.changed_s
        wait = self.up_s if wanted > state.workers else self.down_s
        if 0 <= since < wait:
            return Proposal(workers=state.workers, reason=f"changed {since:.0f} s ago, {wait:g} s must pass")
        return Proposal(workers=wanted, reason="")


@dataclass(frozen=True, slots=True, kw_only=True)
class Confirmed:
    """A change only after a number of consecutive equal decisions (DS2's activation time).

    Attributes:
        times: consecutive decisions, including this one.
    """

    times: int = 2
    remembers_s: float = 3600.0

    def apply(self, wanted: int, view: View, state: State) -> Proposal:  # noqa: ARG002 -- as in the contract
        """As in `Limit`."""
        last = [number for _, number in state.wanted[-(self.times - 1) :]] if self.times > 1 else []
        if wanted == state.workers or (len(last) == self.times - 1 and all(number == wanted for number in last)):
            return Proposal(workers=wanted, reason="")
        return Proposal(workers=state.workers, reason=f"{self.times} decisions in a row must ask for it")


@dataclass(frozen=True, slots=True, kw_only=True)
class DownWindow:
    """Not fewer than the largest number wanted within a time (Kubernetes: the stabilisation window).

    Attributes:
        window_s: length of that time.
    """

    window_s: float = 300.0

    def __post_init__(self) -> None:
        if not self.window_s >= 0:
            raise LimitsError(f"down_window_s={self.window_s!r}, need 0 or more")

    @property
    def remembers_s(self) -> float:
        """As in `Limit`."""
        return self.window_s

    def apply(self, wanted: int, view: View, state: State) -> Proposal:
        """As in `Limit`."""
        if wanted >= state.workers:
            return Proposal(workers=wanted, reason="")
        begin = view.window.now_s - self.window_s
        largest = max((number for time, number in state.wanted if time >= begin), default=wanted)
        held = min(max(wanted, largest), state.workers)
        reason = f"{held} were wanted within the last {self.window_s:g} s" if held > wanted else ""
        return Proposal(workers=held, reason=reason)
