"""`AZAwarePartitioner`: keeps the records of kafka-python's `KafkaProducer` in their zone."""

import functools
import weakref
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from threading import get_ident
from time import monotonic
from typing import Any, Protocol

from kafka import KafkaProducer
from kafka.cluster import ClusterMetadata
from kafka.partitioner import Partitioner
from kafka.producer.record_accumulator import RecordAccumulator
from kafka.structs import TopicPartition

from producer.clients.kafka_python_wire_bytes import WireTotals
from producer.clients.wire_bytes_by_zone import WireBytesByZone
from producer.decisions.application_partitioner import Choose
from producer.decisions.producer_settings import ZonePolicy, key_rules, need_number, zone_order
from producer.decisions.record_bytes import headers_length
from producer.decisions.skew_guard import SkewGuard
from producer.errors import PolicyError, UnknownTopicError
from producer.partitioning.partition_of_record import TopicPartitioner
from producer.partitioning.produce_interpreted import Destinations
from producer.partitioning.topics_in_use import TopicsInUse
from producer.traffic_cost import Traffic

try:
    from producer.partitioning import produce_compiled as hot
except ImportError:  # built without a C compiler
    from producer.partitioning import produce_interpreted as hot  # type: ignore[no-redef]

_LOOK_S = 1.0


