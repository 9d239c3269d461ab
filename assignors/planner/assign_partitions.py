"""The planner: computes an owner for each partition from topics, members and claims."""

from collections.abc import Iterable
from dataclasses import replace
from typing import Final

import numpy as np

from assignors.errors import StrategyError
from assignors.hashing.murmur3_hash import U64, hash64s
from assignors.planner.balance.constrained_plan import general_plan, read_kinds
from assignors.planner.balance.large_groups import topic_by_topic_plan
from assignors.planner.capped.exact_small_groups import exact_plan, is_small
from assignors.planner.capped.movement_lower_bound import least_moves
from assignors.planner.capped.reader_choice import choose_readers
from assignors.planner.input_arrays import I32, NO_OWNER, Bools, Problem, read_problem
from assignors.planner.kept_claims import kept_loads, release
from assignors.planner.load_bounds import Band, check_epsilon, fair_band
from assignors.planner.member_hosts import Node, node_numbers
from assignors.planner.member_ranking import STRATEGIES, Strategy, member_scores
from assignors.planner.owners_by_volume import volume_owners
from assignors.planner.pinned_topics import Overrides, pinned_members
from assignors.planner.place_unowned import Placement, Scores
from assignors.planner.plan_request import PlanRequest
from assignors.planner.plan_result import Plan, count_moved
from assignors.planner.rack_locality import RACK_BY, RackBy, read_racks
from assignors.planner.topic_volumes import TopicWeights, check_weights
from assignors.planner.topics_and_members import Member, Topic
from assignors.planner.worker_caps import Workers, worker_caps

_IMPROVEMENTS: Final = 2
_LARGEST_EPSILON: Final = 1e9  # allows every load, and its product with a share still fits an integer
EXACT_CELLS: Final = 4_000_000
"""Members x kinds of partitions up to which different subscriptions and caps are planned exactly: about 300 MB."""


def plan(  # noqa: PLR0913 -- the parts of a request
    topics: Iterable[Topic],
    members: Iterable[Member],
    *,
    strategy: Strategy = "hrw",
    workers: Workers = None,
    epsilon: float = 0.05,
    seed: int = 0,
    keep: bool = True,
    rack_by: RackBy = "replicas",
    node: Node = None,
    overrides: Overrides | None = None,
    weights: TopicWeights | None = None,
) -> Plan:
    """Compute the owner of each partition.

    A pure function: no I/O, no clock, no randomness; the order of the input and PYTHONHASHSEED have no effect.

    Goals, the most important first: every partition on exactly one subscriber; at most `workers` members per
    topic; loads within epsilon of the weighted fair share; few partitions off their reader's rack; few moved; each
    topic spread over nodes and members; few topics per member.

    Args:
        topics: the topics that the group could read.
        members: of the group, with what they own.
        strategy: `hrw` ranks by rendezvous hashing, `shuffled` by a seeded shuffle rotated from topic to topic.
        workers: maximum number of different members that may read a topic: a number, by name or pattern, or None for
            all.
        epsilon: allowed distance from the fair share; 0 is exact balance.
        seed: another seed gives another ranking.
        keep: whether owned partitions stay if possible; False plans as if no member owned partitions.
        rack_by: a partition is local to the racks of its `replicas` (KIP-881) or only of its `leader`.
        node: how to find the host in a member's identity: a function, a pattern, or None for the default.
        overrides: topics that a person gives to members: by topic one identity or id of a member, or several. No other
            member reads such a topic; its partitions count in the loads.
        weights: volume of each topic relative to the others by name, such as bytes or records a second: loads are then
            bounded by volume instead of by number. A topic without a weight counts as the median topic. None or empty:
            by number.

    Raises:
        BoundError: epsilon is negative or not a number.
        OverrideError: an override names no member, or a member that does not subscribe to the topic.
        StrategyError: no such strategy, no such rack_by, or a seed that is not a whole number.
        TopicError: a topic or member is given twice.
        WeightError: a weight of a topic is negative or not a finite number.
        WorkersError: workers below 1, or a pattern that is not a regular expression.
    """
    if strategy not in STRATEGIES:
        raise StrategyError(f"strategy={strategy!r}, need one of {', '.join(STRATEGIES)}")
    if rack_by not in RACK_BY:
        raise StrategyError(f"rack_by={rack_by!r}, need one of {', '.join(RACK_BY)}")
    check_epsilon(epsilon)
    if not isinstance(seed, int):
        raise StrategyError(f"seed={seed!r}, need a whole number")
    if weights is not None:
        check_weights(weights)
    epsilon = min(epsilon, _LARGEST_EPSILON)
    if overrides:
        members = pinned_members(members, overrides)
    problem = read_problem(topics, members, seed, keep=keep)
    caps = worker_caps(workers, [t.name for t in problem.topics])
    racks = read_racks(problem, rack_by)
    request = PlanRequest(
        problem=problem,
        racks=racks,
        caps=caps,
        strategy=strategy,
        epsilon=epsilon,
        seed=seed,
        node=node,
        weights=weights or None,
    )
    if not problem.members or not problem.partitions:
        return Plan(request, np.full(problem.partitions, NO_OWNER, dtype=np.int32), 0)
    if weights:
        return Plan(request, volume_owners(request, weights, member_scores(problem, strategy, seed)), 0)
    return _solve(request)


