"""Plans under different subscriptions, racks and worker caps.

Partitions with the same racks that the same members may read are one kind. `fairest_loads` finds the best loads.
`min_cost_flow` finds the number of partitions of each kind that every member keeps and gets. `kept_claims` and
`place_unowned` choose the partitions.
"""

from dataclasses import dataclass

import numpy as np

from assignors.hashing.murmur3_hash import U64
from assignors.planner.balance.fairest_loads import fairest_counts
from assignors.planner.balance.min_cost_flow import Exchange, Flow
from assignors.planner.input_arrays import I32, I64, NO_OWNER, Bools, Problem, equal_rows
from assignors.planner.kept_claims import kept_loads, release
from assignors.planner.load_bounds import Band, fair_band
from assignors.planner.place_unowned import Placement, Scores
from assignors.planner.rack_locality import Racks


@dataclass(frozen=True, slots=True, kw_only=True)
class Kinds:
    """Partitions by the members that may read them, and by their racks.

    Attributes:
        of: kind of each partition, shape (P,).
        counts: partitions of each kind, shape (K,); 0 where no member may read it.
        allowed: which members may read which kind, shape (M, K).
        off: which members are off the racks of which kind, shape (M, K).
    """

    of: I64
    counts: I64
    allowed: Bools
    off: Bools


def read_kinds(problem: Problem, racks: Racks, readers: Bools, cap_binds: Bools) -> Kinds:
    """Sort the partitions into kinds.

    Args:
        problem: what is planned.
        racks: which members are local to which partitions.
        readers: which members may read which topic, shape (T, M).
        cap_binds: topics whose readers were chosen, shape (T,): each is a separate kind.
    """
    first, column_of = equal_rows(problem.subscribed.T)
    column_of = np.where(cap_binds, len(first) + np.arange(len(cap_binds)), column_of)
    topic_of = np.repeat(np.arange(len(cap_binds)), np.diff(problem.first))
    names = column_of[topic_of] * len(racks.off) + racks.kind_of
    _, first, of = np.unique(names, return_index=True, return_inverse=True)
    allowed = readers[topic_of[first]].T
    counts = np.where(allowed.any(axis=0), np.bincount(of, minlength=len(first)), 0)
    return Kinds(of=of, counts=counts, allowed=allowed, off=racks.off[racks.kind_of[first]].T)


def general_plan(  # noqa: PLR0913, PLR0917 -- the parts of a request
    problem: Problem,
    kinds: Kinds,
    pieces: I64,
    epsilon: float,
    placement: Placement,
    scores: Scores,
    hashes: U64,
    fairest: bool,  # noqa: FBT001 -- a part of the request
) -> bool:
    """Plan into `placement.owner`.

    Args:
        problem: what is planned.
        kinds: of the partitions.
        pieces: partitions of each topic that its readers should get, shape (T, M), or empty; topics without a cap that
            the same members read share the row of the first of them.
        epsilon: allowed distance from the fair share.
        placement: places the free partitions, and has the result.
        scores: preference of the members for a topic.
        hashes: of the topic names, shape (T,).
        fairest: whether no plan has more even loads than the pieces.

    Returns:
        Whether no cheaper plan exists for these kinds.
    """
    topic_of = np.repeat(np.arange(len(problem.topics), dtype=np.int32), np.diff(problem.first))
    held = (problem.owner >= 0) & kinds.allowed[problem.owner, kinds.of]
    shape = kinds.allowed.shape
    cells = problem.owner[held].astype(np.int64) * shape[1] + kinds.of[held]
    owned = np.bincount(cells, minlength=shape[0] * shape[1]).reshape(shape)
    preferred = _preferred_counts(kinds, pieces, topic_of)
    fairest = fairest and preferred is not None and bool((preferred.sum(axis=0) == kinds.counts).all())
    given, proven = _solve(problem, kinds, owned, preferred, epsilon, fairest=fairest)
    owner = np.where(held, problem.owner, NO_OWNER).astype(np.int32)
    kept = np.minimum(owned, given)
    placement.owner = owner = release(problem, owner, kept, kinds.of, topic_of, hashes)
    by_kind = np.argsort(kinds.of, kind="stable")
    by_kind = by_kind[owner[by_kind] == NO_OWNER]
    ends = np.cumsum(np.bincount(kinds.of[by_kind], minlength=len(kinds.counts)))
    kept_of = kept.sum(axis=0)
    order = np.argsort(-(kinds.counts - kept_of), kind="stable")
    for kind in order[(given.sum(axis=0) > kept_of)[order]].tolist():  # nothing of the others is given
        quota = given[:, kind] - kept[:, kind]
        free = by_kind[ends[kind] - int(quota.sum()) : ends[kind]]
        placement.place(scores, free, Band(quota, quota), np.zeros_like(quota), quota / quota.sum())
    return proven


