"""Who is in the fleet: immutable views `(members, version)`."""

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, Self

from assignors.errors import FleetError


@dataclass(frozen=True, slots=True, order=True)
class Agent:
    """One agent.

    Attributes:
        id: its lasting name, unique in the fleet; a restarted agent that keeps it gets its topics back.
        capacity: how much it should read relative to the others, above 0, no unit.
        zone: where it runs; None where unknown.
        settings: what all agents should agree on, as `declared_settings` makes it; empty where an agent does not say,
            as those of older versions.

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
        """As JSON holds it."""
        told = {"settings": list(self.settings)} if self.settings else {}
        return {"id": self.id, "capacity": self.capacity, "zone": self.zone, **told}

    @classmethod
    def of(cls, value: Mapping[str, Any]) -> Self:
        """Read what `value` made; fields that a newer version added are passed over."""
        return cls(
            id=str(value["id"]),
            capacity=float(value.get("capacity", 1.0)),
            zone=value.get("zone"),
            settings=tuple(str(one) for one in value.get("settings") or ()),
        )


@dataclass(frozen=True, slots=True)
class View:
    """The fleet at one moment.

    Agents that have gone stay listed as departed for a while, in the order in which they went: only so can every agent
    compute, from the view alone, where the topics of the departed are now while all others stay where they were. One
    that comes back in that time gets exactly its topics back.

    Attributes:
        members: the living agents, sorted by id.
        version: counts up with every change; equal versions of one fleet are equal views.
        departed: agents that went and did not come back, the first to go first.

    Raises:
        FleetError: an id stands twice.
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
        """Of the living agents, sorted."""
        return tuple(agent.id for agent in self.members)

    def following(self, living: Iterable[Agent], version: int, most_departed: int = 64) -> Self:
        """The next view: these live now, and who lived before and does not now has departed.

        Args:
            living: the agents now.
            version: of the new view.
            most_departed: so many are remembered; the oldest are forgotten first.
        """
        now = {agent.id: agent for agent in living}
        gone = [agent for agent in self.departed if agent.id not in now]
        gone += [agent for agent in self.members if agent.id not in now]
        return type(self)(tuple(now.values()), version, tuple(gone[max(0, len(gone) - most_departed) :]))

    def without(self, agent: str) -> Self:
        """The view after this agent's death."""
        return self.following((one for one in self.members if one.id != agent), self.version + 1)

    def value(self) -> dict[str, Any]:
        """As JSON holds it."""
        return {
            "members": [agent.value() for agent in self.members],
            "version": self.version,
            "departed": [agent.value() for agent in self.departed],
        }

    @classmethod
    def of(cls, value: Mapping[str, Any]) -> Self:
        """Read what `value` made."""
        return cls(
            tuple(Agent.of(one) for one in value["members"]),
            int(value["version"]),
            tuple(Agent.of(one) for one in value.get("departed", ())),
        )
