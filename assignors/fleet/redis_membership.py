"""Membership through Redis: a key with a time to live for each agent, an index, the server's clock, and one script.

Every step runs as a script on the server. So the server computes each view once, and all agents see the same views.
"""

import importlib.resources
import json
import logging
import time
from dataclasses import replace
from typing import Any

from assignors.clients.masked_addresses import shown
from assignors.clients.redis_addresses import REDIS_ADDRESSES, close_redis, connect_redis
from assignors.errors import FleetError
from assignors.fleet.agents_view import Agent, View
from assignors.fleet.membership_contract import Membership, Session, Standing, Witness
from assignors.fleet.server_membership import ServerMembers, without_server

log = logging.getLogger(__name__)


class _ForeignError(Exception):
    """The server holds a value that is not a view: another program writes to the fleet's keys."""


class RedisMembers(ServerMembers):
    """Membership of one agent by Redis; the contract is that of `Members`.

    If the server has lost its data (flushed, restarted without it), the first agent to send a beat restores the newest
    view. All other agents get a new session to report again, so no topic moves. They also get a new session if the
    server returns with its data after a time without beats.

    Args:
        agent: this agent.
        url: in redis-py's format, or with Sentinels as `sentinel_address` reads it.
        fleet: name, so that several fleets can share a server.
        session: times.
        witness: whether any other server answers; called when this server does not.

    Raises:
        FleetError: redis-py is not installed, or the address is invalid.
    """

    def __init__(
        self,
        agent: Agent,
        url: str,
        fleet: str = "fleet",
        session: Session | None = None,
        witness: Witness | None = None,
    ) -> None:
        super().__init__("redis", agent, session, witness)
        self._address = shown(url)  # for the page and the log
        # The braces keep all keys of a fleet on one server of a Redis cluster.
        self._index = f"azimuth:{{{fleet}}}:index"
        self._beat = f"azimuth:{{{fleet}}}:beat:{agent.id}"
        self._client, self._error, self._answered = _connect(url, min(self._session.beat_s, 2.0))
        source = importlib.resources.files("assignors.fleet").joinpath("redis_membership.lua").read_text()
        self._script = self._client.register_script(source)

    def declare(self, settings: tuple[str, ...]) -> None:
        """Declare these settings with the next beat, which is sent now."""
        self._agent = replace(self._agent, settings=settings)
        self._woken.set()

    def observe(self) -> Membership:
        """Request the live agents; writes nothing.

        Raises:
            FleetError: the server does not answer.
        """
        try:
            view, _, beats = self._step("look")
        except self._error as error:
            raise FleetError(f"{self._says(error)}: {error}") from error
        return Membership(view=view, standing=self._cell.state.standing, beats=beats)

    def _leave(self) -> None:
        if self._thread is not None:
            try:
                self._step("leave")
            except self._error as error:
                log.warning("fleet: could not remove this agent from Redis: %s", error)
        close_redis(self._client)

    def _run(self) -> None:
        answered = time.monotonic()
        while not self._ended.is_set():
            self._woken.clear()
            sent = time.monotonic()
            try:
                view, owner, beats = self._step("beat")
            except self._error as error:
                self._miss(time.monotonic() - answered, error)
            else:
                answered = sent
                self._hear(view, owner, beats)
            if not self._ended.is_set():
                self._woken.wait(max(0.0, self._session.beat_s - (time.monotonic() - sent)))

    def _hear(self, view: View, owner: str, beats: dict[str, float]) -> None:
        before = self._cell.state.standing
        if owner:
            reason = f"agent id {self._agent.id!r} is in use by {owner.rpartition(':')[0]}"
            if before is not Standing.REFUSED:
                log.error("fleet: %s: waiting until it is gone; give each agent an id of its own", reason)
            self._cell.change(standing=Standing.REFUSED, reason=reason, heard_s=time.monotonic(), beats=beats)
            return
        if before not in {Standing.MEMBER, Standing.JOINING}:
            log.info("fleet: agent %r is a member again (it was %s)", self._agent.id, before.value)
        self._cell.change(view=view, standing=Standing.MEMBER, reason="", heard_s=time.monotonic(), beats=beats)

    def _miss(self, silent_s: float, error: Exception) -> None:
        state = self._cell.state
        if state.view is None:
            self._note(Standing.JOINING, f"{self._says(error)}: {error}")
            return
        standing = self._session.standing(silent_s, self._witness)
        if standing is not Standing.MEMBER:
            why = f" ({error})" if isinstance(error, self._answered) else ""
            self._note(standing, f"{self._says(error)}, {without_server(standing)}{why}")

    def _says(self, error: Exception) -> str:
        if isinstance(error, self._answered):
            return f"Redis at {self._address} does not keep the fleet's view, in key {self._index}"
        return f"Redis at {self._address} does not answer"

    def _step(self, operation: str) -> tuple[View, str, dict[str, float]]:
        known = self._cell.state.view
        answer: Any = self._script(
            keys=[self._index, self._beat],
            args=[
                operation,
                self._agent.id,
                json.dumps(self._agent.value()),
                self._process,
                int(self._session.lease_s * 1000),
                int(self._session.grace_s * 1000),
                "" if known is None else json.dumps(known.value()),
            ],
        )
        try:
            text, owner, beats = answer
            ages = dict(zip(beats[::2], (int(age) / 1000 for age in beats[1::2]), strict=True))
            return View.of(json.loads(text)), owner, ages
        # Without this the thread would end, and the agent would keep its last view forever as a normal member.
        except (FleetError, ValueError, TypeError, KeyError, AttributeError) as error:
            raise _ForeignError(str(error)) from error


def _connect(url: str, timeout_s: float) -> tuple[Any, tuple[type[Exception], ...], tuple[type[Exception], ...]]:
    """Return a client, all errors of a question, and those of them that are an answer."""
    try:
        import redis  # noqa: PLC0415 - optional: the message says how to get it
    except ImportError as error:
        raise FleetError("membership by Redis needs redis-py: pip install 'kafka-azimuth[redis]'") from error
    try:
        client = connect_redis(
            url, decode_responses=True, socket_timeout=timeout_s, socket_connect_timeout=timeout_s, retry=None
        )
    except ValueError as error:  # its message may contain a part of the password
        raise FleetError(
            f"membership: {shown(url)!r} is not an address of Redis: need {REDIS_ADDRESSES}, and %XX for each "
            "character of a password that has a meaning there"
        ) from error
    answered = (redis.ResponseError, _ForeignError)
    # A key that is no UTF-8, as another program's may be, is an error while the client reads the answer.
    return client, (redis.RedisError, UnicodeDecodeError, *answered), (UnicodeDecodeError, *answered)
