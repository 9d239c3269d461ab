"""Bounds the number of partitions of each member: the fair share, and the allowed distance from it."""

import math
from dataclasses import dataclass

import numpy as np

from assignors.errors import BoundError
from assignors.hashing.murmur3_hash import F64
from assignors.planner.input_arrays import I64


@dataclass(frozen=True, slots=True)
class Band:
    """The smallest and the largest number of partitions of each member, shapes (M,)."""

    low: I64
    high: I64


def check_epsilon(epsilon: float) -> None:
    """Check the allowed imbalance.

    Raises:
        BoundError: negative or not a finite number.
    """
    try:
        fits = epsilon >= 0 and math.isfinite(epsilon)
    except (TypeError, OverflowError):  # text, None; a whole number beyond any float
        fits = False
    if not fits:
        raise BoundError(f"epsilon={epsilon!r}, need a finite number, 0 or more")


def fair_band(partitions: int, weights: F64, epsilon: float) -> Band:
    """Bound the loads if every member may read every topic.

    Every load is between (1 - epsilon) and (1 + epsilon) of the weighted fair share, in whole partitions. If no plan
    fits this, the band is widened just enough to include the exactly balanced plans.

    Args:
        partitions: number of partitions to place.
        weights: of the members, shape (M,), M of 1 or more.
        epsilon: 0 for exact balance.
    """
    share = partitions * weights / weights.sum()
    # Rounded first: 1.1 * 10 is 11.000000000000002, and 0.9 * 10 must not become 9.000000000000002.
    # No member can hold more than all partitions; with a huge epsilon, the sum of the bounds would overflow.
    high = np.floor(np.round(np.minimum((1 + epsilon) * share, partitions), 9)).astype(np.int64)
    low = np.ceil(np.round(np.maximum(0.0, (1 - epsilon) * share), 9)).astype(np.int64)
    if epsilon > 0 and (low <= high).all() and low.sum() <= partitions <= high.sum():
        return Band(low, high)
    exact = exact_band(partitions, weights)
    if epsilon == 0:
        return exact
    return Band(np.minimum(low, exact.low), np.maximum(high, exact.high))


def exact_band(partitions: int, weights: F64) -> Band:
    """Bound the loads to those with the smallest sorted load-to-weight vector, compared from the highest down.

    With equal weights these are floor and ceiling of the fair share. Otherwise units go one by one to the smallest
    (load + 1) / weight; members that tie for the last units may hold one more or not.
    """
    if (weights == weights[0]).all():
        floor, rest = divmod(partitions, len(weights))
        low = np.full(len(weights), floor, dtype=np.int64)
        return Band(low, low + (1 if rest else 0))
    low = _whole_shares(partitions, weights)
    left = partitions - int(low.sum())
    high = low.copy()
    while left:
        ratio = np.round((low + 1) / weights, 9)
        first = ratio == ratio.min()
        # Among members with the same ratio after one more unit, the heavier one had the lower ratio before.
        first &= weights == weights[first].max()
        if first.sum() > left:
            return Band(low, low + first)
        low = low + first
        high = low
        left = partitions - int(low.sum())
    return Band(low, high)


def _whole_shares(partitions: int, weights: F64) -> I64:
    # Giving units one by one gives at least the whole part of the share, so at most M - 1 units are left.
    share = partitions * weights / weights.sum()
    whole: I64 = np.floor(np.round(share, 9)).astype(np.int64)
    return whole
