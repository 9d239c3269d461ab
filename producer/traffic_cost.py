"""Bytes that stayed in their zone, bytes that left it, and their cost."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from producer.decisions.candidate_partitions_in_zone import Reason
from producer.decisions.producer_settings import need_number

UNKNOWN = "unknown"
GB = 1e9


class Count(NamedTuple):
    """Records and their bytes (key, value and headers, before compression)."""

    records: int = 0
    bytes: int = 0

    def plus(self, other: "Count") -> "Count":
        """Add two counts."""
        return Count(self.records + other.records, self.bytes + other.bytes)


_NONE = Count()


class Flow(NamedTuple):
    """Records of one topic that went to one zone for one reason."""

    topic: str
    zone: str | None
    reason: Reason
    amount: Count


@dataclass(frozen=True, slots=True, kw_only=True)
class Traffic:
    """The bytes of one producer by zone.

    Attributes:
        rack: zone of the producer; None if unknown.
        delivered: whether only delivered records count; otherwise every queued record counts, even if it fails later.
        local: to leaders of the producer's zone.
        cross: to leaders of another zone.
        unknown: to leaders whose zone is unknown, or if the producer's zone is unknown.
        zones: by zone of the leader (`"unknown"` if unknown).
        topics: by (topic, zone of the leader).
        reasons: by the reason for the partition.
        wire_bytes: bytes on the wire to each zone, counted by the client with requests and retries, once the racks of
            their brokers are known, or after a minute; empty before the client's first statistics.
        wire_topics: records that the client transmitted by (topic, zone), and the bytes of their batches on the wire;
            empty as long as `wire_bytes`, equal to `topics` if `wire_estimated`.
        wire_estimated: whether `wire_topics` is an estimate, because the client reports no statistics.
        replicated_bytes: bytes that brokers copy to replicas in other zones for these records, before compression; no
            client can avoid them. None if the replicas are not known.
        seconds: since the producer was created; 0 if it does not apply.
    """

    rack: str | None = None
    delivered: bool = False
    local: Count = _NONE
    cross: Count = _NONE
    unknown: Count = _NONE
    zones: Mapping[str, Count] = field(default_factory=dict)
    topics: Mapping[tuple[str, str], Count] = field(default_factory=dict)
    reasons: Mapping[Reason, Count] = field(default_factory=dict)
    wire_bytes: Mapping[str, int] = field(default_factory=dict)
    wire_topics: Mapping[tuple[str, str], Count] = field(default_factory=dict)
    wire_estimated: bool = True
    replicated_bytes: int | None = None
    seconds: float = 0.0

    @property
    def cross_zone_share(self) -> float:
        """Fraction of the bytes with known zones that left their zone, 0 to 1; 0 before the first record."""
        known = self.local.bytes + self.cross.bytes
        return self.cross.bytes / known if known else 0.0

    @property
    def matrix(self) -> Mapping[tuple[str, str], Count]:
        """Counts by (zone of the producer, zone of the leader)."""
        return {(self.rack or UNKNOWN, zone): count for zone, count in self.zones.items()}

    def cost(self, price_per_gb: float = 0.01) -> float:
        """Price the bytes that left their zone: an estimate from records before compression; see `wire_cost`.

        Args:
            price_per_gb: price per 10^9 bytes and direction. If both ends are billed (AWS: $0.01 each), pass the sum.

        Returns:
            The cost, in the currency of the price. Bytes of unknown zones have no cost here: see `unknown`.

        Raises:
            PolicyError: the price is negative or not a number.
        """
        need_number("price_per_gb", price_per_gb)
        return self.cross.bytes / GB * price_per_gb

    def wire_cost(self, price_per_gb: float = 0.01) -> float | None:
        """Price the bytes on the wire that left their zone: compressed, with requests and retries.

        Args:
            price_per_gb: as for `cost`.

        Returns:
            The cost; None if the producer's zone is unknown, or the client has not reported its bytes on the wire.

        Raises:
            PolicyError: the price is negative or not a number.
        """
        need_number("price_per_gb", price_per_gb)
        if self.rack is None or not self.wire_bytes:
            return None
        return (
            sum(sent for zone, sent in self.wire_bytes.items() if zone not in {self.rack, UNKNOWN}) / GB * price_per_gb
        )

    def replication_cost(self, price_per_gb: float = 0.01) -> float | None:
        """Price the copies to replicas in other zones, which brokers send and no client can avoid.

        Args:
            price_per_gb: as for `cost`.

        Returns:
            The cost, an estimate from records before compression; None if the replicas are not known.

        Raises:
            PolicyError: the price is negative or not a number.
        """
        need_number("price_per_gb", price_per_gb)
        return None if self.replicated_bytes is None else self.replicated_bytes / GB * price_per_gb

    def cost_per_hour(self, price_per_gb: float = 0.01) -> float:
        """Price an hour at the average rate so far; arguments and errors as `cost`."""
        cost = self.cost(price_per_gb)
        return cost * 3600 / self.seconds if self.seconds > 0 else 0.0

    def as_dict(self) -> dict[str, Any]:
        """Return all values as plain values, ready for JSON."""
        return {
            "rack": self.rack,
            "delivered": self.delivered,
            "local": self.local._asdict(),
            "cross": self.cross._asdict(),
            "unknown": self.unknown._asdict(),
            "cross_zone_share": self.cross_zone_share,
            "zones": {zone: count._asdict() for zone, count in self.zones.items()},
            "topics": [
                {"topic": topic, "zone": zone, **count._asdict()} for (topic, zone), count in self.topics.items()
            ],
            "reasons": {reason.value: count._asdict() for reason, count in self.reasons.items()},
            "wire_bytes": dict(self.wire_bytes),
            "wire_estimated": self.wire_estimated,
            "wire_topics": [
                {"topic": topic, "zone": zone, **count._asdict()} for (topic, zone), count in self.wire_topics.items()
            ],
            "replicated_bytes": self.replicated_bytes,
            "seconds": self.seconds,
            "cost": self.cost(),
            "wire_cost": self.wire_cost(),
            "replication_cost": self.replication_cost(),
            "cost_per_hour": self.cost_per_hour(),
        }


def summarise(  # noqa: PLR0913 - one figure each, keyword-only
    flows: Iterable[Flow],
    rack: str | None,
    *,
    delivered: bool = False,
    wire_bytes: Mapping[str, int] | None = None,
    replicated_bytes: int | None = None,
    seconds: float = 0.0,
) -> Traffic:
    """Add up flows from the view of one zone.

    Args:
        flows: any order, repeats are added.
        rack: zone of the producer; with None every flow is unknown.
        delivered: whether the flows are those of delivered records.
        wire_bytes: bytes on the wire by zone.
        replicated_bytes: bytes that brokers copy to other zones; None if unknown.
        seconds: time the flows took.

    Returns:
        The traffic.
    """
    sides = {"local": Count(), "cross": Count(), "unknown": Count()}
    zones: dict[str, Count] = {}
    topics: dict[tuple[str, str], Count] = {}
    reasons: dict[Reason, Count] = {}
    for topic, zone, reason, count in flows:
        side = "unknown" if zone is None or rack is None else "local" if zone == rack else "cross"
        name = zone or UNKNOWN
        sides[side] = sides[side].plus(count)
        zones[name] = zones.get(name, Count()).plus(count)
        topics[topic, name] = topics.get((topic, name), Count()).plus(count)
        reasons[reason] = reasons.get(reason, Count()).plus(count)
    return Traffic(
        rack=rack,
        delivered=delivered,
        local=sides["local"],
        cross=sides["cross"],
        unknown=sides["unknown"],
        zones=dict(sorted(zones.items())),
        topics=dict(sorted(topics.items())),
        reasons=dict(sorted(reasons.items())),
        wire_bytes=dict(sorted((wire_bytes or {}).items())),
        wire_topics=dict(sorted(topics.items())),
        replicated_bytes=replicated_bytes,
        seconds=seconds,
    )


def matrix(traffics: Iterable[Traffic]) -> dict[tuple[str, str], Count]:
    """Add up several producers into records and bytes by (zone of the producer, zone of the leader)."""
    cells: dict[tuple[str, str], Count] = {}
    for traffic in traffics:
        for cell, count in traffic.matrix.items():
            cells[cell] = cells.get(cell, Count()).plus(count)
    return cells
