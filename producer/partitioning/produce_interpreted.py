"""`produce` in Python, with the destinations that it reads; it adds to the counts of `packed_counts`.

`produce_compiled.pyx` has the same surface with C's integers in place of Python's, in a tenth of the time. It exists
where the package was built with a C compiler. A change here needs the same change there.
"""

from collections.abc import Callable
from typing import Any, ClassVar, Final, Literal, TypeVar

from confluent_kafka import KafkaError, KafkaException, Message, Producer

from producer.decisions.key_hash import key_hash
from producer.decisions.partitioner_names import ClientPartitioner
from producer.decisions.record_bytes import headers_length, key_bytes, sent_bytes
from producer.decisions.rendezvous_slots import Table
from producer.partitioning.cached_key_partitions import KnownKeys
from producer.partitioning.packed_counts import BYTE, EMPTY, WEIGHTS, PartitionCounts

Delivered = Callable[[KafkaError | None, Message], None]
T = TypeVar("T")
KeyedWay = tuple[Callable[[bytes, Any], int | None], int | None, Table | None, list[int]]
Kind = Literal["unkeyed", "keyed", "explicit"]
"""The way in which a record got its partition."""
_send = Producer.produce

ANY_PARTITION: Final = -1
NO_TIMESTAMP: Final = 0
"""The defaults of the base class. Compared by identity: `-1.0 == -1`, but the base class refuses a float."""


