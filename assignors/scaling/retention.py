"""Workers that a partition too hot for one of them needs so that retention deletes none of its unread records."""

import math

import numpy as np

from assignors.scaling.lag_gate import PartitionState, View

_CALM = 1.25  # fewer workers only where they would do for so much more: what comes and waits is never quite still


def rescue(view: View, rate: float, part: float) -> int:
    """Count the workers with which each hot partition's backlog is read before it is deleted.

    No number of workers brings a hot partition within the objective. But its reader has other partitions too, and with
    more workers it has fewer of them. Records that came at a steady rate are all read in time when the whole backlog is
    read within one retention: what waits longest is due first, and what came last has that much longer.

    Args:
        view: the topic.
        rate: records per second that one worker reads, above 0.
        part: of the retention, how much may be used, above 0, at most 1.

    Returns:
        0 where nothing is hot or nothing is deleted by time. The present number stays while little would be saved.
        Hot partitions are taken to have a worker each: who holds what is not known here.
    """
    hot = (view.states == PartitionState.HOT) & (view.lag > 0)
    if not hot.any() or not math.isfinite(view.retention_s):
        return 0
    needed = float(view.lag[hot].max()) / (part * view.retention_s)
    calm = view.arriving[view.flowing & (view.arriving > 0)]
    other = float(calm.mean()) if len(calm) else 0.0
    partitions = max(view.usable, 1)
    fewest = _fewest(needed, other, partitions, rate)
    if fewest >= view.workers:
        return fewest
    return min(_fewest(needed * _CALM, other, partitions, rate), view.workers)


def _fewest(needed: float, other: float, partitions: int, rate: float) -> int:
    """The smallest number of workers at which one partition's part of its reader is what it needs; at most all."""
    held = np.ceil(partitions / np.arange(1, partitions + 1))
    # Max-min fair: what the others leave over, and never less than an equal part.
    left = np.maximum(rate - (held - 1) * other, rate / held)
    enough = np.flatnonzero(left >= needed)
    return int(enough[0]) + 1 if len(enough) else partitions
