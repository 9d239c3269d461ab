"""The number of agents per topic, from the configuration, the autoscaler or an override; later ones take precedence."""

import math
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Final, TypeVar

from assignors.errors import NO_PATTERN, WorkersError
from assignors.fleet.fleet_topic import FleetTopic
from assignors.planner.worker_caps import check_workers

Override = int | tuple[str, ...]
"""A number of agents, or the agents by name."""

V = TypeVar("V")

_NAMED: Final = 5


@dataclass(frozen=True, slots=True, kw_only=True)
class FleetWorkers:
    """Workers per topic.

    Loads are balanced for the planned number (pattern, else default). A number from the autoscaler or an override adds
    agents to the end of a topic's list, or removes them from there, and moves no other topic.

    Attributes:
        default: agents of a topic; None for all.
        patterns: regular expression of whole names (or `<source>/<name>`) to number; the first match counts.
        scaled: from the autoscaler, by identity, `<source>/<name>` or name.
        overrides: set by a person, by `<source>/<name>` or name: a number, or the agents themselves.
        published: the numbers of which `scaled` has those of known clusters, as the autoscaler published them. Agents
            compare them, because an agent may not know a cluster yet. None if `scaled` has all.
        weights: volume of a topic relative to the others, 0 or more, by identity, `<source>/<name>`, name, or
            `<cluster id>/<name>`. They count only if the balance is by volume.

    Raises:
        WorkersError: a number below 1, an empty list, a pattern that is not a regular expression, or a weight that is
            negative or not finite.
    """

    default: int | None = 1
    patterns: Mapping[str, int | None] = field(default_factory=dict)
    scaled: Mapping[str, int] = field(default_factory=dict)
    overrides: Mapping[str, Override] = field(default_factory=dict)
    published: Mapping[str, int] | None = None
    weights: Mapping[str, float] = field(default_factory=dict)

    def __post_init__(self) -> None:
        check_workers(self.default)
        check_workers(dict(self.scaled))
        for pattern, number in self.patterns.items():
            check_workers({"x": number})
            try:
                re.compile(pattern)
            except NO_PATTERN as error:
                raise WorkersError(f"workers for {pattern!r}: not a regular expression ({error})") from error
        for name, weight in self.weights.items():
            if isinstance(weight, bool) or not (math.isfinite(weight) and weight >= 0):
                raise WorkersError(f"weight of {name!r}: {weight!r}, need a finite number, 0 or more")
        for name, value in self.overrides.items():
            if isinstance(value, tuple):
                if not value or len(set(value)) != len(value):
                    raise WorkersError(f"override for {name!r}: {list(value)}, need one agent or more, each once")
            else:
                check_workers({name: value})

    def planned(self, topic: FleetTopic) -> int | None:
        """Return the number for which loads are balanced."""
        for pattern, number in self.patterns.items():
            if re.fullmatch(pattern, topic.name) or re.fullmatch(pattern, topic.label):
                return number
        return self.default

    def wanted(self, topic: FleetTopic) -> int | None:
        """Return the number in force."""
        override = _find(self.overrides, topic)
        if override is not None:
            return len(override) if isinstance(override, tuple) else override
        return _find(self.scaled, topic) or self.planned(topic)

    def pinned(self, topic: FleetTopic) -> tuple[str, ...]:
        """Return the agents that an override names, if any."""
        override = _find(self.overrides, topic)
        return override if isinstance(override, tuple) else ()

    def weight(self, topic: FleetTopic) -> float | None:
        """Return the volume of a topic relative to the others; None if it is unknown."""
        if not self.weights:
            return None
        found = _find(self.weights, topic)
        return self.weights.get(f"{topic.cluster}/{topic.name}") if found is None else found

    def unknown(self, topics: Iterable[FleetTopic], agents: Iterable[str]) -> list[str]:
        """Return the overrides that cannot apply: no such topic, or an agent that is not live.

        One sentence each for the first ones of either kind, and one with the number of the others: each is logged, and
        a file may have any number of them.
        """
        names = {name for topic in topics for name in (topic.name, topic.label, topic.identity)}
        living = set(agents)
        unknown = [name for name in self.overrides if name not in names]
        found = [f"override for {name!r}: there is no such topic" for name in unknown[:_NAMED]]
        if more := len(unknown[_NAMED:]):
            found.append(f"{more} more overrides: there is no such topic")
        dead = {
            name: gone
            for name, value in self.overrides.items()
            if isinstance(value, tuple) and (gone := next((one for one in value if one not in living), None))
        }
        for name, agent in list(dead.items())[:_NAMED]:
            found.append(f"override for {name!r}: agent {agent!r} does not live, the next in line stands in")
        if more := max(len(dead) - _NAMED, 0):
            found.append(f"{more} more overrides: an agent does not live, the next in line stands in")
        return found


def _find(values: Mapping[str, V], topic: FleetTopic) -> V | None:
    for name in (topic.identity, topic.label, topic.name):
        if name in values:
            return values[name]
    return None