class Destinations:
    """Where one topic's records go now. Replaced as a whole when that changes, so no reader sees half of two.

    Attributes:
        table: partition per slot; a key's is `table[hash(key, slots)]`.
        slots: length of the table.
        same: whether each partition is its own slot.
        hash: of the client's partitioner.
        shortest_key: length from which a key counts as a key, in bytes; records with a shorter one have no key.
        keyed: counts of records with a key; every `Destinations` of a topic shares them.
        known: keys of the table; None for a partitioner that draws. Destinations with the same table share it.
        keyed_way: all that such a record needs, in one look: hash, slots, table (None if each partition is its own
            slot) and packed counts; None if keys are ignored. While it pays, a look at `known` stands in for the hash.
        partition: where records without a key go until its bytes in `unkeyed` reach `switch_at`.
        full_at: `switch_at` as a packed count.
        unkeyed: counts of records without a key; shared as `keyed` is.
        unkeyed_packed: of `unkeyed`.
    """

    __slots__ = (
        "full_at",
        "hash",
        "keyed",
        "keyed_way",
        "known",
        "partition",
        "same",
        "shortest_key",
        "slots",
        "switch_at",
        "table",
        "unkeyed",
        "unkeyed_packed",
    )

    counts: ClassVar[type[PartitionCounts]] = PartitionCounts

    all_of: ClassVar[type[range]] = range
    """The table in which each partition is its own slot."""

    def __init__(  # noqa: PLR0913, PLR0917 - all that a record needs
        self,
        table: Table,
        keyed: PartitionCounts,
        partition: int,
        unkeyed: PartitionCounts,
        switch_at: int,
        partitioner: ClientPartitioner = ClientPartitioner.MURMUR2_RANDOM,
        shortest_key: int = 0,
        before: "Destinations | None" = None,
    ) -> None:
        self.table = table
        self.slots = len(table)
        self.same = isinstance(table, range)
        self.keyed = keyed
        self.partition = partition
        self.unkeyed = unkeyed
        self.unkeyed_packed = unkeyed.packed
        self.switch_at = switch_at
        self.full_at = switch_at * BYTE
        self.hash = key_hash(partitioner)
        self.shortest_key = shortest_key
        self.known: KnownKeys | None = None
        if before is not None and before.table is table:
            self.known = before.known
        elif self.slots and partitioner is not ClientPartitioner.RANDOM:
            self.known = KnownKeys(self.hash, table, keyed.records)
        way = self._computed_way() if self.known is None else (self.known.get, None, None, keyed.packed)
        self.keyed_way: KeyedWay | None = None if shortest_key > 1 else way

    def next_run(self, partition: int, batch_bytes: int) -> "Destinations":
        """Return the same destinations, with another partition for this many more bytes without a key.

        Field by field, because this code is seldom in the processor's cache: the fewer steps, the better.
        """
        new = object.__new__(type(self))
        new.table = self.table
        new.slots = self.slots
        new.same = self.same
        new.hash = self.hash
        new.shortest_key = self.shortest_key
        new.keyed = self.keyed
        new.known = self.known
        new.keyed_way = self.keyed_way
        new.unkeyed = self.unkeyed
        new.unkeyed_packed = self.unkeyed_packed
        new.partition = partition
        new.switch_at = (self.unkeyed_packed[partition] // BYTE) + batch_bytes
        new.full_at = new.switch_at * BYTE
        return new

    def _computed_way(self) -> "KeyedWay":
        return self.hash, self.slots, None if self.same else self.table, self.keyed.packed

    def learn(self, key: bytes) -> int:
        """Find the partition of a key that `known` does not know."""
        known = self.known
        if known is None or not known.pays:  # another thread has just learned that
            self.keyed_way = self._computed_way()
            return self.keyed_partition(key)
        return known.learn(key)

    def keyed_partition(self, key: bytes) -> int:
        """Find a key's partition; the hot paths do the same in place."""
        slot = self.hash(key, self.slots)
        return slot if self.same else self.table[slot]

    def take_keyed(self, key: bytes, size: int) -> int:
        """Find a key's partition, and count a record of this many bytes there."""
        chosen = self.hash(key, self.slots)
        if not self.same:
            chosen = self.table[chosen]
        self.keyed.packed[chosen] += size * BYTE + 1
        return chosen

    def take_unkeyed(self, size: int) -> bool:
        """Count a record without a key; return whether such records should switch to another partition."""
        packed = self.unkeyed.packed
        packed[self.partition] = total = packed[self.partition] + (size * BYTE + 1)
        return total >= self.full_at

    def is_full(self) -> bool:
        """Return whether records without a key should switch to another partition."""
        return self.unkeyed.packed[self.partition] >= self.full_at


class DirectQueue:
    """Stays closed: only compiled code can call librdkafka for less than confluent-kafka takes."""

    is_open: ClassVar[bool] = False

    def __init__(self, owner: Producer) -> None:
        """Take the producer as the compiled class does."""

    def start(self) -> None:
        """Nothing to start."""

    def close(self) -> None:
        """Nothing to close."""


class Deliveries:
    """Counts nothing: a call into Python for each record would take a third of the rate."""

    is_possible: ClassVar[bool] = False
    is_started: ClassVar[bool] = False

    def __init__(self, empty_is_null: bool = False) -> None:  # noqa: FBT001, FBT002 - as the compiled class
        """Take the setting as the compiled class does."""

    def plugins(self, theirs: str | None = None) -> str:
        """Return the application's plugins."""
        return theirs or ""

    def making(self, construct: Callable[..., None], *arguments: Any, **more: Any) -> None:  # noqa: ANN401 - the constructor's
        """Call the constructor of the client."""
        construct(*arguments, **more)

    def explicitly(self, send: Callable[..., T], *arguments: object) -> T:
        """Call a function whose records have a partition that the application chose."""
        return send(*arguments)

    def topics(self) -> list[str]:
        """Return the topics with delivered records."""
        return []

    def take(self, topic: str) -> list[tuple[int, Kind, int, int]]:  # noqa: ARG002 - as the compiled class
        """Return what was delivered since the last call: partition, way of the record, records, bytes."""
        return []


def produce(  # noqa: C901, PLR0912, PLR0913, PLR0917 - no helpers, see below; the base class's parameters, in its order
    self: Any,  # noqa: ANN401 - an `AZAwareProducer`, whose method this is
    topic: str,
    value: str | bytes | None = None,
    key: str | bytes | None = None,
    partition: int = -1,
    callback: Delivered | None = None,
    on_delivery: Delivered | None = None,
    timestamp: int = 0,
    headers: Any = None,  # noqa: ANN401 - as the base class types it
) -> None:
    """Send a record, as `confluent_kafka.Producer.produce`, to a leader of the own zone.

    Raises:
        BufferError: the queue is full; poll and call again.
        KafkaException: the client refused the record.
    """
    # Straight down, without a helper and in few steps: a call costs a tenth of the whole budget of this function.
    if (
        type(value) is bytes
        and partition is ANY_PARTITION
        and callback is None
        and on_delivery is None
        and headers is None
        and timestamp is NO_TIMESTAMP
    ):
        if key is None:
            try:
                destinations = self._kafka_azimuth_destinations[topic]
                weight = WEIGHTS[len(value)]
            except (IndexError, KeyError, TypeError):  # a long record; a topic that is new; no name
                pass
            else:
                chosen = destinations.partition
                # Default arguments are left out: parsing them costs the base class as much as a look-up costs here.
                try:
                    _send(self, topic, value, None, chosen)
                except KafkaException as refusal:
                    self._kafka_azimuth.produce_refused(self, refusal, topic, value, key, None, timestamp, headers)
                    return
                # No other code, perhaps of another thread, may run between the read and the write of a count.
                packed = destinations.unkeyed_packed
                packed[chosen] = total = packed[chosen] + weight
                if total >= destinations.full_at:
                    self._kafka_azimuth.topics_in_use.advance(topic, destinations)
                elif weight == EMPTY:
                    self._kafka_azimuth.topics_in_use.advance_after_empty(topic, destinations)
                return
        elif type(key) is bytes and key:
            try:
                destinations = self._kafka_azimuth_destinations[topic]
                find, slots, table, packed = destinations.keyed_way
                weight = WEIGHTS[len(value) + len(key)]
            except (IndexError, KeyError, TypeError):  # a long record; a topic that is new, or ignores keys; no name
                pass
            else:
                chosen = find(key, slots)
                if table is not None:
                    chosen = table[chosen]
                elif chosen is None:
                    chosen = destinations.learn(key)
                try:
                    _send(self, topic, value, key, chosen)
                except KafkaException as refusal:
                    self._kafka_azimuth.produce_refused(self, refusal, topic, value, key, None, timestamp, headers)
                    return
                packed[chosen] += weight  # without other code between the read and the write, here too
                return
    _produce_any(self, topic, value, key, partition, callback, on_delivery, timestamp, headers)


def _produce_any(  # noqa: PLR0913, PLR0917 - the parameters of `produce`
    self: Any,  # noqa: ANN401 - as `produce`
    topic: str,
    value: str | bytes | None,
    key: str | bytes | None,
    partition: int,
    callback: Delivered | None,
    on_delivery: Delivered | None,
    timestamp: int,
    headers: Any,  # noqa: ANN401 - as the base class types it
) -> None:
    """As `produce`, for records with text, other buffers or more than a key and a value."""
    destinations = self._kafka_azimuth_destinations.get(topic)
    # One callback only: the base class ignores `on_delivery` when `callback` is given, even as None. Compared with
    # None, because a callable may be false, such as an empty subclass of list.
    delivered = on_delivery if callback is None else callback
    if destinations is None or partition is not ANY_PARTITION:
        self._kafka_azimuth.produce_uncommon(self, topic, value, key, partition, delivered, timestamp, headers)
        return
    # The size is computed first: a queued record must not end in an error, and no other code, perhaps of another
    # thread, may run between the read and the write of a count.
    size = len(value) if type(value) is bytes else len(sent_bytes(value) or b"")
    keyed = None
    if key is None:
        chosen = destinations.partition
    else:
        hashed = key if type(key) is bytes else key_bytes(key)
        length = len(hashed)
        size += length
        if length >= destinations.shortest_key:
            chosen = destinations.keyed_partition(hashed)
            keyed = destinations.keyed.packed
        else:
            chosen = destinations.partition
    # Default arguments are left out: parsing them costs the base class as much as a look-up costs here.
    try:
        if delivered is None and headers is None and timestamp is NO_TIMESTAMP:
            _send(self, topic, value, key, chosen)
        else:
            _send(
                self,
                topic,
                value,
                key,
                chosen,
                self._kafka_azimuth.reports.before(delivered, headers),
                None,
                timestamp,
                headers,
            )
            size += headers_length(headers)
    except KafkaException as refusal:
        self._kafka_azimuth.produce_refused(self, refusal, topic, value, key, delivered, timestamp, headers)
        return
    if keyed is not None:
        keyed[chosen] += size * BYTE + 1
        return
    packed = destinations.unkeyed.packed
    packed[chosen] = total = packed[chosen] + (size * BYTE + 1)
    if total >= destinations.full_at:
        self._kafka_azimuth.topics_in_use.advance(topic, destinations)
    elif not size:
        self._kafka_azimuth.topics_in_use.advance_after_empty(topic, destinations)
