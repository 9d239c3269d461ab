"""Decides how far into each partition the next batch reads. Pure.

The limit is shared max-min fair: every partition gets its backlog, up to an equal share, and the partitions with a
larger backlog divide the rest. Spark's connector divides the limit in proportion to the backlog instead, so one topic
with a backlog of a million records delays every small topic. Here hundreds of small topics stay fresh next to it.
"""

from collections.abc import Mapping

from spark_sink.ranges.batch_offset import TopicPartition


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
