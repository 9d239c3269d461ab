"""One topic's way from records to partitions, and the count of what went where.

Contract:
* `lane` and `sticky` are read on the hot path without a lock; everything that changes them runs under the router's
  lock and replaces whole objects, so a reader sees the old or the new set, never half of one.
* What of a tally was already attributed to a zone is remembered beside it, so no count is ever reset while another
  thread adds to it.
"""

from collections.abc import Iterator, Mapping, Sequence
from typing import Final

from confluent_kafka import murmur2

from producer._keys import Table, hrw_table
from producer._locality import Leaders, Locality, Racks, Reason, Standing, levels_of, settle, zones_of
from producer._policy import KeyMode, ZonePolicy
from producer._skew import Spill, spill
from producer._sticky import Chance, pick, queue_weights
from producer._traffic import Count, Flow


class Tally:
    """Records and bytes one partition was given, and how many bytes before a sticky run moves on."""

    __slots__ = ("bytes", "partition", "records", "seen", "switch_at")

    def __init__(self, partition: int) -> None:
        self.partition = partition
        self.records = 0
        self.bytes = 0
        self.switch_at = 0
        self.seen = Count()

    def fresh(self) -> Count:
        """Take what was added since the last call."""
        now = Count(self.records, self.bytes)
        new = Count(now.records - self.seen.records, now.bytes - self.seen.bytes)
        self.seen = now
        return new


RECORD: Final = 1 << 48
"""One record in a lane's count, above the bytes: 256 TB of one partition fit below it."""


class Lane:
    """Where keys go, and how many went: a flat list, as at 10,000 partitions an object each would miss the caches.

    Attributes:
        table: partition per slot; a key's is `table[murmur2(key, slots)]`.
        slots: length of the table.
        sent: per partition, `RECORD` for each record plus its bytes: one number, because a second list to count in
            costs the hot path a tenth. Shared by all lanes of a route.
    """

    __slots__ = ("sent", "slots", "table")

    def __init__(self, table: Table, sent: list[int]) -> None:
        self.table = table
        self.slots = len(table)
        self.sent = sent

    def count(self, partition: int) -> Count:
        """Say what a partition was sent."""
        return Count(*divmod(self.sent[partition], RECORD))


