"""The partitioner of one topic, and the count of records of each partition.

Contract:
* The hot path reads `destinations` without a lock. Every change runs under the lock of `TopicsInUse` and replaces the
  whole object, so a reader sees the old or the new destinations, never a mixture.
* A count is never reset, because another thread may be adding to it. The part that is already attributed to a zone is
  stored separately.
"""

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Final

from producer.decisions.application_partitioner import chooser, chosen_by
from producer.decisions.candidate_partitions_in_zone import (
    Leaders,
    Locality,
    LocalityInUse,
    Racks,
    Reason,
    Replicas,
    copies_elsewhere,
    levels_of,
    settle,
    zones_of,
)
from producer.decisions.key_hash import key_hash
from producer.decisions.producer_settings import KeyMode, ZonePolicy
from producer.decisions.rendezvous_slots import Table, packed_table
from producer.decisions.skew_guard import Spill, spill
from producer.decisions.sticky import RECORD_OVERHEAD, Chance, pick, queue_weights
from producer.partitioning.hrw_slot_table import slot_table
from producer.partitioning.packed_counts import BYTE, unpacked
from producer.partitioning.produce_interpreted import Destinations, Kind
from producer.traffic_cost import Count, Flow

_NEVER: Final = 1 << 59
"""Threshold that is never reached, if records without a key may not leave their partition."""


