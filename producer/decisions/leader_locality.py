"""Finds the candidate partitions of a record, from the leaders of the topic.

Pure functions of leaders, racks and preferences; the clients read the metadata.
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
    """The present candidate partitions of one topic's records.

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
