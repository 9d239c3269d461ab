"""The settings that the producers for confluent-kafka share, listed once."""

from collections.abc import Iterable, Mapping, Sequence
from difflib import get_close_matches
from typing import Any, Final, TypedDict

from producer.decisions.application_partitioner import Choose
from producer.decisions.candidate_partitions_in_zone import Racks
from producer.decisions.skew_guard import SkewGuard
from producer.errors import PolicyError

_PROPERTIES: Final = frozenset({"acks", "retries"})
_ZONES: Final = frozenset({"rack", "zone", "client_rack"})


class ProducerOptions(TypedDict, total=False):
    """Keyword arguments of `AZAwareProducer`, which explains them, and of its asyncio twin."""

    keys: str | Mapping[str, str]
    choose: str | Choose | None
    fallback: Iterable[str]
    aware: bool
    skew: SkewGuard | None
    racks: Racks | None
    batch_bytes: int | None
    hold_s: float
    refresh_s: float
    metadata_timeout_s: float
    count: str | None
    adaptive: bool
    availability_timeout_ms: int


def need_mapping(config: object) -> Mapping[str, Any]:
    """Return a client's configuration.

    Raises:
        TypeError: it is not a mapping.
    """
    if not isinstance(config, Mapping):
        raise TypeError(f"the configuration must be a dict, not {type(config).__name__}")
    return config


def split_options(given: Mapping[str, Any]) -> tuple[ProducerOptions, dict[str, Any]]:
    """Separate these settings from other keyword arguments, which belong to the base class."""
    options = ProducerOptions()
    others: dict[str, Any] = {}
    for name, value in given.items():
        if name in ProducerOptions.__annotations__:
            options[name] = value  # type: ignore[literal-required]  # a name of the settings
        else:
            _refuse_misspelt(name)
            others[name] = value
    return options, others


def with_placed(names: Sequence[str], placed: Sequence[Any], named: Mapping[str, Any]) -> dict[str, Any]:
    """Return keyword arguments with the positional ones, which get their names.

    Raises:
        TypeError: there are more than names, or one is given twice.
    """
    if len(placed) > len(names):
        raise TypeError(f"takes at most {len(names)} positional arguments: {', '.join(names)}")
    given = dict(zip(names, placed, strict=False))
    if twice := sorted(given.keys() & named.keys()):
        raise TypeError(f"got multiple values for argument {twice[0]!r}")
    return {**given, **named}


def _refuse_misspelt(name: str) -> None:
    """Refuse a name that is nearly an argument: the client would report an unknown property, and not the right name.

    A property by keyword is possible, and some have no dot in their names: `acks` is near `racks`, and no mistake.
    """
    if "." in name or name in _PROPERTIES:
        return
    known = [*ProducerOptions.__annotations__]
    meant = (
        "'client.rack' of the configuration"
        if name in _ZONES
        else next(iter(get_close_matches(name, known, n=1, cutoff=0.75)), None)
    )
    if meant is not None:
        raise PolicyError(f"{name}=...: the producer has no such argument; did you mean {meant}?")
