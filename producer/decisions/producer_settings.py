"""The settings of a producer as one value, checked when it is created."""

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from enum import StrEnum
from numbers import Real
from sys import float_info, maxsize
from typing import Final

from assignors.errors import NO_PATTERN
from producer.decisions.application_partitioner import Choose, chooser
from producer.decisions.partitioner_names import ClientPartitioner
from producer.decisions.skew_guard import SkewGuard
from producer.errors import PolicyError


class KeyMode(StrEnum):
    """The mapping of records with a key.

    `global` maps keys over all partitions as the client's partitioner does (order per key, no locality). `local-mod`
    and `local-hrw` hash over the partitions led in the producer's zone (locality, one partition per key and zone).
    `local-hrw` moves 1/n of the keys if one of n local leaders moves, `local-mod` nearly all of them. `ignore` sends
    records with a key to the partitions of those without (Java's `partitioner.ignore.keys`: locality and full batches,
    no order per key).
    """

    GLOBAL = "global"
    LOCAL_MOD = "local-mod"
    LOCAL_HRW = "local-hrw"
    IGNORE = "ignore"


_BATCH_AT_MOST: Final = 1 << 40
"""A terabyte: counts of bytes are 64-bit integers, to which a batch is added."""

KeyRules = tuple[tuple[re.Pattern[str], KeyMode], ...]
"""Key modes by patterns of whole topic names; the first match counts."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ZonePolicy:
    """The settings that both clients share.

    Attributes:
        rack: zone of this producer, as spelled in `broker.rack`; None if unknown.
        keys: mapping of records with a key, in topics that no rule names.
        key_rules: mappings by topic.
        choose: chooses among the partitions of the zone for every record, in place of `keys`; None for `keys`.
        counts_deliveries: whether a record counts at its delivery instead of when it is queued.
        adaptive: whether records without a key prefer partitions with short queues (KIP-794).
        availability_timeout_ms: time without progress after which records without a key avoid a partition; 0 for never.
        partitioner: the hash of a key, and the handling of missing and empty keys.
        fallback: zones to try, in this order, if no partition is led in the producer's zone.
        batch_bytes: bytes after which records without a key move to another partition (KIP-794).
        hold_s: time that a better set of leaders must last before the producer returns to it, seconds.
        aware: False means a plain sticky partitioner that still counts its bytes by zone.
        skew: bound on the imbalance of partitions that locality may cause; None for no bound.

    Raises:
        PolicyError: a value cannot work.
    """

    rack: str | None = None
    keys: KeyMode = KeyMode.GLOBAL
    key_rules: KeyRules = ()
    choose: str | Choose | None = None
    fallback: tuple[str, ...] = ()
    batch_bytes: int = 16_384
    hold_s: float = 5.0
    aware: bool = True
    skew: SkewGuard | None = None
    counts_deliveries: bool = False
    adaptive: bool = True
    availability_timeout_ms: int = 0
    partitioner: ClientPartitioner = ClientPartitioner.MURMUR2_RANDOM

    def __post_init__(self) -> None:
        if not isinstance(self.rack, str | None):
            raise PolicyError(f"rack={self.rack!r}, need text: name the zone as `broker.rack` does, or leave it out")
        if self.rack is not None and not self.rack.strip():
            raise PolicyError(f"rack={self.rack!r} is empty: name the zone as `broker.rack` does, or leave it out")
        need_number("batch_bytes", self.batch_bytes, least=1, most=_BATCH_AT_MOST)
        need_number("hold_s", self.hold_s)
        _need_flag("aware", self.aware)
        _need_flag("adaptive", self.adaptive)
        if not isinstance(self.skew, SkewGuard | None):
            raise PolicyError(f"skew={self.skew!r}, need a SkewGuard: skew=SkewGuard(bound=..., zones={{...}})")
        if self.choose is not None:
            chooser(self.choose)
        need_number("availability_timeout_ms", self.availability_timeout_ms)

    @property
    def shortest_key(self) -> int:
        """Length from which a key counts as a key, in bytes; records with a shorter one have no key."""
        ignored = self.keys is KeyMode.IGNORE or self.choose is not None
        return maxsize if ignored else int(self.partitioner.empty_is_null)

    def for_topic(self, topic: str) -> "ZonePolicy":
        """Return the settings of one topic, with its own mode of keys."""
        mode = next((mode for pattern, mode in self.key_rules if pattern.fullmatch(topic)), self.keys)
        return replace(self, keys=mode, key_rules=())


def need_number(name: str, value: object, *, least: float = 0, most: float = float_info.max) -> None:
    """Check a setting.

    Raises:
        PolicyError: it is not a number, not finite, or out of range.
    """
    if not isinstance(value, Real) or isinstance(value, bool):
        raise PolicyError(f"{name}={value!r}, need a number, not {type(value).__name__}")
    if not least <= value <= most:  # type: ignore[operator]  # Real has an order; this also catches nan
        upper = "" if most == float_info.max else f", at most {most:,}"
        raise PolicyError(f"{name}={value!r}, need {least} or more{upper}")


def _need_flag(name: str, value: object) -> None:
    if not isinstance(value, bool):  # the text "false" would count as true
        raise PolicyError(f"{name}={value!r}, need True or False, not {type(value).__name__}")


def zone_order(fallback: Iterable[str]) -> tuple[str, ...]:
    """Check the fallback zones.

    Raises:
        PolicyError: it is a text, whose letters would count as zones.
    """
    if isinstance(fallback, str):
        raise PolicyError(f"fallback={fallback!r} is one text, need a list of zones: [{fallback!r}]")
    zones = tuple(fallback) if isinstance(fallback, Iterable) else (fallback,)
    if not all(isinstance(zone, str) for zone in zones):
        raise PolicyError(f"fallback={fallback!r}, need a list of zones as texts")
    return zones


def counts_deliveries(name: str | None) -> bool:
    """Read whether records count at their delivery: `"delivered"`, or `"queued"`, which None means here.

    Raises:
        PolicyError: it is neither.
    """
    if name not in (None, "queued", "delivered"):
        raise PolicyError(f"count={name!r}: choose 'queued' or 'delivered'")
    return name == "delivered"


def key_mode(name: str) -> KeyMode:
    """Read a key mode.

    Raises:
        PolicyError: there is no such mode.
    """
    try:
        return KeyMode(name)
    except (ValueError, TypeError):
        known = ", ".join(repr(mode.value) for mode in KeyMode)
        raise PolicyError(f"keys={name!r} is not a key mode: choose one of {known}") from None


def key_rules(keys: str | Mapping[str, str]) -> tuple[KeyMode, KeyRules]:
    """Read the key mode of all topics, or the modes by pattern of the topic's name.

    Returns:
        The mode of topics that match no pattern, `global` where patterns are given, and the modes by pattern.

    Raises:
        PolicyError: there is no such mode, or a pattern is not a regular expression.
    """
    if not isinstance(keys, Mapping):
        return key_mode(keys), ()
    return KeyMode.GLOBAL, tuple((_pattern(one), _mode_of(one, mode)) for one, mode in keys.items())


def _mode_of(pattern: str, mode: str) -> KeyMode:
    try:
        return key_mode(mode)
    except PolicyError as error:
        raise PolicyError(f"pattern {pattern!r}: {error}") from None


def _pattern(text: object) -> re.Pattern[str]:
    if not isinstance(text, str):
        raise PolicyError(f"keys={{{text!r}: ...}}: the pattern must be text, not {type(text).__name__}")
    try:
        return re.compile(text)
    except NO_PATTERN as error:
        raise PolicyError(f"keys={{{text!r}: ...}}: the pattern is not a regular expression: {error}") from None
