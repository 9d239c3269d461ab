"""Admission: how far into each partition the next batch reads. Pure.

A limit is shared max-min fair: every partition gets what it has, up to an equal share, and what small ones leave is
shared by the large ones. Spark's connector shares in proportion to the backlog instead, so that one topic with a
million records behind holds every small topic back; here hundreds of small topics stay fresh beside it.
"""

from collections.abc import Mapping

from spark_sink.ranges.batch_offset import TopicPartition


def admit(backlog: Mapping[TopicPartition, int], limit: int | None) -> dict[TopicPartition, int]:
    """Share out a limit over partitions.

    Args:
        backlog: offsets that could be read, by partition, 0 or more.
        limit: offsets that the batch may read; None for all.

    Returns:
        Offsets to read by partition, together min(limit, whole backlog). Where it does not divide evenly, the
        first partitions in order get one more.
    """
    if limit is None or sum(backlog.values()) <= limit:
        return dict(backlog)
    granted: dict[TopicPartition, int] = {}
    left = max(limit, 0)
    # Smallest backlog first: each takes at most an equal share of what is left, so no share is ever taken back.
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