class AZAwarePartitioner(Partitioner):
    """Chooses leaders in the producer's zone: `KafkaProducer(partitioner=AZAwarePartitioner(rack="az-a"))`.

    Args:
        rack: the producer's zone, as in the brokers' `broker.rack`.
        keys: a mode, or modes by pattern of the topic's name, as for `AZAwareProducer`: both put a key into the same
            partition.
        choose: chooses the partition of every record in place of `keys`, as for `AZAwareProducer`. If it raises an
            error or returns another partition, `send` raises `PolicyError`.
        fallback: zones to try in this order if the producer's zone leads no partition of a topic.
        aware: False only counts traffic and spreads records over all partitions.
        skew: bound on the imbalance of partitions that locality may cause.
        batch_bytes: bytes after which records without a key move to another partition; set it to the producer's
            `batch_size`.
        hold_s: time that a returned leader must stay before records return to it, seconds.
        refresh_s: interval of metadata requests while some topic has no local leader, seconds.

    Raises:
        PolicyError: a setting has a value that cannot work.

    Contract:
    * One partitioner serves one producer; `partition` may be called from several threads.
    * kafka-python calls `partition` a second time for a record that needs a new batch, after `on_new_batch`. The record
      is counted once. The partition changes only when the run has its bytes (KIP-794), not at every new batch
      (KIP-480).
    * Records with an explicit partition do not reach this class, so they are not counted. A record that kafka-python
      refuses after it has requested a partition (larger than `max_request_size`, no room in the buffer) is counted.
    """

    def __init__(  # noqa: PLR0913 - one setting each, keyword-only
        self,
        rack: str | None = None,
        *,
        keys: str | Mapping[str, str] = "global",
        choose: str | Choose | None = None,
        fallback: Iterable[str] = (),
        aware: bool = True,
        skew: SkewGuard | None = None,
        batch_bytes: int = 16_384,
        hold_s: float = 5.0,
        refresh_s: float = 10.0,
    ) -> None:
        need_number("refresh_s", refresh_s)
        if choose is not None and keys != "global":
            raise PolicyError(f"keys={keys!r} and choose={choose!r}: choose replaces keys, give one of them")
        mode, rules = key_rules(keys)
        policy = ZonePolicy(
            rack=rack,
            keys=mode,
            key_rules=rules,
            choose=choose,
            fallback=zone_order(fallback),
            batch_bytes=batch_bytes,
            hold_s=hold_s,
            aware=aware,
            skew=skew,
        )
        self.__topics_in_use = TopicsInUse(policy, destinations=hot.Destinations)
        self.__partitioners = self.__topics_in_use.partitioners
        self.__refresh_s = refresh_s
        self.__seen_topics: dict[str, _SeenTopic] = {}
        self.__ask_at = 0.0
        self.__wire_totals: WireTotals | None = None
        self.__wire_zones = WireBytesByZone()
        self.__accumulator: Callable[[], RecordAccumulator | None] = lambda: None
        self.__racks: dict[int, str | None] = {}
        self.__hinted: object = None
        self.__last: dict[int, tuple[Destinations, int]] = {}
        self.__composed = choose is not None
        self.__last_chosen: dict[int, _Chosen] = {}
        self.__kept: dict[int, _Chosen] = {}

    def partition(  # noqa: PLR0913, PLR0917 - kafka-python's signature
        self,
        topic: str,
        key: object,  # noqa: ARG002 - the serialized one counts
        serialized_key: bytes | None,
        value: object,  # noqa: ARG002 - as key
        serialized_value: bytes | None,
        cluster: ClusterMetadata,
    ) -> int:
        """Choose a partition; arguments as kafka-python passes them.

        Raises:
            UnknownTopicError: the topic has no partitions in this client's metadata.
        """
        # Without helper functions, as in `AZAwareProducer.produce`: a call costs a tenth of the time of this method.
        seen = self.__seen_topics.get(topic)
        metadata = cluster._partitions  # noqa: SLF001 - its identity is the only sign of a refresh that costs nothing
        if seen is None or seen.metadata is not metadata or (seen.away and monotonic() >= seen.until):
            seen = self.__read_metadata(topic, cluster)
        destinations = seen.partitioner.destinations
        key_size = 0
        if serialized_key is not None:
            if type(serialized_key) is not bytes:
                serialized_key = bytes(serialized_key)
            key_size = len(serialized_key)
        if serialized_key is None or key_size < destinations.shortest_key:
            if self.__composed:
                return self.__partition_chosen(seen, topic, serialized_key, serialized_value, cluster)
            number = destinations.partition
            if seen.partitions[number].leader_id != seen.leaders[number]:
                # The metadata was changed in place, so its identity does not show it.
                destinations = self.__read_metadata(topic, cluster).partitioner.destinations
                number = destinations.partition
            size = key_size + (len(serialized_value) if serialized_value is not None else 0)
            self.__last[get_ident()] = destinations, size
            if destinations.take_unkeyed(size):
                self.__advance(seen.partitioner, destinations)
            elif not size:
                self.__topics_in_use.advance_after_empty(topic, destinations)
            return number
        # Leaders that change in place are noticed by `_notice_hints`: a look at this partition's would miss the
        # processor's caches if the topic has thousands.
        return destinations.take_keyed(
            serialized_key, key_size + len(serialized_value) if serialized_value is not None else key_size
        )

    def __partition_chosen(
        self, seen: "_SeenTopic", topic: str, key: bytes | None, value: bytes | None, cluster: ClusterMetadata
    ) -> int:
        """Let the application's partitioner choose, unless it already chose for a record that needs a new batch."""
        thread = get_ident()
        kept = self.__kept.pop(thread, None)
        if kept is not None and kept.topic == topic and kept.number in seen.partitioner.locality.candidates:
            number = kept.number  # a second choice would skip a partition at each new batch
        else:
            number = seen.partitioner.choose(key)
            if seen.partitions[number].leader_id != seen.leaders[number]:
                seen = self.__read_metadata(topic, cluster)
                number = seen.partitioner.choose(key)
        size = (0 if key is None else len(key)) + (0 if value is None else len(value))
        seen.partitioner.destinations.unkeyed.add(number, size)
        self.__last_chosen[thread] = _Chosen(topic, number, size)
        return number

    def on_new_batch(self, topic: str, cluster: ClusterMetadata, prev_partition: int) -> None:  # noqa: ARG002 - its hook
        """Revert the count of the record that did not fit, and switch the partition if the run has its bytes."""
        if self.__composed:
            chosen = self.__last_chosen.pop(get_ident(), None)
            if chosen is not None and (chosen.topic, chosen.number) == (topic, prev_partition):
                self.__partitioners[topic].destinations.unkeyed.add(prev_partition, -chosen.size, -1)
                self.__kept[get_ident()] = chosen
            return
        last = self.__last.pop(get_ident(), None)
        partitioner = self.__partitioners.get(topic)
        if last is None or partitioner is None or last[0].partition != prev_partition:
            return
        destinations, size = last
        destinations.unkeyed.add(prev_partition, -size, -1)
        # Headers of batch and records also fill a batch: a batch that closed nearly full was full.
        run = destinations.unkeyed.of(prev_partition).bytes
        if (
            destinations is partitioner.destinations
            and run >= destinations.switch_at - self.__topics_in_use.policy.batch_bytes // 4
        ):
            self.__advance(partitioner, destinations)

    def __advance(self, partitioner: TopicPartitioner, destinations: Destinations) -> None:
        accumulator = self.__accumulator()
        if accumulator is not None:
            self.__topics_in_use.set_queues(partitioner.topic, _batches_waiting(accumulator, partitioner))
        self.__topics_in_use.advance(partitioner.topic, destinations)

    def watch(self, producer: KafkaProducer) -> None:
        """Count headers and bytes on the wire as well, and avoid slow leaders; call it once, before the first record.

        kafka-python shows a partitioner no headers, so the producer becomes one of a subclass whose `send` counts them.
        An attribute of its own would keep it alive, and a producer that is forgotten would not close itself.
        A second call for the same producer has no effect.
        """
        if self.__accumulator() is producer._accumulator:  # noqa: SLF001 - headers would count twice
            return
        untyped: Any = producer
        untyped.__class__ = _weighing(producer, self.__count_headers)
        self.__accumulator = weakref.ref(producer._accumulator)  # noqa: SLF001 - no public name shows the queue
        self.__wire_totals = WireTotals(producer._metrics)  # noqa: SLF001 - the public view has rates only, which forget

    def __count_headers(self, future: Any, size: int) -> None:  # noqa: ANN401 - untyped there
        place = getattr(getattr(future, "_produce_future", None), "topic_partition", None)
        if place is None or place.partition is None:  # the record was refused
            return
        partitioner = self.__partitioners.get(place.topic)
        if partitioner is not None:
            destinations = partitioner.destinations
            # As serialized, -1 for none: a serializer may make a key of None, or None of a key.
            keyed = future.args[3] >= destinations.shortest_key
            counts = destinations.keyed if keyed else destinations.unkeyed
            counts.add(place.partition, size, 0)
            if not keyed and destinations.partition == place.partition and destinations.is_full():
                self.__advance(partitioner, destinations)

    def traffic(self) -> Traffic:
        """Return the traffic of the queued records so far; bytes are those before compression."""
        return self.__topics_in_use.traffic(self.__wire_bytes())

    def __wire_bytes(self) -> dict[str, int]:
        totals = self.__wire_totals
        return self.__wire_zones.update(totals.by_node, self.__racks) if totals else {}

    def __read_metadata(self, topic: str, cluster: ClusterMetadata) -> "_SeenTopic":
        metadata = cluster._partitions  # noqa: SLF001 - leaders without a copy per record
        found = metadata.get(topic)
        if not found:
            raise UnknownTopicError(
                f"topic {topic!r} has no partitions in this client's metadata: does it exist, may this client see it?"
            )
        self.__notice_hints(cluster)
        now = monotonic()
        partitions = [found.get(number, _NO_LEADER) for number in range(max(found) + 1)]
        leaders = [partition.leader_id for partition in partitions]
        # Brokers that are down keep their last rack.
        racks = self.__racks | {broker.node_id: broker.rack or None for broker in cluster.brokers()}
        if racks != self.__racks:
            if self.__racks:
                self.__wire_bytes()  # what was sent so far belongs to the previous zones
            self.__racks = racks
        known = [leader if leader >= 0 else None for leader in leaders]
        replicas = [getattr(partition, "replica_nodes", ()) for partition in partitions]
        partitioner = self.__topics_in_use.update(topic, known, self.__racks, now, replicas if any(replicas) else ())
        away = self.__topics_in_use.is_away(partitioner)
        seen = _SeenTopic(metadata, partitions, leaders, partitioner, away, now + _LOOK_S)
        self.__seen_topics[topic] = seen
        if away and now >= self.__ask_at:
            # A leader that returns to the zone causes no error, and the client refreshes only every 300 s.
            self.__ask_at = now + self.__refresh_s
            cluster.request_update()
        return seen

    def __notice_hints(self, cluster: ClusterMetadata) -> None:
        """Forget a topic when a leader hint of a response (KIP-951) changes the metadata in place."""
        untyped: Any = cluster
        if self.__hinted is untyped:
            return
        self.__hinted, update = untyped, untyped.update_partition_leader
        forget = self.__seen_topics.pop

        @functools.wraps(update)
        def noticed(partition: TopicPartition, leader_id: int, leader_epoch: int) -> object:
            changed = update(partition, leader_id, leader_epoch)
            forget(partition.topic, None)
            return changed

        untyped.update_partition_leader = noticed


