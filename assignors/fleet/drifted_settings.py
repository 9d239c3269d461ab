"""Settings that all agents of a fleet must share: each agent declares its own, and differences are reported. Pure.

Every agent computes the placement itself. If two agents have different seeds or workers, they compute different
placements, and a topic may have two sets of readers, or none.
"""

import json
from collections.abc import Collection, Iterable, Mapping
from typing import Final

from assignors.fleet.agents_view import Agent
from assignors.hashing.murmur3_hash import hash64

_DIGITS = 8
_NAMED = 3
_SAME_FILE = "all agents need the same file"
_SAME_VERSION = "all agents need the same version"

WORKERS: Final = "workers.now"
"""The name under which agents declare the digests of their current workers per topic, joined by +, the newest first."""
ZONES: Final = "zones.now"
"""The name under which agents declare the digests of the zones of all topics that they know, as for workers."""
AWAY: Final = "clusters.away"
"""The name under which agents declare the sources whose cluster they have lost, joined by slashes."""
UNKNOWN: Final = "clusters.unknown"
"""The same for clusters that they have never reached, so that they do not know their topics."""
DIVISION: Final = "division"
"""The name under which agents declare how they divide a topic's partitions; the number rises with the division."""


def declared_settings(values: Mapping[str, object]) -> tuple[str, ...]:
    """Return an agent's declaration: numbers unchanged, other values as a digest, because every join contains the view.

    Args:
        values: by name; None and empty values are left out.

    Returns:
        `<name>=<value>`, sorted.
    """
    given = [(name, value) for name, value in sorted(values.items()) if value or isinstance(value, int | float)]
    return tuple(f"{name}={_shown(value)}" for name, value in given)


def declared_number(agent: Agent, name: str) -> int | None:
    """Return a whole number that an agent declares; None if it does not."""
    value = _read(agent).get(name, "")
    return int(value) if value.isdecimal() else None


def declared_digests(agent: Agent, name: str = WORKERS) -> tuple[str, ...]:
    """Return the digests of the values that an agent can compute with, the newest first."""
    return tuple(one for one in _read(agent).get(name, "").split("+") if one)


def declared_names(agent: Agent, setting: str) -> frozenset[str]:
    """Return the names that an agent declares, joined by slashes."""
    return frozenset(one for one in _read(agent).get(setting, "").split("/") if one)


def settings_drift(agents: Iterable[Agent], but: Collection[str] = ()) -> list[str]:
    """Return the settings that differ, one sentence each; agents without a declaration are ignored.

    Unreached clusters and zones of topics are not settings.

    Args:
        agents: the agents with their declarations.
        but: settings that may differ.
    """
    declared = {agent.id: _read(agent) for agent in agents if agent.settings}
    names = sorted({name for values in declared.values() for name in values} - {AWAY, UNKNOWN, ZONES, *but})
    found = []
    for name in names:
        by_value: dict[str | None, list[str]] = {}
        for agent, values in declared.items():
            # Of the current workers only the newest count: agents declare previous ones for a short time.
            value = values.get(name)
            by_value.setdefault(value and value.partition("+")[0], []).append(agent)
        if len(by_value) > 1:
            groups = sorted(by_value.items(), key=lambda one: (-len(one[1]), one[1]))
            found.append(
                f"{_subject(name)}: "
                + ", ".join(f"{value or 'not set'} on {_some(ids)}" for value, ids in groups)
                + f"; {_cure(name)}"
            )
    return found


def _subject(name: str) -> str:
    return "the current workers per topic differ" if name == WORKERS else f"setting {name!r} differs"


def _cure(name: str) -> str:
    if name == DIVISION:
        return _SAME_VERSION
    if name != WORKERS:
        return _SAME_FILE
    return "all hosts need the same workers.file, and all agents must reach the workers topic"


def _shown(value: object) -> str:
    if isinstance(value, int | float):
        return str(value)
    return f"#{hash64(json.dumps(value)):016x}"[: _DIGITS + 1]


def _read(agent: Agent) -> dict[str, str]:
    return {name: value for name, sign, value in (one.partition("=") for one in agent.settings) if sign}


def _some(agents: list[str]) -> str:
    named = ", ".join(sorted(agents)[:_NAMED])
    more = len(agents) - _NAMED
    return f"{named} and {more} more" if more > 0 else named
