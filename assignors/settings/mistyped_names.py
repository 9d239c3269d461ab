"""Mistyped names: proposes the nearest known name, and warns of environment variables that would have no effect."""

import logging
import os
import typing
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from difflib import get_close_matches
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pydantic import BaseModel

_ANY = "<name>"
Tables = Sequence[tuple[tuple[str, ...], frozenset[str]]]
"""The path of each table of a file, `<name>` for a name that the user chooses, and the settings of the table."""
log = logging.getLogger(__name__)
_NEAR = 0.8  # `log_format` and `table_format` are farther apart
_NESTED = "__"
_OWN = ("AZIMUTH_FLEET_", "AZIMUTH_SCALING_")  # prefixes of other files' settings than those of `AZIMUTH_`
# Variables of this program that are not settings of a file.
_OTHERS = frozenset(
    {
        "AZIMUTH_BROKER_JAR",
        "AZIMUTH_CACHE",
        "AZIMUTH_CLAIMS_DATABASE",
        "AZIMUTH_CLUSTER_DIR",
        "AZIMUTH_LOG_FORMAT",
        "AZIMUTH_STARTED_BY",
        "AZIMUTH_WORKERS_LOG",
    }
)


def nearest(name: str, known: Iterable[str]) -> str | None:
    """Return the known name that is nearest to a mistyped one; None if none is close. Case does not count."""
    cased = {one.lower(): one for one in sorted(known)}
    found = get_close_matches(name.lower(), cased, n=1, cutoff=0.7)
    return cased[found[0]] if found else None


def proposal(name: str, known: Iterable[str]) -> str | None:
    """Return the question that proposes the nearest name; None if no name is close."""
    found = nearest(name, known)
    return None if found is None else f"did you mean {found!r}?"


def propose_setting(model: "type[BaseModel]", location: Sequence[str | int]) -> str | None:
    """Propose a setting for an unknown one.

    Args:
        model: of the whole file.
        location: of the unknown setting, as pydantic reports it: tables, then the name.

    Returns:
        A clause with the nearest name of the same table, or with the table that the name belongs to; None if there is
        neither.
    """
    *path, name = map(str, location)
    tables = list(_tables(model, ()))
    here = [one for one in tables if _leads_to(one[0], path)]
    longest = max((len(one) for one, _ in here), default=0)
    known = {one for place, names in here if len(place) == longest for one in names}
    if (found := proposal(name, known)) is not None:
        return found
    elsewhere = sorted({place for place, names in tables if name in names and name not in known})
    if not elsewhere:
        return None
    place = ".".join(elsewhere[0])
    return f"it belongs to the table [{place}]" if place else "it belongs to the top of the file"


def _tables(model: "type[BaseModel]", path: tuple[str, ...]) -> Iterator[tuple[tuple[str, ...], frozenset[str]]]:
    yield path, frozenset(model.model_fields)
    for name, field in model.model_fields.items():
        for inner, below in _models(field.annotation, (*path, name)):
            yield from _tables(inner, below)


def _models(annotation: Any, path: tuple[str, ...]) -> "Iterator[tuple[type[BaseModel], tuple[str, ...]]]":  # noqa: ANN401 -- any annotation
    if hasattr(annotation, "model_fields"):
        yield annotation, path
        return
    below = (*path, _ANY) if typing.get_origin(annotation) is dict else path
    for one in typing.get_args(annotation):
        yield from _models(one, below)


def _leads_to(table: Sequence[str], path: Sequence[str]) -> bool:
    """Return whether the path passes the table; pydantic's paths also have the kinds and numbers of tables."""
    rest = iter(path)
    return all(any(one in {_ANY, part} for part in rest) for one in table)


def mistyped(environment: Iterable[str], prefix: str, settings: Collection[str]) -> dict[str, str]:
    """Return the variable that was probably meant, by variable that is none. Pure.

    Variables that are not near a setting are left out: Kubernetes adds some for each service, as `AZIMUTH_PORT` for one
    with the name `azimuth`.

    Args:
        environment: names of all variables.
        prefix: of the variables of these settings.
        settings: names of the settings. In `<setting>__<key>` the key is not checked.
    """
    found = {}
    for name in sorted(set(environment) - _OTHERS):
        upper = name.upper()
        other = any(upper.startswith(one) for one in _OWN if one != prefix)
        asked, nested, key = upper.removeprefix(prefix).lower().partition(_NESTED)
        if upper.startswith(prefix) and not other and asked not in settings:
            for near in get_close_matches(asked, settings, n=1, cutoff=_NEAR):
                found[name] = f"{prefix}{near.upper()}{nested}{key.upper()}"
    return found


def warn_of_mistyped(prefix: str, settings: Collection[str], environment: Mapping[str, str] = os.environ) -> None:
    """Log a warning for each variable that is nearly the name of a setting, without its value, which may be secret."""
    for name, meant in mistyped(environment, prefix, settings).items():
        log.warning("environment: %s is not a setting and has no effect; did you mean %s?", name, meant)
