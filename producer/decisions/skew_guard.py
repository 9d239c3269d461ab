"""Computes the locality to give up so that no partition outgrows the others."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from math import isfinite
from types import MappingProxyType

from producer.errors import PolicyError


@dataclass(frozen=True, slots=True, kw_only=True)
class SkewGuard:
    """Bound on the largest partition's bytes divided by the mean partition's bytes.

    Only records without a key go to other zones for this bound, because readers rely on the partition of a key.

    Attributes:
        bound: largest accepted max/mean, above 1.
        zones: relative number of bytes produced in each zone (`{"az-a": 1, "az-b": 1}`). If empty, this producer's zone
            is assumed to produce all bytes, the worst case.

    Raises:
        PolicyError: the bound or a share cannot work.
    """

    bound: float = 2.0
    zones: Mapping[str, float] = field(default_factory=lambda: MappingProxyType({}))

    def __post_init__(self) -> None:
        if not (self.bound > 1 and isfinite(self.bound)):
            raise PolicyError(
                f"bound={self.bound!r}, need a number above 1: bytes of the largest partition divided by the mean"
            )
        if any(not (share >= 0 and isfinite(share)) for share in self.zones.values()):
            raise PolicyError(f"zones={dict(self.zones)!r}: shares must be 0 or more")


@dataclass(frozen=True, slots=True)
class Spill:
    """The bytes that one zone's producers deliberately send to other zones.

    Attributes:
        share: fraction of the zone's bytes that goes to other zones, 0 to 1.
        weights: distribution of those bytes over all partitions, sum 1; shape (P,). The zone's partitions have 0.
    """

    share: float
    weights: tuple[float, ...]


def spill(guard: SkewGuard, zones: Sequence[str | None], rack: str) -> Spill:
    """Compute the smallest fraction of its bytes that this zone must send to other zones so that the bound holds.

    If all bytes stay in their zone, each partition of zone z receives x_z bytes. Zones above the bound send the excess;
    the others are filled from the emptiest (water filling). Every producer computes the same plan without
    communication.

    Args:
        guard: the bound and the zones' shares of the production.
        zones: zone of each partition's leader, None without a leader; shape (P,). Partitions without a leader are left
            out, because they cannot take records.
        rack: the producer's zone.

    Returns:
        This zone's part of that plan; a share of 0 if no byte has to leave.
    """
    produced = {zone: share for zone, share in guard.zones.items() if share > 0} or {rack: 1.0}
    total = sum(produced.values())
    homes = {zone: sum(1 for where in zones if where == zone) for zone in produced}
    homeless = sum(share for zone, share in produced.items() if not homes[zone]) / total
    count = len(zones)
    mean = 1.0 / count
    load = [homeless * mean + (produced[where] / total / homes[where] if where in produced else 0.0) for where in zones]
    limit = guard.bound * mean
    excess = sum(max(0.0, one - limit) for one in load)
    own = [one for one, where in zip(load, zones, strict=True) if where == rack]
    if excess <= 0 or not own or own[0] <= limit:
        return Spill(0.0, (0.0,) * count)
    level = _water_level([min(one, limit) for one in load], excess)
    room = [max(0.0, level - min(one, limit)) if where != rack else 0.0 for one, where in zip(load, zones, strict=True)]
    given = sum(one - limit for one in own)
    return Spill(given / (produced[rack] / total), tuple(one / sum(room) for one in room))


def _water_level(heights: Sequence[float], water: float) -> float:
    """Return the level of an amount of water on ground of these heights."""
    ordered = sorted(heights)
    below = 0.0
    for count, height in enumerate(ordered, start=1):
        below += height
        above = ordered[count] if count < len(ordered) else float("inf")
        level = (below + water) / count
        if level <= above:
            return level
    return ordered[-1]  # pragma: no cover - the last round always returns
