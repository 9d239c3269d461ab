"""Settings that all agents of a fleet must share, and where they do not: each agent declares its own. Pure.

Placement is computed by every agent for itself. Two agents with another `seed` or other workers come to other answers,
and a topic may have two sets of readers, or none.
"""

import json
from collections.abc import Iterable, Mapping

from assignors.fleet.agents_view import Agent
from assignors.hashing.hash import hash64

_DIGITS = 8
_NAMED = 3


def declared_settings(values: Mapping[str, object]) -> tuple[str, ...]:
    """Make what an agent declares: numbers as they are, all else by a digest, as a view goes through every join.

    Args:
        values: by name; those that are None or empty are left out.

    Returns:
        `<name>=<value>`, sorted.
    """
    given = [(name, value) for name, value in sorted(values.items()) if value or isinstance(value, int | float)]
    return tuple(f"{name}={_shown(value)}" for name, value in given)


def declared_number(agent: Agent, name: str) -> int | None:
    """A whole number that an agent declares; None where it does not."""
    value = _read(agent).get(name, "")
    return int(value) if value.isdecimal() else None


def settings_drift(agents: Iterable[Agent]) -> list[str]:
    """Settings that differ, one sentence each; an agent that declares none is passed over."""
    declared = {agent.id: _read(agent) for agent in agents if agent.settings}
    names = sorted({name for values in declared.values() for name in values})
    found = []
    for name in names:
        by_value: dict[str | None, list[str]] = {}
        for agent, values in declared.items():
            by_value.setdefault(values.get(name), []).append(agent)
        if len(by_value) > 1:
            groups = sorted(by_value.items(), key=lambda one: (-len(one[1]), one[1]))
            found.append(
                f"setting {name!r} differs: "
                + ", ".join(f"{value or 'not set'} on {_some(ids)}" for value, ids in groups)
                + "; all agents need the same file"
            )
    return found


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
