"""The settings that the producers for confluent-kafka share, listed once."""

from collections.abc import Iterable, Mapping
from typing import Any, TypedDict

from producer.decisions.leader_locality import Racks
from producer.decisions.skew_guard import SkewGuard
from producer.decisions.zone_choice import Choose


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


def split_options(given: Mapping[str, Any]) -> tuple[ProducerOptions, dict[str, Any]]:
    """Separate these settings from other keyword arguments, which belong to the base class."""
    options = ProducerOptions()
    others: dict[str, Any] = {}
    for name, value in given.items():
        if name in ProducerOptions.__annotations__:
            options[name] = value  # type: ignore[literal-required]  # a name of the settings
        else:
            others[name] = value
    return options, others
