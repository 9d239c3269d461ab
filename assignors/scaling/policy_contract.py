"""The contract of policies, with their input and output values."""

from dataclasses import dataclass
from typing import Protocol

from assignors.scaling.stalled_lag import View


@dataclass(frozen=True, slots=True, kw_only=True)
class Proposal:
    """The result of a policy or of a limit.

    Attributes:
        workers: number that the topic should have.
        reason: the reason, in one sentence with the figures.
    """

    workers: int
    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class State:
    """The state that a decision passes to the next one.

    Attributes:
        workers: current number of the topic.
        changed_s: time of its last change; None before the first change.
        wanted: the policy's numbers with their times, the oldest first, for the time that the limits need.
        worker_rate: measured records per second of one worker; None before the first measurement.
    """

    workers: int = 1
    changed_s: float | None = None
    wanted: tuple[tuple[float, int], ...] = ()
    worker_rate: float | None = None


class Policy(Protocol):
    """Chooses a number of workers.

    Contract:
    * Pure: the result depends only on the view (a window of observations), the state and the policy's settings.
    * It never fails on a view: if it cannot decide, it keeps the number, and the reason says so.
    * It has no limits; `Limit`s come after it. The number may be 0 or absurdly high.
    """

    @property
    def name(self) -> str:
        """The policy's name in settings and reports."""
        ...

    def propose(self, view: View, state: State) -> Proposal:
        """Return the number of workers that the topic should have now, with the reason."""
        ...
