"""What a consumer received, by the zone of the broker that sent it, and its price: the consumer's leg of a pipeline.

The names are those of a producer's `Traffic`, so that both legs can be added up and shown in the same way.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, Final, NamedTuple, Self

from assignors.errors import AssignorError

UNKNOWN: Final = "unknown"
"""The zone of a broker without a rack, and of brokers whose racks could not be read."""
_GB: Final = 1e9


class Received(NamedTuple):
    """Records and their bytes (keys and values, decompressed)."""

    records: int = 0
    bytes: int = 0

    def plus(self, other: "Received") -> "Received":
        """Add two counts."""
        return Received(self.records + other.records, self.bytes + other.bytes)

    def minus(self, other: "Received") -> "Received":
        """Subtract an earlier count of the same."""
        return Received(self.records - other.records, self.bytes - other.bytes)


@dataclass(frozen=True, slots=True, kw_only=True)
class ReceivedTraffic:
    """The bytes that a consumer received, by topic and zone of the broker.

    Attributes:
        rack: zone of the consumer (`client.rack`); None if unknown.
        topics: by (topic, zone of the broker that was read from: the leader, or a closer replica, KIP-392).
        wire_bytes: bytes on the wire from each zone, compressed, with headers and the group's requests; empty if they
            are not known.
    """

    rack: str | None = None
    topics: Mapping[tuple[str, str], Received] = field(default_factory=dict)
    wire_bytes: Mapping[str, int] = field(default_factory=dict)

    @classmethod
    def of(
        cls,
        counts: Mapping[tuple[str, int], Received],
        racks: Mapping[int, str | None],
        rack: str | None,
        wire: Mapping[int, int] | None = None,
    ) -> Self:
        """Add up what brokers sent by their zones.

        Args:
            counts: by topic and broker id.
            racks: rack per broker id; brokers that are missing, or have None, count as unknown.
            rack: zone of the consumer.
            wire: bytes on the wire by broker id.

        Returns:
            The traffic, sorted by topic and zone.
        """
        topics: dict[tuple[str, str], Received] = {}
        for (topic, broker), count in counts.items():
            cell = topic, racks.get(broker) or UNKNOWN
            topics[cell] = topics.get(cell, Received()).plus(count)
        zones: dict[str, int] = {}
        for broker, size in (wire or {}).items():
            zone = racks.get(broker) or UNKNOWN
            zones[zone] = zones.get(zone, 0) + size
        return cls(
            rack=None if rack is None else str(rack),
            topics=dict(sorted(topics.items())),
            wire_bytes=dict(sorted(zones.items())),
        )

    @property
    def zones(self) -> Mapping[str, Received]:
        """Counts by zone of the broker."""
        found: dict[str, Received] = {}
        for (_, zone), count in self.topics.items():
            found[zone] = found.get(zone, Received()).plus(count)
        return found

    @property
    def local(self) -> Received:
        """From brokers of the consumer's zone."""
        return self.zones.get(self.rack, Received()) if self.rack else Received()

    @property
    def cross(self) -> Received:
        """From brokers of other zones."""
        return _total(count for zone, count in self.zones.items() if self._crosses(zone))

    @property
    def unknown(self) -> Received:
        """From brokers whose zone is unknown, or everything if the consumer's zone is unknown."""
        return _total(count for zone, count in self.zones.items() if not self.rack or zone == UNKNOWN)

    @property
    def cross_zone_share(self) -> float:
        """Fraction of the bytes with known zones that came from another zone, 0 to 1; 0 before the first record."""
        known = self.local.bytes + self.cross.bytes
        return self.cross.bytes / known if known else 0.0

    def cost(self, price_per_gb: float = 0.01) -> float:
        """Price the bytes from other zones: an estimate from decompressed records; see `wire_cost`.

        Args:
            price_per_gb: price per 10^9 bytes and direction. If both ends are billed (AWS: $0.01 each), pass the sum.

        Returns:
            The cost, in the currency of the price. Bytes of unknown zones have no cost here: see `unknown`.

        Raises:
            AssignorError: the price is negative or not a number.
        """
        return self.cross.bytes / _GB * _price(price_per_gb)

    def wire_cost(self, price_per_gb: float = 0.01) -> float | None:
        """Price the bytes on the wire from other zones; arguments and errors as `cost`.

        Returns:
            The cost; None if the consumer's zone or the bytes on the wire are not known.
        """
        price = _price(price_per_gb)
        if self.rack is None or not self.wire_bytes:
            return None
        return sum(size for zone, size in self.wire_bytes.items() if self._crosses(zone)) / _GB * price

    def as_dict(self) -> dict[str, Any]:
        """Return all values as plain values, ready for JSON."""
        return {
            "rack": self.rack,
            "local": self.local._asdict(),
            "cross": self.cross._asdict(),
            "unknown": self.unknown._asdict(),
            "cross_zone_share": self.cross_zone_share,
            "zones": {zone: count._asdict() for zone, count in self.zones.items()},
            "topics": [
                {"topic": topic, "zone": zone, **count._asdict()} for (topic, zone), count in self.topics.items()
            ],
            "wire_bytes": dict(self.wire_bytes),
            "cost": self.cost(),
            "wire_cost": self.wire_cost(),
        }

    def _crosses(self, zone: str) -> bool:
        return bool(self.rack) and zone not in {self.rack, UNKNOWN}


def _total(counts: Iterable[Received]) -> Received:
    total = Received()
    for count in counts:
        total = total.plus(count)
    return total


def _price(per_gb: float) -> float:
    if not per_gb >= 0:  # also catches nan
        raise AssignorError(f"price_per_gb={per_gb!r}, need 0 or more")
    return per_gb
