"""Bytes that an agent received, by the zone of the broker they came from, and what those of other zones cost."""

from collections.abc import Callable, Mapping
from typing import Any

from producer import ProducerError
from producer.topology import read_racks
from producer.traffic_counts import GB, UNKNOWN
from spark_sink.fleet.background_values import BackgroundValue

_TIMEOUT_S = 5.0
_AGAIN_S = 60.0

Racks = Mapping[int, str | None]


class BrokerZones:
    """The zones of one cluster's brokers, asked for when one is heard of that is not known.

    Args:
        kafka: librdkafka's properties of the cluster.
        ask: for racks by broker id; by default the cluster.
    """

    def __init__(self, kafka: Mapping[str, Any], ask: Callable[[], Racks] | None = None) -> None:
        self._ask = ask or (lambda: read_racks(kafka, _TIMEOUT_S))
        self._racks = BackgroundValue[Racks](self._read, {}, _AGAIN_S)

    def of(self, received: Mapping[int, int]) -> dict[str, int]:
        """Add bytes up by zone; never waits: a broker that is asked just now, or has no rack, is unknown.

        Args:
            received: bytes by broker id.
        """
        racks = self._racks.last
        if received.keys() - racks.keys():
            racks = self._racks()
        found: dict[str, int] = {}
        for broker, size in received.items():
            zone = racks.get(broker) or UNKNOWN
            found[zone] = found.get(zone, 0) + size
        return found

    def _read(self) -> Racks:
        try:
            return {**self._racks.last, **self._ask()}
        except ProducerError:  # no answer or no right to ask: unknown, as it says
            return self._racks.last


def crossing(received: Mapping[str, int], own: str | None, price_per_gb: float, seconds: float) -> dict[str, float]:
    """Say what of the bytes came from other zones, and what that costs.

    Args:
        received: bytes by zone.
        own: zone of the agent; None where it is not set.
        price_per_gb: money per 10^9 bytes.
        seconds: since when they were counted.

    Returns:
        `bytes`, `share` of all bytes whose zone is known, `cost` and `cost_per_hour`. Bytes of unknown zones cost
        nothing here; where the own zone is unknown nothing can be said, and it is empty.
    """
    if own is None:
        return {}
    known = {zone: size for zone, size in received.items() if zone != UNKNOWN}
    crossed = sum(size for zone, size in known.items() if zone != own)
    cost = crossed / GB * price_per_gb
    return {
        "bytes": crossed,
        "share": crossed / sum(known.values()) if crossed else 0.0,
        "cost": cost,
        "cost_per_hour": cost / seconds * 3600 if seconds > 0 else 0.0,
    }