def _preferred_counts(kinds: Kinds, pieces: I64, topic_of: I32) -> I64 | None:
    """Return the pieces as counts of kinds, for rows of pieces that are one kind."""
    if not pieces.size:
        return None
    preferred = np.zeros(kinds.allowed.shape, dtype=np.int64)
    _, first, sizes = np.unique(kinds.of, return_index=True, return_counts=True)
    rows = topic_of[first]
    whole = np.flatnonzero(pieces.sum(axis=1)[rows] == sizes)
    kind, member = np.nonzero(pieces[rows[whole]])  # few of all: reading them alone takes less time than whole rows
    preferred[member, whole[kind]] = pieces[rows[whole[kind]], member]
    return preferred


def _is_optimal(counts: I64, kinds: Kinds, owned: I64, band: Band, least: int, *, fairest: bool) -> bool:  # noqa: PLR0913 -- the parts of a request
    """Return whether the counts are obviously optimal: all placed, on rack, and only required moves.

    The loads are within the band; or no claim moves, and the loads are the fairest, or those of members with a readable
    kind differ by at most one.
    """
    if kinds.off.any() or (counts.sum(axis=0) != kinds.counts).any():
        return False
    load = counts.sum(axis=1)
    moved = int(np.maximum(owned - counts, 0).sum())
    if (load >= band.low).all() and (load <= band.high).all():
        return moved <= least
    able = load[kinds.allowed.any(axis=1)]
    return moved == 0 and (fairest or (bool((band.high == band.high[0]).all()) and int(np.ptp(able)) <= 1))


def _solve(  # noqa: PLR0913 -- the parts of a request
    problem: Problem, kinds: Kinds, owned: I64, preferred: I64 | None, epsilon: float, *, fairest: bool
) -> tuple[I64, bool]:
    """Solve within the band; if subscriptions differ or no plan fits the band, with the best exact loads.

    If the loads of the preferred counts are the fairest and outside the band, no plan fits the band.

    Returns:
        Partitions of each kind on each member, shape (M, K), and whether they are proven the cheapest.
    """
    _, weight_class = np.unique(problem.weights, return_inverse=True)
    if problem.equal:
        band = fair_band(int(kinds.counts.sum()), problem.weights, epsilon)
        claims = owned.sum(axis=1)
        least = int((claims - kept_loads(claims, band, problem.partitions, problem.weights)).sum())
        if preferred is not None and _is_optimal(preferred, kinds, owned, band, least, fairest=fairest):
            return preferred, True
        if not (fairest and preferred is not None and _is_outside(preferred.sum(axis=1), band)):
            flow = Flow(kinds.counts, kinds.allowed, kinds.off, owned)
            if flow.solve(Exchange(band.low, band.high, exact=False, weights=weight_class), preferred, least):
                return flow.given, flow.proven
    if fairest and preferred is not None:
        best = preferred.sum(axis=1)
    else:
        best, preferred = fairest_counts(kinds.counts, kinds.allowed, problem.weights).sum(axis=1), None
    flow = Flow(kinds.counts, kinds.allowed, kinds.off, owned)
    flow.solve(Exchange(best, best, exact=True, weights=weight_class), preferred, 0)
    return flow.given, flow.proven


def _is_outside(load: I64, band: Band) -> bool:
    return bool((load < band.low).any() or (load > band.high).any())
