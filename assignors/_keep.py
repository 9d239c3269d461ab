"""Which claims stay where every member may read everything: as many as the bounds allow."""

import numpy as np

from assignors._bound import Band
from assignors._hash import GOLDEN, U64, mix64s
from assignors._problem import I32, I64, NOBODY, Problem


def kept_loads(
    owned: I64, band: Band, partitions: int, weights: np.ndarray[tuple[int, ...], np.dtype[np.float64]]
) -> I64:
    """Decide how many of its claims each member keeps; the sum is the largest that the band allows.

    A member over its bound gives the surplus; where the members below their lower bound need more than is free,
    the highest loads above the lower bound give it.

    Args:
        owned: valid claims of each member, shape (M,).
        band: bounds of the loads.
        partitions: how many there are in all.
        weights: of the members, shape (M,).
    """
    kept = np.minimum(owned, band.high)
    needed = int(np.maximum(band.low - kept, 0).sum())
    short = needed - (partitions - int(kept.sum()))
    if short > 0:
        spare = np.maximum(kept - band.low, 0)
        who = np.repeat(np.arange(len(kept)), spare)
        # One entry for each unit above the lower bound, named by the load it would leave.
        height = kept[who] - _count_up(spare)
        order = np.lexsort((who, -height / weights[who]))
        kept = kept - np.bincount(who[order[:short]], minlength=len(kept))
    return kept


def release(problem: Problem, kept: I64, topic_of: I32, topic_hashes: U64) -> I32:
    """Pick which claims go where a member keeps fewer than it has.

    First those of topics it holds most of (the spread gets better), then those it ranks lowest for.

    Returns:
        The owner of each partition, NOBODY where it is to be given anew, shape (P,).
    """
    owner = problem.owner.copy()
    held = np.bincount(owner[owner >= 0], minlength=len(kept))
    giving = held > kept
    at = np.flatnonzero((owner >= 0) & giving[owner])
    if not at.size:
        return owner
    who, topic = owner[at], topic_of[at]
    rank = mix64s(problem.hashes[who] ^ mix64s(topic_hashes[topic] + np.uint64(GOLDEN)))
    by_topic = np.lexsort((at, topic, who))
    nth = np.empty(len(at), dtype=np.int64)
    nth[by_topic] = _run_positions(who[by_topic].astype(np.int64) << 32 | topic[by_topic])
    order = np.lexsort((rank, -nth, who))
    place = _run_positions(who[order])
    owner[at[order[place < (held - kept)[who[order]]]]] = NOBODY
    return owner


def _count_up(counts: I64) -> I64:
    """Count 0, 1, ... anew for each count: [2, 3] gives 0 1 0 1 2."""
    ends = np.cumsum(counts)
    return np.arange(int(counts.sum())) - np.repeat(ends - counts, counts)


def _run_positions(keys: I64 | I32) -> I64:
    """Position of each entry in its run of equal keys."""
    starts = np.flatnonzero(np.r_[True, keys[1:] != keys[:-1]])
    return _count_up(np.diff(np.r_[starts, len(keys)]))
