"""Holds the number of workers at the largest one wanted lately, so that it does not follow every dip of the lag."""

from dataclasses import dataclass

from assignors.errors import LimitsError
from assignors.scaling.policy_contract import Proposal, State
from assignors.scaling.stalled_lag import View


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
