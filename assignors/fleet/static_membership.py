"""Membership from the configuration, without a server."""

from typing import Self

from assignors.errors import FleetError
from assignors.fleet.agents_view import Agent, View
from assignors.fleet.membership_contract import Membership, Standing, StateCell


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
