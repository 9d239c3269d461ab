"""All topics of one producer: the core both clients share. No client, no clock and no thread of its own."""

import threading
import warnings
from collections.abc import Mapping
from time import monotonic

from producer.decisions.leader_locality import Leaders, Racks, Reason
from producer.decisions.producer_settings import ZonePolicy
from producer.decisions.sticky import Chance, chance
from producer.errors import RackWarning
from producer.routing.interpreted_path import Lane
from producer.routing.partition_choice import Route
from producer.traffic_counts import Count, Flow, Traffic, summarise


class Router:
    """Routes of all topics, and what their traffic adds up to.

    Contract:
    * `routes` and `lanes` may be read without the lock, which everything that changes them holds.
    * Methods may be called from any thread; none of them blocks on anything but the lock.
    """

    def __init__(self, policy: ZonePolicy, draw: Chance | None = None, *, lane: type[Lane] = Lane) -> None:
        self.policy = policy
        self.routes: dict[str, Route] = {}
        self.lanes: dict[str, Lane] = {}
        self._lane = lane
        self.racks_seen: set[str] = set()
        self._chance = draw or chance()
        self._lock = threading.RLock()
        self._warned = False
        self._unrouted: dict[str, Count] = {}
        self._started = monotonic()

    def update(self, topic: str, leaders: Leaders, racks: Racks, now: float) -> Route:
        """Take news of a topic's leaders.

        Args:
            topic: its name.
            leaders: broker id per partition, not empty; None without a leader.
            racks: rack per broker id.
            now: seconds of a monotonic clock.

        Returns:
            The topic's route, changed in place when it was known.
        """
        with self._lock:
            route = self.routes.get(topic)
            known = route or Route(topic, self.policy, self._chance, self._lane)
            known.relocate(leaders, racks, now)
            self.racks_seen.update(rack for rack in racks.values() if rack)
            if route is None:
                self.routes[topic] = known
            self.lanes[topic] = known.lane
        self._warn_of_racks(bool(racks))
        return known

    def _warn_of_racks(self, looked: bool) -> None:  # noqa: FBT001 - private, one caller
        problem = rack_problem(self.policy, self.racks_seen) if looked else None
        if problem is None or self._warned:
            return
        self._warned = True
        warnings.warn(problem, RackWarning, stacklevel=2)

    def advance(self, topic: str, lane: Lane) -> None:
        """Move a topic's records without a key on to another partition, unless another thread already did."""
        with self._lock:
            route = self.routes[topic]
            if lane is route.lane:
                route.advance()
                self.lanes[topic] = route.lane

    def weigh(self, topic: str, queues: Mapping[int, int]) -> None:
        """Tell how much waits for each partition of a topic; unknown topics are ignored."""
        with self._lock:
            route = self.routes.get(topic)
            if route is not None:
                route.weigh(queues)

    def count_unrouted(self, topic: str, size: int) -> None:
        """Count a record that was sent before the topic's leaders were known."""
        with self._lock:
            self._unrouted[topic] = self._unrouted.get(topic, Count()).plus(Count(1, size))

    def away(self) -> bool:
        """Tell whether some topic would rather be elsewhere, so that leaders are worth another look soon."""
        return any(self.is_away(route) for route in list(self.routes.values()))

    def is_away(self, route: Route) -> bool:
        """Tell whether a topic's records leave their zone although the zone has, or had, brokers to come back to."""
        return self.policy.aware and self.policy.rack in self.racks_seen and route.locality.rank > 0

    def traffic(self, wire_bytes: Mapping[str, int] | None = None) -> Traffic:
        """Add up what went where so far."""
        with self._lock:
            flows = [Flow(topic, None, Reason.NO_METADATA, count) for topic, count in self._unrouted.items()]
            for route in self.routes.values():
                route.attribute()
                flows.extend(route.flows())
        return summarise(flows, self.policy.rack, wire_bytes=wire_bytes, seconds=monotonic() - self._started)


def rack_problem(policy: ZonePolicy, seen: set[str]) -> str | None:
    """Say why no record can stay in its zone; None when nothing is wrong.

    Args:
        policy: the producer's settings.
        seen: every rack a broker has had since the producer was made. A zone that is down now was seen before.

    Returns:
        One sentence that names the racks and the way out.
    """
    if not policy.aware:
        return None
    racks = ", ".join(repr(rack) for rack in sorted(seen)) or "none at all"
    if policy.rack is None:
        return f"the own rack is not set, so no record is kept local (racks of the brokers: {racks}): set client.rack"
    if not seen:
        return (
            f"no broker has a rack, so nothing is known to be local to {policy.rack!r}: set broker.rack on the brokers"
        )
    if policy.rack not in seen:
        return (
            f"no broker has the rack {policy.rack!r} (racks of the brokers: {racks}), so every record leaves its zone: "
            "spell client.rack as broker.rack does; a zone name (eu-west-1a) is not a zone id (euw1-az1)"
        )
    return None
