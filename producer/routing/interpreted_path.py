"""The hot path in Python: what a record needs to know of its topic, what it leaves behind, and `produce` itself.

`compiled_path.pyx` has the same surface with C's integers in place of Python's. It takes a tenth of the time and exists
where the package was built with a C compiler. A change here needs the same change there.
"""

from collections.abc import Callable
from typing import Any, ClassVar, Final

from confluent_kafka import KafkaError, KafkaException, Message, Producer, murmur2

from producer.decisions.key_mapping import Table, key_bytes, sent_bytes
from producer.traffic_counts import Count

Delivered = Callable[[KafkaError | None, Message], None]
_send = Producer.produce

RECORD: Final = 1 << 60
"""One record in a packed count, above the bytes: an exabyte of one partition fits below it. CPython's integers have 30
bits a digit: up to a billion records no more digits than above 48 bits, and from 4,096 on as many."""
BYTES: Final = RECORD - 1
"""What masks a packed count's bytes."""


class Sent:
    """Records and bytes per partition.

    Attributes:
        packed: per partition, `RECORD` for each record plus its bytes. A flat list, as at 10,000 partitions an object
            each would miss the caches, and one number, because a second list costs the hot path a tenth.
    """

    __slots__ = ("packed",)

    def __init__(self) -> None:
        self.packed: list[int] = []

    def __len__(self) -> int:
        return len(self.packed)

    def grow(self, partitions: int) -> None:
        """Make room for so many partitions. In place and never smaller: another thread may be about to count here."""
        self.packed.extend([0] * (partitions - len(self.packed)))

    def add(self, partition: int, size: int, records: int = 1) -> None:
        """Count a record of so many bytes; both negative take one back."""
        self.packed[partition] += records * RECORD + size

    def of(self, partition: int) -> Count:
        """Say what a partition was sent."""
        return Count(*divmod(self.packed[partition], RECORD))


class Lane:
    """Where one topic's records go now; replaced as a whole when that changes, so no reader sees half of two.

    Attributes:
        table: partition per slot; a key's is `table[murmur2(key, slots)]`.
        slots: length of the table.
        keyed: what records with a key add up to; shared by all lanes of a topic.
        partition: where records without a key go until its bytes in `unkeyed` reach `switch_at`.
        unkeyed: what records without a key add up to; shared as `keyed` is.
    """

    __slots__ = ("keyed", "partition", "slots", "switch_at", "table", "unkeyed")

    counts: ClassVar[type[Sent]] = Sent

    def __init__(self, table: Table, keyed: Sent, partition: int, unkeyed: Sent, switch_at: int) -> None:
        self.table = table
        self.slots = len(table)
        self.keyed = keyed
        self.partition = partition
        self.unkeyed = unkeyed
        self.switch_at = switch_at

    def place(self, key: bytes) -> int:
        """Find a key's partition; the hot paths do the same in place."""
        return self.table[murmur2(key, self.slots)]

    def is_full(self) -> bool:
        """Tell whether records without a key should move on to another partition."""
        return self.unkeyed.packed[self.partition] & BYTES >= self.switch_at


def produce(  # noqa: PLR0913, PLR0917 - the base class's parameters, in its order
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
    # Straight down and without a helper: a call costs a tenth of the whole budget of this function.
    try:
        lane = self._lanes[topic]
    except KeyError:
        lane = None
    # One callback only: the base class does not see `on_delivery` behind a `callback` of None. Not by its truth: a
    # callable that collects is false while it is empty.
    told = on_delivery if callback is None else callback
    if lane is None or partition != -1:
        self._produce_aside(topic, value, key, partition, told, timestamp, headers)
        return
    # All that is counted is known before: a record that was queued must not end in an error, and between the two
    # halves of `+=` no other code, perhaps of another thread, may run.
    amount = (len(value) if type(value) is bytes else len(sent_bytes(value) or b"")) + RECORD
    if key is None:
        chosen = lane.partition
    else:
        hashed = key if type(key) is bytes else key_bytes(key)
        chosen = lane.table[murmur2(hashed, lane.slots)]
        amount += len(hashed)
    # Arguments that say nothing are left out: reading them costs the base class what a look-up costs here.
    try:
        if told is None and headers is None and timestamp == 0:
            _send(self, topic, value, key, chosen)
        else:
            _send(self, topic, value, key, chosen, told, None, timestamp, headers)
    except KafkaException as refusal:
        self._produce_after(refusal, topic, value, key, told, timestamp, headers)
        return
    if key is not None:
        lane.keyed.packed[chosen] += amount
        return
    packed = lane.unkeyed.packed
    packed[chosen] += amount
    if packed[chosen] & BYTES >= lane.switch_at:
        self._router.advance(topic, lane)
