"""Decides how far into each partition the next batch reads. Pure.

A limit is shared max-min fair: every partition gets its backlog, up to an equal share, and the partitions with a
larger backlog divide the rest. Spark's connector divides the limit in proportion to the backlog instead, so one topic
with a backlog of a million records delays every small topic. Here hundreds of small topics stay fresh next to it.
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass, field

from spark_sink.ranges.batch_offset import TopicPartition


@dataclass(frozen=True, slots=True, kw_only=True)
class Limit:
    """How far a batch may read.

    Attributes:
        offsets: most offsets; None for all.
        bytes: most bytes; None for all.
        sizes: mean bytes of a record, by topic; needed with `bytes`.
    """

    offsets: int | None = None
    bytes: int | None = None
    sizes: Mapping[str, float] = field(default_factory=dict)

    def admit(self, backlog: Mapping[TopicPartition, int]) -> dict[TopicPartition, int]:
        """Divide both limits among the partitions: first the offsets, then the bytes."""
        granted = admit(backlog, self.offsets)
        return granted if self.bytes is None else _admit_bytes(granted, self.bytes, self.sizes)


def _admit_bytes(
    backlog: Mapping[TopicPartition, int], most: int, sizes: Mapping[str, float]
) -> dict[TopicPartition, int]:
    """Divide a limit in bytes. Something is read even if a record is larger than the limit."""
    shares = admit({key: math.ceil(records * sizes[key.topic]) for key, records in backlog.items() if records}, most)
    granted = {
        key: min(records, int(shares.get(key, 0) / sizes[key.topic])) if records else 0
        for key, records in backlog.items()
    }
    left = most - sum(records * sizes[key.topic] for key, records in granted.items() if records)
    # Shares smaller than a record read nothing, so the rest goes to the largest backlogs, each of which then shrinks.
    for key in sorted(shares, key=lambda key: (-backlog[key], key)):
        first = not any(granted.values())
        if not granted[key] and (first or sizes[key.topic] <= left):
            granted[key] = 1
            left -= sizes[key.topic]
    return granted


def admit(backlog: Mapping[TopicPartition, int], limit: int | None) -> dict[TopicPartition, int]:
    """Divide a limit among partitions.

    Args:
        backlog: readable offsets, by partition, 0 or more.
        limit: offsets that the batch may read; None for all.

    Returns:
        Offsets to read by partition, in total min(limit, whole backlog). If the limit does not divide evenly, the
        first partitions in order get one more.
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
        for index, key in enumerate(sorted(order)):
            granted[key] = share + (index < extra)
    return granted
