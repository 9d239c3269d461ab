"""Computes the workers with which retention deletes no unread records of a partition that is too hot for one worker."""

import math

import numpy as np

from assignors.scaling.stalled_lag import PartitionState, View

_CALM = 1.25  # fewer workers only if they are enough for this much more: arrivals and backlog always fluctuate


def rescue(view: View, rate: float, part: float) -> int:
    """Compute the number of workers that reads each hot partition's backlog before its deletion.

    No number of workers meets the objective for a hot partition. But its reader also has other partitions, and with
    more workers it has fewer of them. If records arrive at a steady rate, all are read in time if the whole backlog is
    read within one retention: the oldest record is due first, and the newest has correspondingly more time.

    Args:
        view: the topic.
        rate: records per second that one worker reads, above 0.
        part: usable fraction of the retention, above 0, at most 1.

    Returns:
        0 if no partition is hot or records are not deleted by time. The current number stays if the saving would be
        small. Each hot partition is assumed to have a different worker, because the assignment is not known here.
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
    """Return the smallest number of workers at which a partition's share of its reader is enough; at most all."""
    held = np.ceil(partitions / np.arange(1, partitions + 1))
    # Max-min fair: the rest that the others leave, and at least an equal part.
    left = np.maximum(rate - (held - 1) * other, rate / held)
    enough = np.flatnonzero(left >= needed)
    return int(enough[0]) + 1 if len(enough) else partitions
