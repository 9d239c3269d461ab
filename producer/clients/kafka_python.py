"""`AZAwarePartitioner`: keeps the records of kafka-python's `KafkaProducer` in their zone."""

import weakref
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from threading import get_ident
from time import monotonic
from typing import Protocol

from confluent_kafka import murmur2
from kafka import KafkaProducer
from kafka.cluster import ClusterMetadata
from kafka.partitioner import Partitioner
from kafka.producer.record_accumulator import RecordAccumulator
from kafka.structs import TopicPartition

from producer.clients.wire_bytes import WireTotals
from producer.decisions.producer_settings import ZonePolicy, key_mode, zone_order
from producer.decisions.skew_guard import SkewGuard
from producer.errors import UnknownTopicError
from producer.routing.interpreted_path import BYTES, RECORD, Lane
from producer.routing.partition_choice import Route
from producer.routing.topic_choices import Router
from producer.traffic_counts import UNKNOWN, Traffic

_LOOK_S = 1.0


class AZAwarePartitioner(Partitioner):
    """Chooses leaders in the own zone: `KafkaProducer(partitioner=AZAwarePartitioner(rack="az-a"))`.

    Args:
        rack: the own zone, as the brokers' `broker.rack` names it.
        keys: `"global"`, `"local-mod"` or `"local-hrw"`, as for `AZAwareProducer`: both put a key into the same
            partition.
        fallback: zones to try in this order when the own zone leads no partition of a topic.
        aware: False counts traffic only and spreads records over all partitions.
        skew: bound on how uneven locality may make the partitions.
        batch_bytes: bytes before records without a key move on; give what the producer has as `batch_size`.
        hold_s: how long a returned leader must stay before records come back to it, seconds.
        refresh_s: how often metadata is asked for while some topic is away from its zone, seconds.

    Raises:
        PolicyError: a setting has a value that cannot work.

    Contract:
    * One partitioner serves one producer; `partition` may be called from several threads.
    * kafka-python calls `partition` a second time for a record that needs a new batch, after `on_new_batch`: the record
      is counted once, and it moves on only when its run has had its bytes (KIP-794), not at every new batch (KIP-480).
    * Records with an explicit partition are not seen here, so they are not counted; one that kafka-python refuses after
      it has asked for a partition (larger than `max_request_size`, no room in the buffer) is counted.
    """

    def __init__(  # noqa: PLR0913 - one setting each, keyword-only
        self,
        rack: str | None = None,
        *,
        keys: str = "global",
        fallback: Iterable[str] = (),
        aware: bool = True,
        skew: SkewGuard | None = None,
        batch_bytes: int = 16_384,
        hold_s: float = 5.0,
        refresh_s: float = 10.0,
    ) -> None:
        policy = ZonePolicy(
            rack=rack,
            keys=key_mode(keys),
            fallback=zone_order(fallback),
            batch_bytes=batch_bytes,
            hold_s=hold_s,
            aware=aware,
            skew=skew,
        )
        self._router = Router(policy)
        self._routes = self._router.routes
        self._refresh_s = refresh_s
        self._glances: dict[str, _Glance] = {}
        self._ask_at = 0.0
        self._wire: WireTotals | None = None
        self._accumulator: Callable[[], RecordAccumulator | None] = lambda: None
        self._racks: dict[int, str | None] = {}
        self._last: dict[int, tuple[Lane, int]] = {}

    def partition(  # noqa: PLR0913, PLR0917 - kafka-python's signature
        self,
        topic: str,
        key: object,  # noqa: ARG002 - the serialized one counts
        serialized_key: bytes | None,
        value: object,  # noqa: ARG002 - as key
        serialized_value: bytes | None,
        cluster: ClusterMetadata,
    ) -> int:
        """Choose a partition; arguments as kafka-python gives them.

        Raises:
            UnknownTopicError: the topic has no partitions in this client's metadata.
        """
        # Straight down and without a helper, as `AZAwareProducer.produce`: a call costs a tenth of the time there is.
        glance = self._glances.get(topic)
        metadata = cluster._partitions  # noqa: SLF001 - its identity is the only sign of a refresh that costs nothing
        if glance is None or glance.metadata is not metadata or (glance.away and monotonic() >= glance.until):
            glance = self._look(topic, cluster)
        if serialized_key is None:
            lane = glance.route.lane
            number = lane.partition
            if glance.partitions[number].leader_id != glance.leaders[number]:
                # Leader hints (KIP-951) change the metadata in place, so its identity says nothing about them.
                lane = self._look(topic, cluster).route.lane
                number = lane.partition
            size = len(serialized_value) if serialized_value is not None else 0
            packed = lane.unkeyed.packed
            packed[number] += RECORD + size
            self._last[get_ident()] = lane, size
            if packed[number] & BYTES >= lane.switch_at:
                self._advance(glance.route, lane)
            return number
        if type(serialized_key) is not bytes:
            serialized_key = bytes(serialized_key)
        lane = glance.route.lane
        number = lane.table[murmur2(serialized_key, lane.slots)]
        if glance.partitions[number].leader_id != glance.leaders[number]:
            lane = self._look(topic, cluster).route.lane
            number = lane.table[murmur2(serialized_key, lane.slots)]
        size = len(serialized_value) if serialized_value is not None else 0
        amount = len(serialized_key) + size + RECORD
        lane.keyed.packed[number] += amount  # no call between its two halves: another thread could count there
        return number

    def on_new_batch(self, topic: str, cluster: ClusterMetadata, prev_partition: int) -> None:  # noqa: ARG002 - its hook
        """Take back the count of the record that found no room, and move on if its run had its bytes."""
        last = self._last.pop(get_ident(), None)
        route = self._routes.get(topic)
        if last is None or route is None or last[0].partition != prev_partition:
            return
        lane, size = last
        lane.unkeyed.add(prev_partition, -size, -1)
        # Headers of batch and records fill a batch before the payload does: one that closed nearly full was full.
        run = lane.unkeyed.of(prev_partition).bytes
        if lane is route.lane and run >= lane.switch_at - self._router.policy.batch_bytes // 4:
            self._advance(route, lane)

    def _advance(self, route: Route, lane: Lane) -> None:
        accumulator = self._accumulator()
        if accumulator is not None:
            self._router.weigh(route.topic, _batches_waiting(accumulator, route))
        self._router.advance(route.topic, lane)

    def watch(self, producer: KafkaProducer) -> None:
        """Count the bytes on the wire as well, and avoid slow leaders; call it once, before the first record."""
        self._accumulator = weakref.ref(producer._accumulator)  # noqa: SLF001 - nothing public tells what waits
        self._wire = WireTotals(producer._metrics)  # noqa: SLF001 - the public view has rates only, which forget

    def traffic(self) -> Traffic:
        """Say where the records went so far; bytes are those of keys and values before compression."""
        return self._router.traffic(self._wire_bytes())

    def _wire_bytes(self) -> dict[str, int]:
        zones: dict[str, int] = {}
        for broker, sent in self._wire.by_node().items() if self._wire else ():
            zone = self._racks.get(broker) or UNKNOWN
            zones[zone] = zones.get(zone, 0) + sent
        return zones

    def _look(self, topic: str, cluster: ClusterMetadata) -> "_Glance":
        metadata = cluster._partitions  # noqa: SLF001 - leaders without a copy per record
        found = metadata.get(topic)
        if not found:
            raise UnknownTopicError(
                f"topic {topic!r} has no partitions in this client's metadata: does it exist, may this client see it?"
            )
        now = monotonic()
        partitions = [found.get(number, _NOBODYS) for number in range(max(found) + 1)]
        leaders = [partition.leader_id for partition in partitions]
        # Brokers that are down keep the rack they had.
        self._racks |= {broker.node_id: broker.rack or None for broker in cluster.brokers()}
        known = [leader if leader >= 0 else None for leader in leaders]
        route = self._router.update(topic, known, self._racks, now)
        away = self._router.is_away(route)
        glance = _Glance(metadata, partitions, leaders, route, away, now + _LOOK_S)
        self._glances[topic] = glance
        if away and now >= self._ask_at:
            # A way back to the own zone raises no error, and the client's own refresh takes 300 s.
            self._ask_at = now + self._refresh_s
            cluster.request_update()
        return glance


def _batches_waiting(accumulator: RecordAccumulator, route: Route) -> dict[int, int]:
    waiting = accumulator._batches  # noqa: SLF001 - nothing public tells what waits
    places = (TopicPartition(route.topic, partition) for partition in route.locality.candidates)
    return {place.partition: len(waiting[place]) for place in places if waiting.get(place)}


class _Led(Protocol):
    """The part of kafka-python's partition metadata that is read here."""

    leader_id: int


@dataclass(frozen=True, slots=True)
class _Nobodys:
    leader_id: int = -1


_NOBODYS = _Nobodys()


@dataclass(frozen=True, slots=True)
class _Glance:
    """What the last look at a topic's metadata saw.

    Attributes:
        metadata: the client's metadata then, by identity.
        partitions: the client's own objects, whose leaders change in place.
        leaders: their leaders then, -1 for none.
        route: of the topic.
        away: whether another look is due at `until` even if nothing seems to change.
        until: seconds of a monotonic clock.
    """

    metadata: object
    partitions: Sequence[_Led]
    leaders: Sequence[int]
    route: Route
    away: bool
    until: float