def _batches_waiting(accumulator: RecordAccumulator, partitioner: TopicPartitioner) -> dict[int, int]:
    waiting = accumulator._batches  # noqa: SLF001 - no public name shows the queue
    places = (TopicPartition(partitioner.topic, partition) for partition in partitioner.locality.candidates)
    return {place.partition: len(waiting[place]) for place in places if waiting.get(place)}


def _weighing(producer: KafkaProducer, count: Callable[[object, int], None]) -> type[KafkaProducer]:
    """Return a subclass of the producer's class whose `send` counts the headers of records without a partition."""
    kind: Any = type(producer)
    own = vars(producer).pop("send", None)  # the application's own, which a method of the class would not reach

    @functools.wraps(kind.send)
    def send(  # noqa: PLR0913, PLR0917 - kafka-python's signature
        self: KafkaProducer,
        topic: str,
        value: object = None,
        key: object = None,
        headers: list[tuple[str, bytes]] | None = None,
        partition: int | None = None,
        timestamp_ms: int | None = None,
    ) -> object:
        sends = functools.partial(kind.send, self) if own is None else own
        future = sends(topic, value=value, key=key, headers=headers, partition=partition, timestamp_ms=timestamp_ms)
        if headers and partition is None:
            count(future, headers_length(headers))
        return future

    names = {"__module__": kind.__module__, "__qualname__": kind.__qualname__, "__doc__": kind.__doc__}
    weighing: type[KafkaProducer] = type(kind)(kind.__name__, (kind,), {**names, "send": send})
    return weighing


@dataclass(frozen=True, slots=True)
class _Chosen:
    """A record's partition by the application's partitioner, and its bytes."""

    topic: str
    number: int
    size: int


class _Led(Protocol):
    """The part of kafka-python's partition metadata that this module reads."""

    leader_id: int


@dataclass(frozen=True, slots=True)
class _NoLeader:
    leader_id: int = -1


_NO_LEADER = _NoLeader()


@dataclass(frozen=True, slots=True)
class _SeenTopic:
    """A topic's metadata as last read.

    Attributes:
        metadata: the client's metadata at that time, compared by identity.
        partitions: the client's own objects, whose leaders change in place.
        leaders: their leaders at that time, -1 for none.
        partitioner: chooses partitions of the topic.
        away: whether to read again at `until` even if the metadata appears unchanged.
        until: seconds of a monotonic clock.
    """

    metadata: object
    partitions: Sequence[_Led]
    leaders: Sequence[int]
    partitioner: TopicPartitioner
    away: bool
    until: float
