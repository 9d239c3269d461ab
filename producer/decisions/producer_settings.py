"""The settings of a producer as one value, checked when it is created."""

from collections.abc import Iterable
from dataclasses import dataclass
from enum import StrEnum
from math import isfinite

from producer.decisions.librdkafka_partitioners import ClientPartitioner
from producer.decisions.skew_guard import SkewGuard
from producer.errors import PolicyError


class KeyMode(StrEnum):
    """The mapping of records with a key.

    `global` maps keys over all partitions as the client's partitioner does (order per key, no locality). `local-mod`
    and `local-hrw` hash over the partitions led in the producer's zone (locality, one partition per key and zone).
    `local-hrw` moves 1/n of the keys if one of n local leaders moves, `local-mod` nearly all of them.
    """

    GLOBAL = "global"
    LOCAL_MOD = "local-mod"
    LOCAL_HRW = "local-hrw"


@dataclass(frozen=True, slots=True, kw_only=True)
class ZonePolicy:
    """The settings that both clients share.

    Attributes:
        rack: zone of this producer, as spelled in `broker.rack`; None if unknown.
        keys: mapping of records with a key.
        counts_deliveries: whether a record counts at its delivery instead of when it is queued.
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
    fallback: tuple[str, ...] = ()
    batch_bytes: int = 16_384
    hold_s: float = 5.0
    aware: bool = True
    skew: SkewGuard | None = None
    counts_deliveries: bool = False
    partitioner: ClientPartitioner = ClientPartitioner.MURMUR2_RANDOM

    def __post_init__(self) -> None:
        if not isinstance(self.rack, str | None):
            raise PolicyError(f"rack={self.rack!r}, need text: name the zone as `broker.rack` does, or leave it out")
        if self.rack is not None and not self.rack.strip():
            raise PolicyError(f"rack={self.rack!r} is empty: name the zone as `broker.rack` does, or leave it out")
        if self.batch_bytes < 1:
            raise PolicyError(f"batch_bytes={self.batch_bytes!r}, need 1 or more")
        if not (self.hold_s >= 0 and isfinite(self.hold_s)):
            raise PolicyError(f"hold_s={self.hold_s!r}, need 0 or more seconds")


def zone_order(fallback: Iterable[str]) -> tuple[str, ...]:
    """Check the fallback zones.

    Raises:
        PolicyError: it is a text, whose letters would count as zones.
    """
    if isinstance(fallback, str):
        raise PolicyError(f"fallback={fallback!r} is one text, need a list of zones: [{fallback!r}]")
    return tuple(fallback)


def counts_deliveries(name: str) -> bool:
    """Read when a record counts: `"queued"` or `"delivered"`.

    Raises:
        PolicyError: it is neither.
    """
    if name not in {"queued", "delivered"}:
        raise PolicyError(f"count={name!r}: choose 'queued' or 'delivered'")
    return name == "delivered"


def key_mode(name: str) -> KeyMode:
    """Read a key mode.

    Raises:
        PolicyError: there is no such mode.
    """
    try:
        return KeyMode(name)
    except ValueError:
        known = ", ".join(repr(mode.value) for mode in KeyMode)
        raise PolicyError(f"keys={name!r} is no key mode: choose one of {known}") from None
