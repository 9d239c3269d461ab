"""The planner: topics, members and claims in, who reads what out."""

from collections.abc import Iterable
from dataclasses import replace
from typing import Final

import numpy as np

from assignors.errors import StrategyError
from assignors.hashing.hash import U64, hash64s
from assignors.planner.balance.constrained_plan import general_plan, read_kinds
from assignors.planner.balance.large_groups import coarse_plan
from assignors.planner.capped.exact_small_groups import exact_plan, is_small
from assignors.planner.capped.movement_lower_bound import least_moves
from assignors.planner.capped.reader_choice import choose_readers
from assignors.planner.fill_unowned import Fill, Scores
from assignors.planner.input_arrays import I32, NOBODY, Bools, Problem, read_problem
from assignors.planner.kept_claims import kept_loads, release
from assignors.planner.load_bounds import Band, check_epsilon, fair_band
from assignors.planner.member_hosts import Node, node_numbers
from assignors.planner.member_ranking import STRATEGIES, Strategy, member_scores
from assignors.planner.plan_request import Question
from assignors.planner.plan_result import Plan, count_moved
from assignors.planner.rack_locality import RACK_BY, RackBy, read_racks
from assignors.planner.topics_and_members import Member, Topic
from assignors.planner.worker_caps import Workers, worker_caps

_AGAIN: Final = 2
_LOOSEST: Final = 1e9  # allows everything, and a share times it still fits an integer
EXACT_CELLS: Final = 4_000_000
"""Members x kinds of partitions up to which different subscriptions and caps are planned exactly: about 300 MB."""


def plan(  # noqa: PLR0913
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
) -> Plan:
    """Decide who reads what.

    A pure function: no I/O, no clock, no randomness; the order of the input and PYTHONHASHSEED change nothing.

    Order of goals: every partition to exactly one subscriber; at most `workers` members a topic; loads within epsilon
    of the weighted fair share; few partitions off their reader's rack; few moved; each topic spread over nodes and
    members; few topics a member.

    Args:
        topics: what can be read.
        members: who takes part.
        strategy: `hrw` ranks by rendezvous hashing, `shuffled` by a seeded shuffle rotated from topic to topic.
        workers: most distinct members of a topic: a number, by name or pattern, or None for all.
        epsilon: allowed distance from the fair share; 0 is exact balance.
        seed: another seed, another ranking.
        keep: whether owned partitions stay where they may; False plans as if nothing was owned.
        rack_by: a partition is local to the racks of its `replicas` (KIP-881) or only of its `leader`.
        node: how to find the host in a member's identity: a function, a pattern, or by the default cut.

    Raises:
        BoundError: epsilon is negative or not a number.
        StrategyError: no such strategy, no such rack_by, or a seed that is no whole number.
        TopicError: a topic or member is given twice.
        WorkersError: workers below 1, or a pattern that is no regular expression.
    """
    if strategy not in STRATEGIES:
        raise StrategyError(f"strategy={strategy!r}, need one of {', '.join(STRATEGIES)}")
    if rack_by not in RACK_BY:
        raise StrategyError(f"rack_by={rack_by!r}, need one of {', '.join(RACK_BY)}")
    check_epsilon(epsilon)
    check_seed(seed)
    epsilon = min(epsilon, _LOOSEST)
    problem = read_problem(topics, members, seed, keep=keep)
    caps = worker_caps(workers, [t.name for t in problem.topics])
    racks = read_racks(problem, rack_by)
    question = Question(
        problem=problem, racks=racks, caps=caps, strategy=strategy, epsilon=epsilon, seed=seed, node=node
    )
    if not problem.members or not problem.partitions:
        return Plan(question, np.full(problem.partitions, NOBODY, dtype=np.int32), 0)
    return _solve(question)


def check_seed(seed: object) -> None:
    """Check without planning.

    Raises:
        StrategyError: no whole number.
    """
    if not isinstance(seed, int):
        raise StrategyError(f"seed={seed!r}, need a whole number")


def _solve(question: Question) -> Plan:
    problem, racks, caps, epsilon = question.problem, question.racks, question.caps, question.epsilon
    topic_hashes = hash64s([t.name for t in problem.topics], question.seed)
    scores = member_scores(problem, question.strategy, question.seed)
    fill = Fill(problem, node_numbers(problem.members, question.node), epsilon)
    alone = caps < np.minimum(np.diff(problem.first), len(problem.members))
    if problem.equal and not racks.off.any() and not alone.any():
        bound = _plain_plan(
            problem, fair_band(problem.partitions, problem.weights, epsilon), fill, scores, topic_hashes
        )
        return Plan(question, fill.owner, bound)
    if alone.any() and is_small(problem):
        owner = exact_plan(problem, racks, caps, epsilon, scores)
        return Plan(question, owner, count_moved(problem, owner))
    band = fair_band(problem.partitions, problem.weights, epsilon)
    proven = _general(question, problem, alone, band, fill)
    for _ in range(_AGAIN if alone.any() else 0):
        # Choosing readers is a heuristic: it must not find something better only when it sees its own plan again.
        if _within(fill.owner, band) or not _improve(question, alone, band, fill):
            break
    bound = 0
    if proven and not alone.any():
        bound = count_moved(problem, fill.owner)
    elif problem.equal and _within(fill.owner, band):
        bound = _least(question, band)
    return Plan(question, fill.owner, bound)


def _general(question: Question, problem: Problem, alone: Bools, band: Band, fill: Fill) -> bool:
    """Plan different subscriptions, racks and caps into `fill.owner`; say whether the plan is proven the cheapest."""
    scores = member_scores(problem, question.strategy, question.seed)
    least = _least(question, band) if problem.equal else 0
    readers, pieces = choose_readers(problem, question.racks, question.caps, alone, band, scores, least)
    kinds = read_kinds(problem, question.racks, readers, alone)
    if kinds.allowed.size > EXACT_CELLS:
        coarse_plan(problem, readers, pieces, question.epsilon, fill, scores)
        return False
    hashes = hash64s([t.name for t in problem.topics], question.seed)
    return general_plan(problem, kinds, pieces, question.epsilon, fill, scores, hashes)


def _improve(question: Question, alone: Bools, band: Band, fill: Fill) -> bool:
    before = fill.owner
    _general(question, replace(question.problem, owner=before), alone, band, fill)
    return not np.array_equal(before, fill.owner)


def _within(owner: I32, band: Band) -> bool:
    load = np.bincount(owner, minlength=len(band.low))
    return bool((load >= band.low).all() and (load <= band.high).all())


def _least(question: Question, band: Band) -> int:
    """Bound the moves by what balance and caps force."""
    problem = question.problem
    return least_moves(problem.owned, np.diff(problem.first), question.caps, band, problem.weights)


def _plain_plan(problem: Problem, band: Band, fill: Fill, scores: Scores, topic_hashes: U64) -> int:
    sizes = np.diff(problem.first)
    topic_of = np.repeat(np.arange(len(sizes), dtype=np.int32), sizes)
    owned = np.bincount(problem.owner[problem.owner >= 0], minlength=len(problem.members))
    kept = kept_loads(owned, band, problem.partitions, problem.weights)
    alike = np.zeros(problem.partitions, dtype=np.int64)
    fill.owner = release(problem, problem.owner, kept[:, None], alike, topic_of, topic_hashes)
    share = problem.weights / problem.weights.sum()
    fill.run(scores, np.flatnonzero(fill.owner == NOBODY), band, kept.copy(), share)
    return int((owned - kept).sum())