class TopicPartitioner:
    """Chooses partitions for the records of one topic.

    Attributes:
        destinations: partitions of records with and without a key, and the counts of both.
        explicit: per partition, the records whose partition the caller chose, packed as in `PartitionCounts`.
        in_use: the locality in use.
        replicated: bytes of the attributed records times their copies in other zones; None if replicas are unknown.
    """

    __slots__ = (
        "_before",
        "_chance",
        "_choose",
        "_copies",
        "_empty_records",
        "_flows",
        "_policy",
        "_queues",
        "_seen",
        "_spill",
        "_spilled",
        "_total",
        "_weights",
        "destinations",
        "explicit",
        "in_use",
        "leaders",
        "replicated",
        "topic",
        "zones",
    )

    def __init__(
        self, topic: str, policy: ZonePolicy, chance: Chance, destinations: type[Destinations] = Destinations
    ) -> None:
        self.topic = topic
        self.leaders: tuple[int | None, ...] = ()
        self.zones: tuple[str | None, ...] = ()
        self.in_use: LocalityInUse | None = None
        self.explicit: defaultdict[int, int] = defaultdict(int)
        self.destinations = destinations((), destinations.counts(), -1, destinations.counts(), 0)
        self._policy = policy
        self._chance = chance
        self._choose = None if policy.choose is None else chooser(policy.choose)
        self._queues: Mapping[int, int] = {}
        self._weights: Sequence[int] | None = None
        self.replicated: int | None = None
        self._copies: Sequence[int] = ()
        self._spill = Spill(0.0, ())
        self._spilled = 0
        self._total = 0
        self._empty_records = 0
        self._before: Sequence[int] = ()
        self._seen: dict[str, dict[int, Count]] = {"unkeyed": {}, "keyed": {}, "explicit": {}}
        self._flows: dict[tuple[str | None, Reason], Count] = {}

    @property
    def locality(self) -> Locality:
        """The locality in use.

        Raises:
            RuntimeError: the leaders are not known yet.
        """
        if self.in_use is None:
            raise RuntimeError(f"topic {self.topic!r}: asked before its leaders were known")
        return self.in_use.locality

    @property
    def composed(self) -> bool:
        """Whether the application's partitioner chooses, so that the hot paths must not."""
        return self._choose is not None

    def choose(self, key: bytes | None) -> int:
        """Let the application's partitioner choose among the candidates.

        Raises:
            PolicyError: the partitioner raised an error, or chose another partition.
        """
        if self._choose is None:
            raise RuntimeError(f"topic {self.topic!r}: the application gave no partitioner")
        return chosen_by(self._choose, self.topic, key, self.locality.candidates)

    def update_leaders(self, leaders: Leaders, racks: Racks, now: float, replicas: Replicas = ()) -> None:
        """Set the current leaders; records sent so far are attributed to the previous zones.

        Args:
            leaders: broker id per partition, not empty; None without a leader.
            racks: rack per broker id.
            now: seconds of a monotonic clock.
            replicas: broker ids per partition; empty if unknown.
        """
        self.attribute()
        if replicas:
            self._copies = copies_elsewhere(leaders, replicas, racks)
            self.replicated = self.replicated or 0
        policy = self._policy
        levels = levels_of(leaders, racks, policy.rack, policy.fallback, aware=policy.aware)
        before = self.in_use
        self.in_use = settle(before, levels, now, policy.hold_s)
        resized = len(leaders) != len(self.leaders)
        moved = before is None or before.locality.candidates != self.in_use.locality.candidates
        self.leaders = tuple(leaders)
        self.zones = zones_of(leaders, racks)
        self._grow(len(leaders))
        spill_before, self._spill = self._spill, self._spill_now()
        if resized or moved or self._spill != spill_before:
            self._restart_skew_balance()
        if resized or moved:
            self.set_queues(self._queues)
            if self._hashes_null_keys():
                table = self._table()
                self._replace_destinations(table, table[key_hash(policy.partitioner)(b"", len(table))], _NEVER)
            elif self.destinations.partition in self.locality.candidates:
                self._replace_destinations(self._table(), self.destinations.partition, self.destinations.switch_at)
            else:
                self._replace_destinations(self._table(), self._next_partition())

    def prepare(self, leaders: Leaders, racks: Racks, now: float) -> None:
        """Build the table for `update_leaders` without the lock, because it may take 0.2 s at 10,000 partitions."""
        policy = self._policy
        if policy.keys is KeyMode.LOCAL_HRW:
            levels = levels_of(leaders, racks, policy.rack, policy.fallback, aware=policy.aware)
            slot_table(len(leaders), settle(self.in_use, levels, now, policy.hold_s).locality.candidates)

    def _grow(self, partitions: int) -> None:
        self.destinations.keyed.grow(partitions)
        self.destinations.unkeyed.grow(partitions)

    def _replace_destinations(self, table: Table, partition: int, switch_at: int | None = None) -> None:
        """Replace the destinations; without `switch_at` a new run of records without a key begins."""
        self._empty_records = 0
        keyed, unkeyed = self.destinations.keyed, self.destinations.unkeyed
        if switch_at is None:
            switch_at = unkeyed.of(partition).bytes + self._policy.batch_bytes
        self.destinations = type(self.destinations)(
            table,
            keyed,
            partition,
            unkeyed,
            switch_at,
            self._policy.partitioner,
            self._policy.shortest_key,
            self.destinations,
        )

    def _spill_now(self) -> Spill:
        guard, rack = self._policy.skew, self._policy.rack
        if guard is None or rack is None or self.locality.reason is not Reason.LOCAL:
            return Spill(0.0, ())
        # Records for a partition without a leader would wait until it has one.
        led = [partition for partition, leader in enumerate(self.leaders) if leader is not None]
        plan = spill(guard, [self.zones[partition] for partition in led], rack)
        weights = dict(zip(led, plan.weights, strict=True))
        return Spill(plan.share, tuple(weights.get(partition, 0.0) for partition in range(len(self.leaders))))

    def _restart_skew_balance(self) -> None:
        """Balance from now on: otherwise a new partition would take every record until it has caught up."""
        self._before = [self.destinations.unkeyed.of(partition).bytes for partition in self._partitions()]
        self._spilled = self._total = 0

    def _table(self) -> Table:
        match self._policy.keys:
            case KeyMode.GLOBAL:
                return self.destinations.all_of(len(self.leaders))
            case KeyMode.LOCAL_MOD | KeyMode.IGNORE:
                return packed_table(self.locality.candidates, len(self.leaders))
            case KeyMode.LOCAL_HRW:
                return slot_table(len(self.leaders), self.locality.candidates)

    def set_queues(self, queues: Mapping[int, int]) -> None:
        """Prefer candidates with short queues from the next switch on; `queues` as for `queue_weights`."""
        self._queues = queues
        self._weights = queue_weights(self.locality.candidates, queues) if queues else None

    def is_empty_run_over(self) -> bool:
        """Count a record of no bytes; return whether such records have filled a batch."""
        self._empty_records += 1
        full = self._empty_records * RECORD_OVERHEAD >= self._policy.batch_bytes
        return full and self.destinations.switch_at < _NEVER

    def advance(self) -> None:
        """Switch records without a key to another partition."""
        self._empty_records = 0
        self.destinations = self.destinations.next_run(self._next_partition(), self._policy.batch_bytes)

    def _next_partition(self) -> int:
        if self._next_run_spills():
            return self._spill_target()
        if self._policy.skew is not None and self._weights is None:
            # With random choice, some partition would be above the bound until thousands of runs have evened it out.
            return min(self.locality.candidates, key=self._unkeyed_bytes)
        return pick(self.locality.candidates, self._weights, self._chance)

    def _next_run_spills(self) -> bool:
        """Count the next run and decide whether it leaves the zone, so that the zone's partitions keep the bound."""
        share, run = self._spill.share, self._policy.batch_bytes
        if share <= 0:
            return False
        self._total += run
        # Each local partition may be one run ahead of the others, so this amount goes to other zones early. At the
        # start at most twice the share does, because a producer of a few runs causes little skew.
        ahead = min(len(self.locality.candidates) * run, share * self._total)
        leaves = self._total > run and self._spilled < share * self._total + ahead
        self._spilled += run if leaves else 0
        return leaves

    def _spill_target(self) -> int:
        targets = [partition for partition, weight in enumerate(self._spill.weights) if weight > 0]
        return min(targets, key=lambda partition: self._unkeyed_bytes(partition) / self._spill.weights[partition])

    def _unkeyed_bytes(self, partition: int) -> int:
        return self.destinations.unkeyed.of(partition).bytes - self._before[partition]

    def count_explicit(self, partition: int, size: int, records: int = 1) -> None:
        """Count records whose partition the caller chose; the partition need not exist."""
        # One number and no call between read and write, as in `produce`: no lock, so a signal handler may count too.
        self.explicit[partition] += size * BYTE + records

    def attribute(self) -> None:
        """Attribute the records since the last call to the current zones and reasons."""
        if self.in_use is None or self._policy.counts_deliveries:
            return
        for partition, new in self._fresh("unkeyed", enumerate(map(self.destinations.unkeyed.of, self._partitions()))):
            self._book(partition, self._reason("unkeyed", partition), new)
        for partition, new in self._fresh("keyed", enumerate(map(self.destinations.keyed.of, self._partitions()))):
            self._book(partition, self._reason("keyed", partition), new)
        explicit = [(partition, unpacked(packed)) for partition, packed in list(self.explicit.items())]
        for partition, new in self._fresh("explicit", explicit):
            self._book(partition, Reason.EXPLICIT, new)

    def book_delivered(self, partition: int, kind: Kind, count: Count, *, first: bool = False) -> None:
        """Attribute delivered records to the zone that leads their partition now.

        Args:
            partition: the partition.
            kind: way in which they got it.
            count: the records.
            first: whether they were sent before the topic's leaders were known.
        """
        reason = self._reason(kind, partition)
        if first and kind != "explicit":
            reason = Reason.NO_METADATA
        if reason is Reason.LOCAL and partition not in self.locality.candidates:
            reason = Reason.NO_METADATA  # chosen before these leaders were known
        self._book(partition, reason, count)

    def _reason(self, kind: Kind, partition: int) -> Reason:
        if kind == "explicit":
            return Reason.EXPLICIT
        keyed = kind == "keyed" and self._policy.keys is not KeyMode.IGNORE
        if not self.composed and (keyed or self._hashes_null_keys()):
            return Reason.GLOBAL_KEY if self._policy.keys is KeyMode.GLOBAL else self.locality.reason
        spilled = self._spill.share > 0 and partition not in self.locality.candidates
        return Reason.SKEW if spilled else self.locality.reason

    def _hashes_null_keys(self) -> bool:
        """Whether the partitioner decides for records without a key; ignored keys count as no keys, and stick."""
        return self._policy.partitioner.hashes_null_keys and self._policy.keys is not KeyMode.IGNORE

    def _partitions(self) -> range:
        return range(len(self.destinations.keyed))

    def _fresh(self, kind: str, counts: Iterable[tuple[int, Count]]) -> Iterator[tuple[int, Count]]:
        """Return the records of each partition since the last call."""
        seen = self._seen[kind]
        for partition, now in counts:
            before = seen.get(partition, Count())
            if now.records != before.records:
                seen[partition] = now
                yield partition, Count(now.records - before.records, now.bytes - before.bytes)

    def _book(self, partition: int, reason: Reason, count: Count) -> None:
        zone = self.zones[partition] if 0 <= partition < len(self.zones) else None
        if reason in {Reason.GLOBAL_KEY, Reason.EXPLICIT} and zone is not None and zone == self._policy.rack:
            reason = Reason.LOCAL
        if self.replicated is not None and 0 <= partition < len(self._copies):
            self.replicated += count.bytes * self._copies[partition]
        cell = zone, reason
        self._flows[cell] = self._flows.get(cell, Count()).plus(count)

    def flows(self) -> Iterator[Flow]:
        """Return all attributed records."""
        for (zone, reason), count in self._flows.items():
            yield Flow(self.topic, zone, reason, count)
