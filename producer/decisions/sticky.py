"""The next partition for records without a key (KIP-794): by weight among the candidates."""

from bisect import bisect_right
from collections.abc import Callable, Mapping, Sequence
from itertools import accumulate
from random import Random

Chance = Callable[[int], int]
"""Draws an integer in [0, n); the only source of randomness, so that tests can replace it."""


RECORD_OVERHEAD = 21
"""Size of a record without key and value in a batch, in bytes (Java's MAX_RECORD_OVERHEAD)."""


def chance(seed: int | None = None) -> Chance:
    """Create a source of randomness; the same seed gives the same numbers."""
    return Random(seed).randrange  # noqa: S311 - spreads load, guards nothing


def queue_weights(candidates: Sequence[int], queues: Mapping[int, int]) -> tuple[int, ...] | None:
    """Weigh candidates against their queues: the longest weighs 1, an empty one the most.

    Args:
        candidates: partition ids.
        queues: queue length per partition, in batches or any other unit; a missing partition has an empty queue.

    Returns:
        Cumulative weights, one per candidate; None if all are equal and a uniform draw is enough.

    Source: KIP-794, BuiltInPartitioner.updatePartitionLoadStats.
    """
    waiting = [queues.get(partition, 0) for partition in candidates]
    longest = max(waiting, default=0)
    if longest == min(waiting, default=0):
        return None
    return tuple(accumulate(longest + 1 - one for one in waiting))


def pick(candidates: Sequence[int], cumulative: Sequence[int] | None, draw: Chance) -> int:
    """Pick a candidate.

    Args:
        candidates: partition ids, not empty.
        cumulative: weights from `queue_weights`, or None for equal ones.
        draw: the source of randomness.

    Returns:
        One of the candidates.
    """
    if cumulative is None:
        return candidates[draw(len(candidates))]
    return candidates[bisect_right(cumulative, draw(cumulative[-1]))]
