"""The contract of policies, and the values that go in and out."""

from dataclasses import dataclass
from typing import Protocol

from assignors.scaling.lag_gate import View


@dataclass(frozen=True, slots=True, kw_only=True)
class Proposal:
    """What a policy, or a limit, says.

    Attributes:
        workers: how many the topic should have.
        reason: why, in one sentence with the figures.
    """

    workers: int
    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class State:
    """What a decision leaves to the next one.

    Attributes:
        workers: how many the topic has.
        changed_s: when that was last changed; None before the first change.
        wanted: what the policy asked for, with the times, the oldest first; as far back as the limits look.
        worker_rate: measured records per second of one worker; None while nothing was measured.
    """

    workers: int = 1
    changed_s: float | None = None
    wanted: tuple[tuple[float, int], ...] = ()
    worker_rate: float | None = None


class Policy(Protocol):
    """Chooses a number of workers.

    Contract:
    * Pure: the answer depends on the view (a window of observations), the state and the policy's own settings only.
    * Never fails on a view: what it cannot judge, it leaves as it is, and says so.
    * Knows no limits; `Limit`s come after it. The number may be 0 or absurdly high.
    """

    @property
    def name(self) -> str:
        """Under which it is configured and reported."""
        ...

    def propose(self, view: View, state: State) -> Proposal:
        """Say how many workers the topic should have now, and why."""
        ...
