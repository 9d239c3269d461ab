"""The agents in the fleet: immutable views `(members, version)`."""

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, Self

from assignors.errors import FleetError


@dataclass(frozen=True, slots=True, order=True)
class Agent:
    """One agent.

    Attributes:
        id: its permanent name, unique in the fleet; with the same id a restarted agent gets its topics back.
        capacity: its share relative to the others, above 0, no unit.
        zone: its zone; None if unknown.
        settings: the settings that all agents should share, from `declared_settings`; empty if an agent, such as one of
            an older version, does not declare them.

    Raises:
        FleetError: no id, or a capacity that is not a finite number above 0.
    """

    id: str
    capacity: float = 1.0
    zone: str | None = None
    settings: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        if not self.id:
            raise FleetError("an agent needs an id that outlives its process")
        if not (self.capacity > 0 and math.isfinite(self.capacity)):
            raise FleetError(f"agent {self.id!r}: capacity={self.capacity!r}, need a finite number above 0")

    def value(self) -> dict[str, Any]:
        """Return a JSON value."""
        declared = {"settings": list(self.settings)} if self.settings else {}
        return {"id": self.id, "capacity": self.capacity, "zone": self.zone, **declared}

    @classmethod
    def of(cls, value: Mapping[str, Any]) -> Self:
        """Read the result of `value`; fields of a newer version are ignored."""
        return cls(
            id=str(value["id"]),
            capacity=float(value.get("capacity", 1.0)),
            zone=value.get("zone"),
            settings=tuple(str(one) for one in value.get("settings") or ()),
        )


@dataclass(frozen=True, slots=True)
class View:
    """The fleet at one time.

    Agents that have left stay listed as departed for a while, in the order of their departure. So every agent can
    compute, only from the view, the new places of the departed agents' topics, while all other topics stay. An agent
    that returns in that time gets exactly its topics back.

    Attributes:
        members: the live agents, sorted by id.
        version: rises with every change; equal versions of one fleet are equal views.
        departed: agents that left and have not returned, in the order of departure.

    Raises:
        FleetError: an id is listed twice.
    """

    members: tuple[Agent, ...] = ()
    version: int = 0
    departed: tuple[Agent, ...] = field(default=())

    def __post_init__(self) -> None:
        object.__setattr__(self, "members", tuple(sorted(self.members)))
        ids = [agent.id for agent in (*self.members, *self.departed)]
        if len(set(ids)) != len(ids):
            raise FleetError(f"agents {sorted({i for i in ids if ids.count(i) > 1})} stand twice in one view")

    @property
    def ids(self) -> tuple[str, ...]:
        """Ids of the live agents, sorted."""
        return tuple(agent.id for agent in self.members)

    def following(self, living: Iterable[Agent], version: int, most_departed: int = 64) -> Self:
        """Return the next view: these agents are live, and the other previously live agents have departed.

        Args:
            living: the current agents.
            version: version of the new view.
            most_departed: most departed agents in a view; the oldest are removed first.
        """
        now = {agent.id: agent for agent in living}
        gone = [agent for agent in self.departed if agent.id not in now]
        gone += [agent for agent in self.members if agent.id not in now]
        return type(self)(tuple(now.values()), version, tuple(gone[max(0, len(gone) - most_departed) :]))

    def without(self, agent: str) -> Self:
        """Return the view after this agent's death."""
        return self.following((one for one in self.members if one.id != agent), self.version + 1)

    def value(self) -> dict[str, Any]:
        """Return a JSON value."""
        return {
            "members": [agent.value() for agent in self.members],
            "version": self.version,
            "departed": [agent.value() for agent in self.departed],
        }

    @classmethod
    def of(cls, value: Mapping[str, Any]) -> Self:
        """Read the result of `value`."""
        return cls(
            tuple(Agent.of(one) for one in value["members"]),
            int(value["version"]),
            tuple(Agent.of(one) for one in value.get("departed", ())),
        )
