"""Finds the candidate partitions of a record, from the leaders of the topic.

Pure functions of leaders, racks and preferences; the clients read the metadata. When a leader returns to the zone,
records follow only after it has stayed for a while.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum

Leaders = Sequence[int | None]
Racks = Mapping[int, str | None]
Replicas = Sequence[Sequence[int]]
"""Broker ids per partition, the leader among them."""


class Reason(StrEnum):
    """The reason for a record's partition; every reason except `local` may mean another zone."""

    LOCAL = "local"
    PREFERRED_ZONE = "preferred zone"
    NO_LOCAL_LEADER = "no local leader"
    NO_LEADER = "no leader at all"
    NOT_AWARE = "awareness is off"
    NO_RACK = "own rack not set"
    UNKNOWN_RACK = "no broker has the own rack"
    NO_BROKER_RACK = "no broker has a rack"
    SKEW = "skew guard"
    GLOBAL_KEY = "global key"
    EXPLICIT = "explicit partition"
    NO_METADATA = "no metadata yet"


@dataclass(frozen=True, slots=True)
class Locality:
    """The current candidate partitions of one topic's records.

    Attributes:
        candidates: partition ids, ascending.
        reason: the reason for these candidates.
        rank: 0 is the producer's zone, then the preferred zones in order, then every led partition, then all; lower is
            better.
    """

    candidates: tuple[int, ...]
    reason: Reason
    rank: int


def zones_of(leaders: Leaders, racks: Racks) -> tuple[str | None, ...]:
    """Return the zone of each partition's leader; None without a leader or a rack."""
    return tuple(None if leader is None else racks.get(leader) or None for leader in leaders)


def copies_elsewhere(leaders: Leaders, replicas: Replicas, racks: Racks) -> tuple[int, ...]:
    """Count the replicas of each partition in other zones than its leader's, to which brokers copy each record.

    Args:
        leaders: broker id per partition, None without a leader; shape (P,).
        replicas: broker ids per partition; partitions beyond its end have none.
        racks: rack per broker id.

    Returns:
        Copies per partition, shape (P,). Replicas and leaders without a known zone count 0.
    """
    zones = zones_of(leaders, racks)
    held = [*replicas[: len(zones)], *[()] * (len(zones) - len(replicas))]
    return tuple(
        sum((racks.get(replica) or zone) != zone for replica in brokers) if zone else 0
        for zone, brokers in zip(zones, held, strict=True)
    )


def locate(
    leaders: Leaders, racks: Racks, rack: str | None, fallback: Sequence[str] = (), *, aware: bool = True
) -> Locality:
    """Find the best non-empty set of partitions: producer's zone, preferred zones in order, all with a leader, all.

    Args:
        leaders: broker id per partition, None without a leader; shape (P,).
        racks: rack per broker id; missing brokers and None have no rack and belong to no zone.
        rack: the producer's zone, None if unknown.
        fallback: zones to try after the producer's.
        aware: False uses every partition with a leader.

    Returns:
        The candidates and the reason. Empty only if the topic has no partitions.

    Source: KIP-1123 (own rack, then all available, then all); the order of zones between is ours.
    """
    led = tuple(partition for partition, leader in enumerate(leaders) if leader is not None)
    if aware and rack is not None:
        zones = zones_of(leaders, racks)
        for rank, zone in enumerate((rack, *fallback)):
            near = tuple(partition for partition in led if zones[partition] == zone)
            if near:
                return Locality(near, Reason.PREFERRED_ZONE if rank else Reason.LOCAL, rank)
    if led:
        return Locality(led, _why_not_local(racks, rack, aware=aware), len(fallback) + 1)
    return Locality(tuple(range(len(leaders))), Reason.NO_LEADER, len(fallback) + 2)


def _why_not_local(racks: Racks, rack: str | None, *, aware: bool) -> Reason:
    if not aware:
        return Reason.NOT_AWARE
    if rack is None:
        return Reason.NO_RACK
    known = {zone for zone in racks.values() if zone}
    if not known:
        return Reason.NO_BROKER_RACK
    return Reason.NO_LOCAL_LEADER if rack in known else Reason.UNKNOWN_RACK


def levels_of(
    leaders: Leaders, racks: Racks, rack: str | None, fallback: Sequence[str] = (), *, aware: bool = True
) -> tuple[Locality, ...]:
    """List every level that has partitions, best first; arguments as `locate`."""
    best = locate(leaders, racks, rack, fallback, aware=aware)
    lower: list[Locality] = []
    if best.reason in {Reason.LOCAL, Reason.PREFERRED_ZONE}:
        zones = zones_of(leaders, racks)
        for rank, zone in enumerate(fallback, start=1):
            near = tuple(partition for partition, where in enumerate(zones) if where == zone)
            if near and rank > best.rank:
                lower.append(Locality(near, Reason.PREFERRED_ZONE, rank))
        led = tuple(partition for partition, leader in enumerate(leaders) if leader is not None)
        lower.append(Locality(led, Reason.NO_LOCAL_LEADER, len(fallback) + 1))
    return (best, *lower)


@dataclass(frozen=True, slots=True)
class LocalityInUse:
    """The locality that a topic uses now, and the time since which a better one is available.

    Attributes:
        locality: the partitions in use.
        better_since: time at which a better set was first seen, seconds of a monotonic clock; None if none is better.
    """

    locality: Locality
    better_since: float | None = None


def settle(in_use: LocalityInUse | None, levels: Sequence[Locality], now: float, hold_s: float) -> LocalityInUse:
    """Adopt a worse set immediately, a better one only after `hold_s`, so that a flapping leader moves no records back.

    Args:
        in_use: the previous locality, None at first.
        levels: every non-empty level of the topic now, best first (see `levels_of`).
        now: seconds of a monotonic clock.
        hold_s: time that a better set must last, seconds.

    Returns:
        The locality to use from now on.
    """
    best = levels[0]
    if in_use is None or best.rank >= in_use.locality.rank:
        return LocalityInUse(best)
    kept = next((level for level in levels if level.rank == in_use.locality.rank), None)
    since = now if in_use.better_since is None else in_use.better_since
    if kept is None or kept.reason is Reason.NO_LEADER or now - since >= hold_s:
        return LocalityInUse(best)
    # The reason of the level in use stays: a local leader has returned, but records still go elsewhere.
    return LocalityInUse(Locality(kept.candidates, in_use.locality.reason, kept.rank), since)
