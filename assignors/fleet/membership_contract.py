"""Who lives, as agents tell each other: the contract that static, Redis and Kafka membership keep."""

import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from enum import Enum
from typing import Any, Final, Protocol, Self

from assignors.errors import FleetError
from assignors.fleet.agents_view import Agent, View

_LONGEST_S: Final = 1800.0  # what brokers allow at most by default, group.max.session.timeout.ms

Witness = Callable[[], bool]
"""Whether anything else of the world still answers, such as the clusters that are read."""


class Standing(Enum):
    """How an agent stands in its fleet."""

    JOINING = "joining"
    MEMBER = "member"
    UNREACHABLE = "unreachable"
    """The membership's server does not answer, others do: go on with the last view."""
    ISOLATED = "isolated"
    """Nothing answers: stop before the others count this agent out."""
    REFUSED = "refused"
    """Another living process has this agent's id."""
    LEFT = "left"


@dataclass(frozen=True, slots=True, kw_only=True)
class Membership:
    """What an agent knows of its fleet.

    Attributes:
        view: the newest one; None before the first.
        standing: of this agent.
        reason: in words where the standing is neither MEMBER nor JOINING.
        beats: seconds since the last sign of life by agent, as the server counts; empty where it does not say.
    """

    view: View | None = None
    standing: Standing = Standing.JOINING
    reason: str = ""
    beats: Mapping[str, float] = field(default_factory=dict)

    @property
    def reads(self) -> bool:
        """Whether the agent should read: it has a view, and is neither alone in the dark nor somebody's double."""
        return self.view is not None and self.standing in {Standing.MEMBER, Standing.UNREACHABLE}


class Members(Protocol):
    """Membership of one agent in one fleet.

    Contract:
    * `start` returns at once; joining, keeping and joining again go on in threads of the implementation until `close`.
      No failure of the server ends them.
    * `state` never blocks. Views are values; versions of one fleet only grow, and equal versions are equal views.
    * A join is in the next view. An agent without a sign of life is removed after the session. The session ends with
      a grace of two beats in which the agent is still counted: one lost beat moves nothing.
    * An agent that reaches neither the server nor, as the witness says, anything else is ISOLATED before that: it stops
      itself before the others count it out. With the server alone gone the last view stays.
    * Of two living processes with one id one is REFUSED, until the other is gone.
    * `close` leaves: the next view of the others is without this agent. It may be called twice.
    """

    def start(self) -> Self:
        """Begin to join."""
        ...

    def state(self) -> Membership:
        """What is known now."""
        ...

    def wait(self, seen: Membership, timeout_s: float) -> Membership:
        """Wait up to this long for another view, standing or reason than those seen, and return what is known then."""
        ...

    def observe(self) -> Membership:
        """Ask who lives without joining; works before `start` too.

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
        session_s: after this long without a sign of life an agent is removed.

    Raises:
        FleetError: not above 0, or more than half an hour.
    """

    session_s: float = 10.0

    def __post_init__(self) -> None:
        if not 0 < self.session_s <= _LONGEST_S:
            raise FleetError(f"session_s={self.session_s!r}, need seconds above 0, and {_LONGEST_S:.0f} at most")

    @property
    def beat_s(self) -> float:
        """Between two signs of life."""
        return self.session_s / 5

    @property
    def grace_s(self) -> float:
        """Two beats, in which a silent agent is still counted."""
        return 2 * self.beat_s

    @property
    def lease_s(self) -> float:
        """After this long without an answer an agent asks the witness; the rest of the session is the grace."""
        return self.session_s - self.grace_s

    def standing(self, silent_s: float, witness: Witness | None) -> Standing:
        """The standing of an agent whose last answer is this old.

        Args:
            silent_s: since the last sign of life that was answered was *sent*, by this process's steady clock.
            witness: asked only when the lease is over; None knows of nothing else that answers.
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
        """What is known now."""
        return self._state

    def change(self, **values: Any) -> None:  # noqa: ANN401 - attributes of Membership
        """Set attributes; a view older than the one known is passed over."""
        with self._changed:
            view, known = values.get("view"), self._state.view
            if view is not None and known is not None and view.version < known.version:
                del values["view"]
            self._state = replace(self._state, **values)
            self._changed.notify_all()

    def wait(self, seen: Membership, timeout_s: float) -> Membership:
        """Wait for a change of view, standing or reason; beats alone are none."""
        deadline = time.monotonic() + timeout_s
        with self._changed:
            while _same(self._state, seen) and (left := deadline - time.monotonic()) > 0:
                self._changed.wait(left)
            return self._state


class StaticMembers:
    """A fleet that is written down: all agents live, for ever, in one view.

    Args:
        agent: this one; must be listed.
        fleet: all of them.

    Raises:
        FleetError: the agent is not listed, or one is listed twice.
    """

    def __init__(self, agent: Agent, fleet: tuple[Agent, ...]) -> None:
        self._cell = StateCell()
        self._view = View(fleet, 1)
        if agent.id not in self._view.ids:
            raise FleetError(f"agent {agent.id!r} is none of the static members {list(self._view.ids)}: add it")

    def start(self) -> Self:
        """Take the view."""
        self._cell.change(view=self._view, standing=Standing.MEMBER)
        return self

    def state(self) -> Membership:
        """What is known now."""
        return self._cell.state

    def wait(self, seen: Membership, timeout_s: float) -> Membership:
        """Wait for a change, which never comes."""
        return self._cell.wait(seen, timeout_s)

    def observe(self) -> Membership:
        """The same view."""
        return Membership(view=self._view, standing=Standing.MEMBER)

    def close(self) -> None:
        """Leave; the others do not notice, because nothing informs them."""
        self._cell.change(standing=Standing.LEFT, reason="closed")


def _same(one: Membership, other: Membership) -> bool:
    return (one.view, one.standing, one.reason) == (other.view, other.standing, other.reason)
