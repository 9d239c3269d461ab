"""The contract of static, Redis and Kafka membership: which agents are live."""

import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from enum import Enum
from typing import Any, Final, Protocol, Self

from assignors.errors import FleetError
from assignors.fleet.agents_view import View

_LONGEST_S: Final = 1800.0  # the brokers' default limit, group.max.session.timeout.ms

Witness = Callable[[], bool]
"""Returns whether any other server still answers, such as the clusters that are read."""


class Standing(Enum):
    """The membership state of an agent."""

    JOINING = "joining"
    MEMBER = "member"
    UNREACHABLE = "unreachable"
    """The membership's server does not answer, other servers do: continue with the last view."""
    ISOLATED = "isolated"
    """No server answers: stop before the others remove this agent."""
    REFUSED = "refused"
    """Another live process has this agent's id."""
    LEFT = "left"


@dataclass(frozen=True, slots=True, kw_only=True)
class Membership:
    """An agent's knowledge of its fleet.

    Attributes:
        view: the newest view; None before the first.
        standing: membership state of this agent.
        reason: explains a standing other than MEMBER and JOINING, or why an attempt to join has failed.
        heard_s: time of the server's last answer, seconds of a monotonic clock; None if it is not known.
        beats: seconds since the last heartbeat, by agent, on the server's clock; empty if it does not report them.
    """

    view: View | None = None
    standing: Standing = Standing.JOINING
    reason: str = ""
    heard_s: float | None = None
    beats: Mapping[str, float] = field(default_factory=dict)

    @property
    def reads(self) -> bool:
        """Whether the agent should read: it has a view, and is neither isolated nor refused."""
        return self.view is not None and self.standing in {Standing.MEMBER, Standing.UNREACHABLE}


class Members(Protocol):
    """Membership of one agent in one fleet.

    Contract:
    * `start` returns immediately; threads of the implementation join, keep the membership and rejoin until `close`. No
      failure of the server ends them.
    * `state` never blocks. Views are values; versions of one fleet only grow, and equal versions are equal views.
    * The next view includes a new agent. An agent without a sign of life is removed after the session. The session ends
      with a grace period of two beats in which the agent is still a member, so one lost beat moves no topic.
    * A failed attempt to join again changes nothing while other servers answer: the last view stays, with its age. Only
      after an error that a retry cannot fix, such as a missing right, the agent becomes ISOLATED.
    * An agent that reaches neither the server nor, according to the witness, any other server becomes ISOLATED, and
      stops, before the others remove it. If only the server is away, the last view stays.
    * `declare` replaces the settings that this agent declares; the next views contain them. Before `start` it waits for
      the first join.
    * Of two live processes with the same id one is REFUSED until the other is gone.
    * `close` leaves: the next view of the others is without this agent. A second call has no effect.
    """

    def start(self) -> Self:
        """Start joining."""
        ...

    def state(self) -> Membership:
        """The current state of the membership."""
        ...

    def wait(self, seen: Membership, timeout_s: float) -> Membership:
        """Wait at most `timeout_s` for a view, standing or reason that differs from `seen`, and return the state."""
        ...

    def declare(self, settings: tuple[str, ...]) -> None:
        """Declare these settings from now on; returns immediately."""
        ...

    def observe(self) -> Membership:
        """Request the live agents without joining; also possible before `start`.

        Raises:
            FleetError: the server does not answer.
        """
        ...

    def close(self) -> None:
        """Leave."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Session:
    """The times of a membership.

    Attributes:
        session_s: time without a sign of life after which an agent is removed.

    Raises:
        FleetError: not above 0, or more than half an hour.
    """

    session_s: float = 10.0

    def __post_init__(self) -> None:
        if not 0 < self.session_s <= _LONGEST_S:
            raise FleetError(f"session_s={self.session_s!r}, need seconds above 0, and {_LONGEST_S:.0f} at most")

    @property
    def beat_s(self) -> float:
        """Time between two signs of life."""
        return self.session_s / 5

    @property
    def grace_s(self) -> float:
        """Two beats, in which a silent agent is still a member."""
        return 2 * self.beat_s

    @property
    def lease_s(self) -> float:
        """Time without an answer after which an agent calls the witness; the rest of the session is the grace."""
        return self.session_s - self.grace_s

    def standing(self, silent_s: float, witness: Witness | None) -> Standing:
        """Return the standing of an agent by the age of its last answer.

        Args:
            silent_s: time since the last answered sign of life was *sent*, by this process's monotonic clock.
            witness: called only after the lease; None means that no other server answers.
        """
        if silent_s <= self.lease_s:
            return Standing.MEMBER
        return Standing.UNREACHABLE if witness is not None and witness() else Standing.ISOLATED


class StateCell:
    """The newest state, for all threads."""

    def __init__(self) -> None:
        self._changed = threading.Condition()
        self._state = Membership()

    @property
    def state(self) -> Membership:
        """The current state of the membership."""
        return self._state

    def change(self, **values: Any) -> None:  # noqa: ANN401 - attributes of Membership
        """Set attributes; a view older than the known one is ignored."""
        with self._changed:
            view, known = values.get("view"), self._state.view
            if view is not None and known is not None and view.version < known.version:
                del values["view"]
            self._state = replace(self._state, **values)
            self._changed.notify_all()

    def wait(self, seen: Membership, timeout_s: float) -> Membership:
        """Wait for a change of view, standing or reason; a change of only the times does not count."""
        deadline = time.monotonic() + timeout_s
        with self._changed:
            while _same(self._state, seen) and (left := deadline - time.monotonic()) > 0:
                self._changed.wait(left)
            return self._state


def _same(one: Membership, other: Membership) -> bool:
    return (one.view, one.standing, one.reason) == (other.view, other.standing, other.reason)
