"""The contract of static, Redis and Kafka membership: which agents are live."""

import logging
import os
import socket
import threading
import time
import uuid
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from enum import Enum
from typing import Any, Final, Protocol, Self

from assignors.errors import FleetError
from assignors.fleet.agents_view import Agent, View

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


class ThreadedMembers:
    """What the memberships with a server share: the state, the thread that keeps it, and leaving.

    Args:
        server: part of the thread's name.
        agent: this agent.
        session: times.
        witness: whether any other server answers.
    """

    def __init__(self, server: str, agent: Agent, session: Session | None, witness: Witness | None) -> None:
        self._agent = agent
        self._session = session or Session()
        self._witness = witness
        self._cell = StateCell()
        self._process = f"{socket.gethostname()}:{os.getpid()}:{uuid.uuid4().hex[:12]}"
        self._ended = threading.Event()
        self._woken = threading.Event()  # ends the pause of the thread
        self._thread_name = f"fleet-{server}"
        self._thread: threading.Thread | None = None

    def start(self) -> Self:
        """Start joining; a second call has no effect."""
        if self._thread is None:
            self._thread = threading.Thread(target=self._run, name=self._thread_name, daemon=True)
            self._thread.start()
        return self

    def state(self) -> Membership:
        """The current state."""
        return self._cell.state

    def wait(self, seen: Membership, timeout_s: float) -> Membership:
        """Wait for a change."""
        return self._cell.wait(seen, timeout_s)

    def close(self) -> None:
        """Leave."""
        if self._ended.is_set():
            return
        self._ended.set()
        self._woken.set()
        if self._thread is not None:
            self._thread.join()
        self._leave()
        self._cell.change(standing=Standing.LEFT, reason="closed")

    def _run(self) -> None:
        """Keep the membership until `_ended`."""
        raise NotImplementedError

    def _leave(self) -> None:
        """Leave on the server, after the thread has ended; also called if there was none."""
        raise NotImplementedError

    def _note(self, standing: Standing, reason: str) -> None:
        """Set the standing, and log the reason of a new one."""
        state = self._cell.state
        if (state.standing, bool(state.reason)) != (standing, True):
            logging.getLogger(type(self).__module__).warning("fleet: agent %r: %s", self._agent.id, reason)
        self._cell.change(standing=standing, reason=reason)


class StaticMembers:
    """A fleet from the configuration: all agents are always live, in one view.

    Args:
        agent: this agent; must be listed.
        fleet: all agents.

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
        """The current state of the membership."""
        return self._cell.state

    def wait(self, seen: Membership, timeout_s: float) -> Membership:
        """Wait for a change, which never comes."""
        return self._cell.wait(seen, timeout_s)

    def declare(self, settings: tuple[str, ...]) -> None:
        """Ignored: a static view has no settings, and nothing informs the others."""

    def observe(self) -> Membership:
        """The same view."""
        return Membership(view=self._view, standing=Standing.MEMBER)

    def close(self) -> None:
        """Leave. Other agents do not learn of it."""
        self._cell.change(standing=Standing.LEFT, reason="closed")


def without_server(standing: Standing) -> str:
    """Say what an agent with this standing does while the membership's server does not answer."""
    return "the last view stays" if standing is Standing.UNREACHABLE else "no other server does either: stopping"


def _same(one: Membership, other: Membership) -> bool:
    return (one.view, one.standing, one.reason) == (other.view, other.standing, other.reason)
