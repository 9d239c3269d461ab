"""What the memberships with a server share: the state, the thread that keeps it, and leaving."""

import logging
import os
import socket
import threading
import uuid
from typing import Self

from assignors.fleet.agents_view import Agent
from assignors.fleet.membership_contract import Membership, Session, Standing, StateCell, Witness


class ServerMembers:
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


def without_server(standing: Standing) -> str:
    """Say what an agent with this standing does while the membership's server does not answer."""
    return "the last view stays" if standing is Standing.UNREACHABLE else "no other server does either: stopping"
