"""Decides which claims stay if every member may read every topic: as many as the bounds allow."""

import numpy as np

from assignors.hashing.murmur3_hash import F64, GOLDEN, U64, mix64s
from assignors.planner.input_arrays import I32, I64, NO_OWNER, Problem
from assignors.planner.load_bounds import Band


def kept_loads(owned: I64, band: Band, partitions: int, weights: F64) -> I64:
    """Decide how many of its claims each member keeps; the sum is the largest that the band allows.

    A member above its upper bound gives the surplus. If the members below their lower bounds need more partitions than
    the unowned ones, the highest loads give them, down to their lower bounds.

    Args:
        owned: valid claims of each member, shape (M,).
        band: bounds of the loads.
        partitions: number of all partitions.
        weights: of the members, shape (M,).
    """
    kept = np.minimum(owned, band.high)
    needed = int(np.maximum(band.low - kept, 0).sum())
    short = needed - (partitions - int(kept.sum()))
    if short > 0:
        surplus = np.maximum(kept - band.low, 0)
        givers = np.repeat(np.arange(len(kept)), surplus)
        # One entry for each unit above the lower bound, with the load without that unit.
        height = kept[givers] - _count_up(surplus)
        order = np.lexsort((givers, -height / weights[givers]))
        kept = kept - np.bincount(givers[order[:short]], minlength=len(kept))
    return kept


def release(problem: Problem, owner: I32, kept: I64, kind_of: I64, topic_of: I32, hashes: U64) -> I32:  # noqa: PLR0913, PLR0917 - arrays of one plan
    """Choose the claims to release if a member keeps fewer partitions of a kind than it has.

    First come topics of which it holds most, which spreads them better, then topics for which it ranks lowest.

    Args:
        problem: what is planned.
        owner: valid claims that may stay, shape (P,).
        kept: number of each kind that each member keeps, shape (M, K).
        kind_of: kind of each partition, shape (P,).
        topic_of: topic of each partition, shape (P,).
        hashes: of the topic names, shape (T,).

    Returns:
        The owner of each partition, NO_OWNER if it is free, shape (P,).
    """
    kinds = kept.shape[1]
    out = owner.copy()
    held = np.flatnonzero(owner >= 0)
    bundles = owner[held].astype(np.int64) * kinds + kind_of[held]
    over = np.bincount(bundles, minlength=kept.size) - kept.reshape(-1)
    among = over[bundles] > 0
    at = held[among]
    if not at.size:
        return out
    holder, topic, bundle = owner[at], topic_of[at], bundles[among]
    rank = mix64s(problem.hashes[holder] ^ mix64s(hashes[topic] + np.uint64(GOLDEN)))
    by_topic = np.lexsort((at, topic, holder))
    nth = np.empty(len(at), dtype=np.int64)
    nth[by_topic] = _run_positions(holder[by_topic].astype(np.int64) << 32 | topic[by_topic])
    order = np.lexsort((rank, -nth, bundle))
    place = _run_positions(bundle[order])
    out[at[order[place < over[bundle[order]]]]] = NO_OWNER
    return out


def _count_up(counts: I64) -> I64:
    """Number the elements of each count from 0: [2, 3] gives 0 1 0 1 2."""
    ends = np.cumsum(counts)
    return np.arange(int(counts.sum())) - np.repeat(ends - counts, counts)


def _run_positions(keys: I64 | I32) -> I64:
    """Return the position of each entry in its run of equal keys."""
    starts = np.flatnonzero(np.r_[True, keys[1:] != keys[:-1]])
    return _count_up(np.diff(np.r_[starts, len(keys)]))