def _solve(request: PlanRequest) -> Plan:
    problem, racks, caps, epsilon = request.problem, request.racks, request.caps, request.epsilon
    topic_hashes = hash64s([t.name for t in problem.topics], request.seed)
    scores = member_scores(problem, request.strategy, request.seed)
    placement = Placement(problem, node_numbers(problem.identities, request.node), epsilon)
    cap_binds = caps < np.minimum(np.diff(problem.first), len(problem.members))
    if problem.equal and not racks.off.any() and not cap_binds.any():
        bound = _plan_unconstrained(
            problem, fair_band(problem.partitions, problem.weights, epsilon), placement, scores, topic_hashes
        )
        return Plan(request, placement.owner, bound)
    if cap_binds.any() and is_small(problem):
        owner = exact_plan(problem, racks, caps, epsilon, scores)
        return Plan(request, owner, count_moved(problem, owner))
    band = fair_band(problem.partitions, problem.weights, epsilon)
    least = least_moves(problem.owned, np.diff(problem.first), caps, band, problem.weights) if problem.equal else 0
    proven, fairest = _plan_constrained(request, cap_binds, band, placement, scores, topic_hashes, least)
    before = problem.owner
    for _ in range(_IMPROVEMENTS if cap_binds.any() else 0):
        # Choosing readers is a heuristic: it runs again on its own plan, because otherwise the next rebalance, which
        # starts from that plan, would move partitions. It has nothing to improve where loads are the fairest.
        if fairest or _within(placement.owner, band) or np.array_equal(before, placement.owner):
            break
        before = placement.owner
        again = replace(request, problem=replace(problem, owner=before))
        fairest = _plan_constrained(again, cap_binds, band, placement, scores, topic_hashes, least)[1]
    if proven and not cap_binds.any():
        return Plan(request, placement.owner, count_moved(problem, placement.owner))
    if problem.equal and _within(placement.owner, band):
        return Plan(request, placement.owner, least, band=band)
    return Plan(request, placement.owner, 0)


def _plan_constrained(  # noqa: PLR0913, PLR0917 -- the parts of a request
    request: PlanRequest,
    cap_binds: Bools,
    band: Band,
    placement: Placement,
    scores: Scores,
    topic_hashes: U64,
    least: int,
) -> tuple[bool, bool]:
    """Plan different subscriptions, racks and caps into `placement.owner`.

    Returns:
        Whether the plan is proven the cheapest for its readers, and whether no plan has more even loads.
    """
    problem = request.problem
    chosen = choose_readers(problem, request.racks, request.caps, cap_binds, band, scores, least)
    kinds = read_kinds(problem, request.racks, chosen.may, cap_binds)
    if kinds.allowed.size > EXACT_CELLS:
        pieces = chosen.pieces * cap_binds[:, None] if chosen.pieces.size else chosen.pieces
        topic_by_topic_plan(problem, chosen.may, pieces, request.epsilon, placement, scores)
        return False, False
    proven = general_plan(
        problem, kinds, chosen.pieces, request.epsilon, placement, scores, topic_hashes, chosen.fairest
    )
    return proven, chosen.fairest


def _within(owner: I32, band: Band) -> bool:
    load = np.bincount(owner, minlength=len(band.low))
    return bool((load >= band.low).all() and (load <= band.high).all())


def _plan_unconstrained(problem: Problem, band: Band, placement: Placement, scores: Scores, topic_hashes: U64) -> int:
    sizes = np.diff(problem.first)
    topic_of = np.repeat(np.arange(len(sizes), dtype=np.int32), sizes)
    owned = np.bincount(problem.owner[problem.owner >= 0], minlength=len(problem.members))
    kept = kept_loads(owned, band, problem.partitions, problem.weights)
    one_kind = np.zeros(problem.partitions, dtype=np.int64)
    placement.owner = release(problem, problem.owner, kept[:, None], one_kind, topic_of, topic_hashes)
    share = problem.weights / problem.weights.sum()
    placement.place(scores, np.flatnonzero(placement.owner == NO_OWNER), band, kept.copy(), share)
    return int((owned - kept).sum())
