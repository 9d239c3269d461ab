"""Decides how far into each partition the next batch reads. Pure.

A limit is shared max-min fair: every partition gets its backlog, up to an equal share, and the partitions with a
larger backlog divide the rest. Spark's connector divides the limit in proportion to the backlog instead, so one topic
with a backlog of a million records delays every small topic. Here hundreds of small topics stay fresh next to it.

A limit may be too small for a record of every partition. Then the partitions that have waited for the most batches are
read first, so each of `n` partitions advances at least once in `ceil(n / k)` batches, where `k` is the number of
records that the limits let through, at least 1.
"""

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from types import MappingProxyType

from spark_sink.ranges.batch_offset import TopicPartition

Waits = Mapping[TopicPartition, int]
NO_WAITS: Waits = MappingProxyType({})


@dataclass(frozen=True, slots=True, kw_only=True)
class Limit:
    """How far a batch may read.

    Attributes:
        offsets: maximum number of offsets; None for all.
        bytes: maximum number of bytes; None for all.
        sizes: mean bytes of a record, by topic; needed with `bytes`.
    """

    offsets: int | None = None
    bytes: int | None = None
    sizes: Mapping[str, float] = field(default_factory=dict)

    def admit(self, backlog: Mapping[TopicPartition, int], waits: Waits = NO_WAITS) -> dict[TopicPartition, int]:
        """Divide both limits among the partitions: first the offsets, then the bytes.

        Args:
            backlog: readable offsets, by partition, 0 or more.
            waits: from `waited`, after the previous batch.
        """
        granted = admit(backlog, self.offsets, waits)
        return granted if self.bytes is None else _admit_bytes(granted, self.bytes, self.sizes, waits)


def waited(
    waits: Waits, backlog: Mapping[TopicPartition, int], granted: Mapping[TopicPartition, int]
) -> dict[TopicPartition, int]:
    """Return for how many batches each partition with a backlog has not advanced.

    Args:
        waits: the same before this batch.
        backlog: readable offsets before this batch.
        granted: offsets that this batch reads.
    """
    return {key: waits.get(key, 0) + 1 for key, records in backlog.items() if records and not granted.get(key)}


def _admit_bytes(
    backlog: Mapping[TopicPartition, int], most: int, sizes: Mapping[str, float], waits: Waits
) -> dict[TopicPartition, int]:
    """Divide a limit in bytes: first a record for each partition, while they fit, then the rest.

    The first record is read even if it is larger than the limit.
    """
    granted = dict.fromkeys(backlog, 0)
    left = float(most)
    for key in _queue((key for key, records in backlog.items() if records), waits):
        if sizes[key.topic] <= left or left == most:
            granted[key] = 1
            left -= sizes[key.topic]
    more = {key: records - 1 for key, records in backlog.items() if granted[key] and records > 1}
    shares = admit({key: math.ceil(n * sizes[key.topic]) for key, n in more.items()}, int(left), waits)
    for key, share in shares.items():
        granted[key] += min(more[key], int(share / sizes[key.topic]))
    return granted


def _queue(keys: Iterable[TopicPartition], waits: Waits) -> list[TopicPartition]:
    """Return the partitions in the order in which they are read if there is not enough for all."""
    return sorted(keys, key=lambda key: (-waits.get(key, 0), key))


def admit(
    backlog: Mapping[TopicPartition, int], limit: int | None, waits: Waits = NO_WAITS
) -> dict[TopicPartition, int]:
    """Divide a limit among partitions.

    Args:
        backlog: readable offsets, by partition, 0 or more.
        limit: offsets that the batch may read; None for all.
        waits: from `waited`, after the previous batch.

    Returns:
        Offsets to read by partition, in total min(limit, whole backlog). If the limit does not divide evenly, the
        partitions that have waited for the most batches get one more, and of these the first ones in order.
    """
    if limit is None or sum(backlog.values()) <= limit:
        return dict(backlog)
    granted: dict[TopicPartition, int] = {}
    left = max(limit, 0)
    # Smallest backlog first: each takes at most an equal share of the rest, so no share has to shrink later.
    order = sorted(backlog, key=lambda key: (backlog[key], key), reverse=True)
    while order:
        share = left // len(order)
        key = order[-1]
        if backlog[key] > share:
            break
        granted[key] = backlog[key]
        left -= backlog[key]
        order.pop()
    if order:
        share, extra = divmod(left, len(order))
        for index, key in enumerate(_queue(order, waits)):
            granted[key] = share + (index < extra)
    return granted
