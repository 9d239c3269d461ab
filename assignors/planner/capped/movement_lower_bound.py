"""A lower bound of the claims that move if worker caps bind and all members read the same topics.

Four conditions force moves; no claim is counted twice:

* a member above its upper bound gives the surplus; it can give a topic with `workers=1` only as a whole;
* if every topic has one worker, a load is a sum of whole topics, so its bounds are rounded to such sums;
* a topic whose unowned partitions exceed the room of its readers displaces claims, or owners of it that lose their
  claims make place for readers with more room;
* members below their lower bound need more partitions than the unowned ones;

and, if it gives a larger number, owners in excess of the cap of their topic keep no partition of it.

With `workers=1` the existence of a plan within the bounds is a bin packing problem, so no bound that is found quickly
is always tight.
"""

import numpy as np

from assignors.hashing.murmur3_hash import F64
from assignors.planner.input_arrays import I32, I64
from assignors.planner.kept_claims import kept_loads
from assignors.planner.load_bounds import Band


def least_moves(owned: I64, sizes: I64, caps: I32, band: Band, weights: F64) -> int:
    """Bound the claims that move in any plan within the band and the caps.

    Args:
        owned: valid claims, shape (T, M).
        sizes: partitions of each topic, shape (T,).
        caps: maximum number of different members of each topic, shape (T,).
        band: bounds of the loads.
        weights: of the members, shape (M,).
    """
    many = (owned > 0).sum(axis=1) > caps
    lowest = np.sort(owned[many], axis=1)
    over_cap = int(lowest[np.arange(owned.shape[1])[None, ::-1] >= caps[many, None]].sum())
    whole = caps == 1
    band = _in_whole_topics(band, sizes, whole)
    claims = owned.sum(axis=0)
    most = np.minimum(claims, band.high)
    for member in np.flatnonzero(claims > band.high) if whole.any() else ():
        most[member] = _most_kept(owned[:, member], whole, int(band.high[member]))
    kept = kept_loads(most, band, int(sizes.sum()), weights)
    needed = int((claims - kept).sum())
    pushed = int((claims - most).sum()) + _displaced(owned, sizes, caps, np.maximum(band.high - most, 0))
    return max(over_cap, needed, pushed)


def _displaced(owned: I64, sizes: I64, caps: I32, room: I64) -> int:
    """Bound the claims that members must lose to receive the unowned partitions.

    The readers of a topic are the owners that stay and others up to the cap. What they receive of it beyond the sum of
    their room displaces claims. A member that receives partitions of several topics loses at least the sum of what
    each of them alone displaces there, so the topics are added up. For each number of owners that do not stay, the
    best are those with the smallest sum of claims, which become unowned, and room.
    """
    reach = np.r_[0, np.cumsum(np.sort(room)[::-1])]
    unowned = sizes - owned.sum(axis=1)
    readers = np.minimum(caps, len(room))
    count = (owned > 0).sum(axis=1)
    free = count == 0
    displaced = int(np.maximum(sizes[free] - reach[readers[free]], 0).sum())
    for topic in np.flatnonzero(~free & ((unowned > 0) | (count > readers))).tolist():
        owners = np.flatnonzero(owned[topic])
        gone = np.r_[0, np.cumsum(np.sort(owned[topic, owners] + room[owners]))]
        lost = np.arange(max(0, len(owners) - int(readers[topic])), len(owners) + 1)
        others = readers[topic] - len(owners) + lost
        received = int(unowned[topic]) - int(room[owners].sum()) + gone[lost] - reach[others]
        displaced += max(0, int(received.min()))
    return displaced


def _in_whole_topics(band: Band, sizes: I64, whole: I64) -> Band:
    """Round the bounds to loads that are the sum of some set of topics."""
    if not whole.any():
        return band
    top = int(sizes.sum())
    sums = _sums(sizes[whole].tolist(), int(sizes[~whole].sum()), top)
    low = np.array([_next(sums, n) for n in band.low.tolist()])
    high = np.array([_last(sums, n) for n in band.high.tolist()])
    fits = low <= high  # else no plan is within the bounds
    return Band(np.where(fits, low, band.low), np.where(fits, high, band.high))


def _most_kept(claims: I64, whole: I64, high: int) -> int:
    """Return the largest number of claims that a member can keep within its bound."""
    sums = _sums(claims[whole & (claims > 0)].tolist(), int(claims[~whole].sum()), int(claims.sum()))
    return _last(sums, high)


def _sums(whole: list[int], any_number: int, top: int) -> int:
    """Return the possible sums up to `top`, as the bits of a number."""
    mask = (1 << (top + 1)) - 1
    sums = (1 << (any_number + 1)) - 1
    for size in whole:
        sums |= sums << size & mask
    return sums & mask


def _next(sums: int, least: int) -> int:
    """Return the smallest sum that is `least` or more; `least` where there is none."""
    above = sums >> least
    return least + (above & -above).bit_length() - 1 if above else least


def _last(sums: int, most: int) -> int:
    """Return the largest sum that is `most` or less."""
    return (sums & ((1 << (most + 1)) - 1)).bit_length() - 1
