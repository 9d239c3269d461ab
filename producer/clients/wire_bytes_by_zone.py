"""Bytes on the wire since the start, by zone."""

import threading
from collections.abc import Callable, Mapping
from time import monotonic
from typing import Final

from producer.decisions.candidate_partitions_in_zone import Racks
from producer.traffic_cost import UNKNOWN

RACKS_WITHIN_S: Final = 60.0
"""Longest wait for a broker's rack, seconds. A new broker's is read within a second, or within 30 s of a failed
request."""


class AwaitedRacks:
    """Decides whether bytes of a broker wait for its rack, because a counter of "unknown" could not fall afterwards.

    Not safe for threads: the caller holds a lock.
    """

    def __init__(self, clock: Callable[[], float] = monotonic, within_s: float = RACKS_WITHIN_S) -> None:
        self._clock = clock
        self._within_s = within_s
        self._since: dict[int, float] = {}

    def awaits(self, broker: int, racks: Racks) -> bool:
        """Return whether the rack is not known yet, but may still be read.

        Args:
            broker: its id; negative for an unknown broker, which does not wait.
            racks: of the brokers; None for a broker without a rack, which does not wait either.
        """
        if broker < 0 or broker in racks:
            self._since.pop(broker, None)
            return False
        now = self._clock()
        return now - self._since.setdefault(broker, now) < self._within_s


class WireBytesByZone:
    """Adds bytes to the zone that their broker has when they are read, so that no later change of a rack moves them.

    Bytes of a broker whose rack is not known yet are held back, and added when it is known or the wait is over.

    Contract: may be called from any thread.
    """

    def __init__(self, clock: Callable[[], float] = monotonic, within_s: float = RACKS_WITHIN_S) -> None:
        self._awaited = AwaitedRacks(clock, within_s)
        self._read: dict[int, int] = {}
        self._held: dict[int, int] = {}
        self._zones: dict[str, int] = {}
        self._lock = threading.RLock()  # a signal handler may call while this thread holds it

    def by_zone(self) -> dict[str, int]:
        """Return the bytes of each zone so far, without those that are held back."""
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
                self._held[broker] = self._held.get(broker, 0) + (now - before if now >= before else now)
            for broker in list(self._held):
                if not self._awaited.awaits(broker, racks):
                    zone = racks.get(broker) or UNKNOWN
                    self._zones[zone] = self._zones.get(zone, 0) + self._held.pop(broker)
            return dict(self._zones)