class Route:
    """Where one topic's records go now.

    Attributes:
        sticky: the partition that records without a key use until its bytes reach `switch_at`.
        lane: where keys go.
        tallies: per partition, records without a key.
        explicit: per partition, what the caller decided; filled as needed.
        standing: the set in use.
    """

    __slots__ = (
        "_chance",
        "_flows",
        "_policy",
        "_queues",
        "_seen",
        "_spill",
        "_spilled",
        "_total",
        "_weights",
        "explicit",
        "lane",
        "leaders",
        "standing",
        "sticky",
        "tallies",
        "topic",
        "zones",
    )

    def __init__(self, topic: str, policy: ZonePolicy, chance: Chance) -> None:
        self.topic = topic
        self.leaders: tuple[int | None, ...] = ()
        self.zones: tuple[str | None, ...] = ()
        self.standing: Standing | None = None
        self.tallies: list[Tally] = []
        self.explicit: dict[int, Tally] = {}
        self.lane = Lane((), [])
        self.sticky: Tally
        self._policy = policy
        self._chance = chance
        self._queues: Mapping[int, int] = {}
        self._weights: Sequence[int] | None = None
        self._spill = Spill(0.0, ())
        self._spilled = 0
        self._total = 0
        self._seen: list[Count] = []
        self._flows: dict[tuple[str | None, Reason], Count] = {}

    @property
    def locality(self) -> Locality:
        """The set in use; the route has seen leaders."""
        if self.standing is None:
            raise RuntimeError(f"topic {self.topic!r}: asked before its leaders were known")
        return self.standing.locality

    def relocate(self, leaders: Leaders, racks: Racks, now: float) -> None:
        """Look at the leaders anew; what was sent so far is attributed to the zones as they were.

        Args:
            leaders: broker id per partition, not empty; None without a leader.
            racks: rack per broker id.
            now: seconds of a monotonic clock.
        """
        self.attribute()
        policy = self._policy
        levels = levels_of(leaders, racks, policy.rack, policy.fallback, aware=policy.aware)
        before = self.standing
        self.standing = settle(before, levels, now, policy.hold_s)
        resized = len(leaders) != len(self.leaders)
        moved = before is None or before.locality.candidates != self.standing.locality.candidates
        self.leaders = tuple(leaders)
        self.zones = zones_of(leaders, racks)
        self._grow(len(leaders))
        self._spill = self._spill_now()
        if resized or moved:
            self.lane = Lane(self._table(), self.lane.sent)
            self.weigh(self._queues)
            if before is None or self.sticky.partition not in self.locality.candidates:
                self._stick(self._next())

    def _grow(self, partitions: int) -> None:
        # In place and never smaller: another thread may be about to count a record here.
        for partition in range(len(self.tallies), partitions):
            self.tallies.append(Tally(partition))
            self._seen.append(Count())
            self.lane.sent.append(0)

    def _spill_now(self) -> Spill:
        guard, rack = self._policy.skew, self._policy.rack
        if guard is None or rack is None or self.locality.reason is not Reason.LOCAL:
            return Spill(0.0, ())
        return spill(guard, self.zones, rack)

    def _table(self) -> Table:
        # Tuples where they are short: CPython looks up a tuple's item in half the time of an array's or of bytes'.
        match self._policy.keys:
            case KeyMode.GLOBAL:
                return tuple(range(len(self.leaders)))
            case KeyMode.LOCAL_MOD:
                return self.locality.candidates
            case KeyMode.LOCAL_HRW:
                return hrw_table(len(self.leaders), self.locality.candidates)

    def place(self, key: bytes) -> int:
        """Find a key's partition; the hot paths do the same in place."""
        return self.lane.table[murmur2(key, self.lane.slots)]

    def weigh(self, queues: Mapping[int, int]) -> None:
        """Prefer candidates with short queues from the next switch on; `queues` as `queue_weights` takes them."""
        self._queues = queues
        self._weights = queue_weights(self.locality.candidates, queues) if queues else None

    def advance(self, tally: Tally) -> None:
        """Move records without a key on to another partition, unless another thread already did."""
        if tally is self.sticky:
            self._stick(self._next())

    def _next(self) -> int:
        share = self._spill.share
        if share > 0:
            # Rounded up, or the bound would be missed by a run; but a producer of one run has no skew to pay for.
            self._total += self._policy.batch_bytes
            if self._total > self._policy.batch_bytes and self._spilled < share * self._total:
                self._spilled += self._policy.batch_bytes
                return self._spill_target()
        if self._policy.skew is not None and self._weights is None:
            # Chance alone would leave some partition above the bound until thousands of runs have evened it out.
            return min(self.locality.candidates, key=lambda partition: self.tallies[partition].bytes)
        return pick(self.locality.candidates, self._weights, self._chance)

    def _spill_target(self) -> int:
        targets = [partition for partition, weight in enumerate(self._spill.weights) if weight > 0]
        return min(targets, key=lambda partition: self.tallies[partition].bytes / self._spill.weights[partition])

    def _stick(self, partition: int) -> None:
        tally = self.tallies[partition]
        tally.switch_at = tally.bytes + self._policy.batch_bytes
        self.sticky = tally

    def explicit_tally(self, partition: int) -> Tally:
        """Count here what the caller sent to a partition of its own choice, which need not exist."""
        tally = self.explicit.get(partition)
        return self.explicit.setdefault(partition, Tally(partition)) if tally is None else tally

    def attribute(self) -> None:
        """Book what was added since the last time to the zones and reasons as they are now."""
        if self.standing is None:
            return
        reason = self.standing.locality.reason
        guarded = self._spill.share > 0
        inside = set(self.standing.locality.candidates) if guarded else ()
        for tally in self.tallies:
            if tally.records != tally.seen.records:
                spilled = guarded and tally.partition not in inside
                self._book(tally.partition, Reason.SKEW if spilled else reason, tally.fresh())
        keyed = Reason.GLOBAL_KEY if self._policy.keys is KeyMode.GLOBAL else reason
        for partition, seen in enumerate(self._seen):
            now = self.lane.count(partition)
            if now.records != seen.records:
                self._seen[partition] = now
                self._book(partition, keyed, Count(now.records - seen.records, now.bytes - seen.bytes))
        for tally in list(self.explicit.values()):
            if tally.records != tally.seen.records:
                self._book(tally.partition, Reason.EXPLICIT, tally.fresh())

    def _book(self, partition: int, reason: Reason, count: Count) -> None:
        zone = self.zones[partition] if 0 <= partition < len(self.zones) else None
        if reason in {Reason.GLOBAL_KEY, Reason.EXPLICIT} and zone is not None and zone == self._policy.rack:
            reason = Reason.LOCAL
        cell = zone, reason
        self._flows[cell] = self._flows.get(cell, Count()).plus(count)

    def flows(self) -> Iterator[Flow]:
        """Give everything that was booked."""
        for (zone, reason), count in self._flows.items():
            yield Flow(self.topic, zone, reason, count)
