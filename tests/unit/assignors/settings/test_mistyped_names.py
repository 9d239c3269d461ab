"""Mistyped names get the nearest known name, for the settings of every file."""

import random
from collections.abc import Iterator
from typing import Any

import pytest
from pydantic import BaseModel

from assignors.scaling.evaluator_settings import ScalingSettings
from assignors.settings.mistyped_names import _tables, nearest, propose_setting
from spark_sink.agent.agent_settings import AgentSettings
from spark_sink.fleet.fleet_settings import FleetSettings

FILES: tuple[type[BaseModel], ...] = (AgentSettings, FleetSettings, ScalingSettings)
_SHORT = 5


def settings() -> Iterator[Any]:
    """Every setting of every file that is long enough for a typing error."""
    for model in FILES:
        for path, names in _tables(model, ()):
            for name in sorted(names):
                if len(name) >= _SHORT:
                    yield pytest.param(model, path, name, id=f"{model.__name__}-{'.'.join((*path, name))}")


def mistyped(name: str) -> set[str]:
    """The name with two letters exchanged, a letter left out, and a letter doubled."""
    drawn = random.Random(name)  # the same mistakes in each run
    at = drawn.randrange(1, len(name) - 1)
    return {
        name[:at] + name[at + 1] + name[at] + name[at + 2 :],
        name[:at] + name[at + 1 :],
        name[:at] + name[at] + name[at:],
        name.replace("_", "."),
        name.upper(),
    } - {name}


@pytest.mark.parametrize(("model", "path", "name"), list(settings()))
def test_a_mistyped_setting_gets_its_name(model: type[BaseModel], path: tuple[str, ...], name: str) -> None:
    """The user reads the name to write, not a list of all names."""
    there = ["kafka" if one == "<name>" else one for one in path]
    known = {one for place, names in _tables(model, ()) if place == path for one in names}
    for wrong in mistyped(name) - known:
        assert propose_setting(model, [*there, wrong]) == f"did you mean {name!r}?"


@pytest.mark.parametrize(
    ("location", "says"),
    [
        (("pattern",), "it belongs to the table [sources.<name>]"),
        (("sources", "home", "lanes"), "it belongs to the top of the file"),
        (("membership", "kafka", "hmoe"), "did you mean 'home'?"),
        (("membership", "static", "agents", 0, "zoen"), "did you mean 'zone'?"),
        (("colour",), None),
    ],
)
def test_a_setting_of_another_table_is_sent_there(location: tuple[str | int, ...], says: str | None) -> None:
    """A name that is right, but in the wrong table, is not called mistyped."""
    assert propose_setting(FleetSettings, location) == says


def test_a_strange_name_gets_no_proposal() -> None:
    """A wrong proposal would cost more time than none."""
    assert nearest("colour", ["table", "group", "agent"]) is None
