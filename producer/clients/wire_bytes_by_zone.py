"""Bytes on the wire since the start, by zone."""

import threading
from collections.abc import Callable, Mapping

from producer.decisions.leader_locality import Racks
from producer.traffic_cost import UNKNOWN


class WireBytesByZone:
    """Adds bytes to the zone that their broker has when they are read, so that no later change of a rack moves them.

    Contract: may be called from any thread.
    """

    def __init__(self) -> None:
        self._read: dict[int, int] = {}
        self._zones: dict[str, int] = {}
        self._lock = threading.Lock()

    def by_zone(self) -> dict[str, int]:
        """Return the bytes of each zone so far."""
        with self._lock:
            return dict(self._zones)

    def update(self, sent: Callable[[], Mapping[int, int]], racks: Racks) -> dict[str, int]:
        """Add the bytes since the last call, and return the bytes of each zone.

        Args:
            sent: returns the bytes that each broker got since the client has known it. librdkafka forgets a broker
                while the metadata lacks it, and then counts from 0. It is called in the order of the additions: an
                older total after a newer one would look like such a start at 0.
            racks: of the brokers.
        """
        with self._lock:
            for broker, now in sent().items():
                before = self._read.get(broker, 0)
                self._read[broker] = now
                zone = racks.get(broker) or UNKNOWN
                self._zones[zone] = self._zones.get(zone, 0) + (now - before if now >= before else now)
            return dict(self._zones)
