"""Bytes that an agent received, by the zone of the broker, and the cost of those from other zones."""

from collections import Counter
from collections.abc import Callable, Mapping
from typing import Any

from producer import ProducerError
from producer.metadata_requests import read_racks
from producer.traffic_cost import GB, UNKNOWN
from spark_sink.fleet.background_values import BackgroundValue

_TIMEOUT_S = 5.0
_AGAIN_S = 60.0

Racks = Mapping[int, str | None]


class BrokerZones:
    """The zones of one cluster's brokers, requested when an unknown broker appears.

    Args:
        kafka: librdkafka's properties of the cluster.
        ask: returns racks by broker id; by default a request to the cluster.
    """

    def __init__(self, kafka: Mapping[str, Any], ask: Callable[[], Racks] | None = None) -> None:
        self._ask = ask or (lambda: read_racks(kafka, _TIMEOUT_S))
        self._racks = BackgroundValue[Racks](self._read, {}, _AGAIN_S)

    def of(self, received: Mapping[int, int]) -> dict[str, int]:
        """Add up bytes by zone; never waits: a broker whose rack is not known yet, or has no rack, counts as unknown.

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
        except ProducerError:  # no answer, or no right: the zones stay unknown
            return self._racks.last


def received_by_broker(statistics: Mapping[str, Any]) -> dict[int, int]:
    """Return the bytes received on the wire since the consumer's start, by broker id.

    Args:
        statistics: librdkafka's. A broker may be listed twice, the second time as the group's coordinator; bootstrap
            connections have no id yet.
    """
    found: Counter[int] = Counter()
    for one in statistics.get("brokers", {}).values():
        if one.get("nodeid", -1) >= 0:
            found[one["nodeid"]] += one.get("rxbytes", 0)
    return dict(found)


def crossing(received: Mapping[str, int], own: str | None, price_per_gb: float, seconds: float) -> dict[str, float]:
    """Compute the bytes from other zones, and their cost.

    Args:
        received: bytes by zone.
        own: zone of the agent; None if it is not set.
        price_per_gb: money per 10^9 bytes.
        seconds: time over which they were counted.

    Returns:
        `bytes`, `share` of all bytes with a known zone, `cost` and `cost_per_hour`. Bytes of unknown zones have no cost
        here. The result is empty if the agent's zone is unknown.
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
