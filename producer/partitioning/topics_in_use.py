"""The partitioners of all topics that one producer uses: the core that both clients share."""

import threading
import warnings
from collections import defaultdict
from collections.abc import Mapping
from dataclasses import replace
from time import monotonic

from producer.decisions.candidate_partitions_in_zone import Leaders, Racks, Reason, Replicas
from producer.decisions.producer_settings import ZonePolicy
from producer.decisions.rack_warning import rack_problem
from producer.decisions.sticky import Chance, chance
from producer.errors import RackWarning
from producer.partitioning.packed_counts import BYTE, unpacked
from producer.partitioning.partition_of_record import TopicPartitioner
from producer.partitioning.produce_interpreted import Deliveries, Destinations, Kind
from producer.traffic_cost import Count, Flow, Traffic, summarise


class TopicsInUse:
    """The partitioners of all topics of one producer, and the sum of their traffic.

    Contract:
    * `partitioners` and `destinations` may be read without the lock; every change holds the lock. `destinations` has
      all topics, or none if the application's partitioner chooses: the hot paths choose only in these topics.
    * Methods may be called from any thread; they block only on the lock.
    """

    def __init__(
        self, policy: ZonePolicy, draw: Chance | None = None, *, destinations: type[Destinations] = Destinations
    ) -> None:
        self.policy = policy
        self.partitioners: dict[str, TopicPartitioner] = {}
        self.destinations: dict[str, Destinations] = {}
        self._kind = destinations
        self.racks_seen: set[str] = set()
        self._chance = draw or chance()
        self._lock = threading.RLock()
        self._warned = False
        self._without_leaders: dict[str, Count] = {}
        self._early: dict[str, defaultdict[tuple[int, Kind], int]] = {}
        self._deliveries: Deliveries | None = None
        self._started = monotonic()

    def count_by(self, deliveries: Deliveries) -> None:
        """Count what the client itself counts as delivered; called before the first topic is in use."""
        self.policy = replace(self.policy, counts_deliveries=True)
        self._deliveries = deliveries

    def update(
        self, topic: str, leaders: Leaders, racks: Racks, now: float, replicas: Replicas = ()
    ) -> TopicPartitioner:
        """Set the current leaders of a topic.

        Args:
            topic: its name.
            leaders: broker id per partition, not empty; None without a leader.
            racks: rack per broker id.
            now: seconds of a monotonic clock.
            replicas: broker ids per partition; empty if unknown.

        Returns:
            The topic's partitioner, changed in place if it exists.
        """
        new = self.partitioners.get(topic) or self._new(topic)
        new.prepare(leaders, racks, now)
        with self._lock:
            partitioner = self.partitioners.get(topic)
            known = partitioner or new
            self._take_deliveries(topic)  # to the leaders that it had
            known.update_leaders(leaders, racks, now, replicas)
            self.racks_seen.update(rack for rack in racks.values() if rack)
            if partitioner is None:
                self.partitioners[topic] = known
                self._book_early(topic, known)  # the zone of these leaders is better than "unknown"
            self._publish(known)
        self._warn_of_racks(bool(racks))
        return known

    def _publish(self, partitioner: TopicPartitioner) -> None:
        if not partitioner.composed:
            self.destinations[partitioner.topic] = partitioner.destinations

    def _new(self, topic: str) -> TopicPartitioner:
        return TopicPartitioner(topic, self.policy.for_topic(topic), self._chance, self._kind)

    def _warn_of_racks(self, looked: bool) -> None:  # noqa: FBT001 - private, one caller
        problem = rack_problem(self.policy, self.racks_seen) if looked else None
        if problem is None or self._warned:
            return
        self._warned = True
        warnings.warn(problem, RackWarning, stacklevel=2)

    def advance(self, topic: str, destinations: Destinations) -> None:
        """Switch a topic's records without a key to another partition, unless another thread already did."""
        with self._lock:
            partitioner = self.partitioners[topic]
            if destinations is partitioner.destinations:
                partitioner.advance()
                self._publish(partitioner)

    def advance_after_empty(self, topic: str, destinations: Destinations) -> None:
        """Count a record without key, value and headers, and switch if such records have filled a batch."""
        with self._lock:
            partitioner = self.partitioners[topic]
            if destinations is partitioner.destinations and partitioner.is_empty_run_over():
                self.advance(topic, destinations)

    def set_queues(self, topic: str, queues: Mapping[int, int]) -> None:
        """Set the queue of each partition of a topic; unknown topics are ignored."""
        with self._lock:
            partitioner = self.partitioners.get(topic)
            if partitioner is not None:
                partitioner.set_queues(queues)

    def count_without_leaders(self, topic: str, size: int, partition: int = -1) -> None:
        """Count a record that was sent before the topic's leaders were known.

        Args:
            topic: its name.
            size: bytes of the record.
            partition: the application's choice; negative if librdkafka chooses.
        """
        if self.policy.counts_deliveries:
            return
        with self._lock:
            partitioner = self.partitioners.get(topic)
            if partition < 0:
                self._book_without_leaders(topic, Count(1, size))
            elif partitioner is None:
                self._count_early(topic, partition, "explicit", Count(1, size))
            else:  # another thread has read the leaders meanwhile
                partitioner.count_explicit(partition, size)

    def _count_early(self, topic: str, partition: int, kind: Kind, count: Count) -> None:
        """Count records of a partition for the zone that the first reading of leaders finds, unless `traffic` is first.

        Figures never fall, so a record that was once reported for an unknown zone stays there.
        """
        early = self._early.setdefault(str.__str__(topic), defaultdict(int))
        early[partition, kind] += count.bytes * BYTE + count.records

    def _book_early(self, topic: str, partitioner: TopicPartitioner | None) -> None:
        for (partition, kind), packed in self._early.pop(topic, {}).items():
            count = unpacked(packed)
            if partitioner is None:
                self._book_without_leaders(topic, count)
            elif self.policy.counts_deliveries:
                partitioner.book_delivered(partition, kind, count, first=True)
            else:
                partitioner.count_explicit(partition, count.bytes, count.records)

    def _book_without_leaders(self, topic: str, count: Count) -> None:
        topic = str.__str__(topic)  # a key of `traffic`: a member of a `StrEnum` may print as something else
        with self._lock:
            self._without_leaders[topic] = self._without_leaders.get(topic, Count()).plus(count)

    def count_delivered(self, topic: str, partition: int, kind: Kind, count: Count) -> None:
        """Count delivered records, if deliveries count; a negative partition is one that librdkafka will choose."""
        with self._lock:
            partitioner = self.partitioners.get(topic)
            if partition < 0:
                self._book_without_leaders(topic, count)
            elif partitioner is None:
                self._count_early(topic, partition, kind, count)
            else:
                partitioner.book_delivered(partition, kind, count)

    def _take_deliveries(self, topic: str) -> None:
        for partition, kind, records, size in self._deliveries.take(topic) if self._deliveries else ():
            self.count_delivered(topic, partition, kind, Count(records, size))

    def away(self) -> bool:
        """Return whether any topic has no local leader, so that leaders should be read again soon."""
        return any(self.is_away(partitioner) for partitioner in list(self.partitioners.values()))

    def is_away(self, partitioner: TopicPartitioner) -> bool:
        """Return whether a topic's records leave their zone although the zone has, or had, brokers."""
        return self.policy.aware and self.policy.rack in self.racks_seen and partitioner.locality.rank > 0

    def returning(self) -> bool:
        """Return whether a topic waits until a better set of leaders has lasted long enough."""
        settled = (partitioner.in_use for partitioner in list(self.partitioners.values()))
        return any(in_use is not None and in_use.better_since is not None for in_use in settled)

    def traffic(self, wire_bytes: Mapping[str, int] | None = None) -> Traffic:
        """Return the traffic so far."""
        with self._lock:
            for topic in self._deliveries.topics() if self._deliveries else ():
                self._take_deliveries(topic)
            for topic in list(self._early):
                self._book_early(topic, None)
            replicated = None
            flows = [Flow(topic, None, Reason.NO_METADATA, count) for topic, count in self._without_leaders.items()]
            for partitioner in self.partitioners.values():
                partitioner.attribute()
                flows.extend(partitioner.flows())
                if partitioner.replicated is not None:
                    replicated = (replicated or 0) + partitioner.replicated
        seconds = monotonic() - self._started
        return summarise(
            flows,
            self.policy.rack,
            delivered=self.policy.counts_deliveries,
            wire_bytes=wire_bytes,
            replicated_bytes=replicated,
            seconds=seconds,
        )
