"""Explains why each member reads a topic or not: the members in order of preference, each with a reason."""

from dataclasses import dataclass

import numpy as np

from assignors.planner.input_arrays import I32
from assignors.planner.load_bounds import fair_band
from assignors.planner.member_ranking import member_scores
from assignors.planner.plan_request import PlanRequest
from assignors.planner.worker_caps import NO_CAP


@dataclass(frozen=True, slots=True, kw_only=True)
class Candidate:
    """One member's place for a topic.

    Attributes:
        rank: place in the order of preference, from 1.
        member: its id.
        identity: the name that it is ranked by.
        kept: partitions of the topic that it owned and keeps, ascending.
        gained: partitions of the topic that are new to it, ascending.
        reason: explains these partitions, or their absence.
    """

    rank: int
    member: str
    identity: str
    kept: tuple[int, ...]
    gained: tuple[int, ...]
    reason: str


def explain_topic(request: PlanRequest, owner: I32, topic: str) -> list[Candidate]:
    """Rank the members for a topic, each with the reason why it reads the topic or not."""
    problem = request.problem
    at = next((i for i, t in enumerate(problem.topics) if t.name == topic), None)
    if at is None:
        return []
    scores = member_scores(problem, request.strategy, request.seed)(np.array([at]))[0]
    places = range(int(problem.first[at]), int(problem.first[at + 1]))
    load = np.bincount(owner[owner >= 0], minlength=len(problem.members))
    high = fair_band(problem.partitions, problem.weights, request.epsilon).high
    if request.weights is not None:
        high = np.full_like(high, problem.partitions + 1)  # no number of partitions makes a member full
    readers = len({int(owner[p]) for p in places})
    out = []
    for rank, m in enumerate(np.argsort(~scores, kind="stable").tolist(), start=1):
        mine = [p for p in places if owner[p] == m]
        before = [p for p in places if problem.owner[p] == m]
        kept = tuple(p - places.start for p in mine if problem.owner[p] == m)
        gained = tuple(p - places.start for p in mine if problem.owner[p] != m)
        if not problem.subscribed[problem.group_of[m], at]:
            reason = "skipped: does not subscribe"
        elif mine:
            reason = _why_reads(kept, gained, rank)
        else:
            cap = int(request.caps[at])
            local = not bool(request.racks.off[request.racks.kind_of[places.start : places.stop], m].all())
            reason = _why_not(len(before), int(load[m]), int(high[m]), readers, cap, local=local)
        member = problem.members[m]
        out.append(
            Candidate(rank=rank, member=member.id, identity=member.identity, kept=kept, gained=gained, reason=reason)
        )
    return out


def _why_reads(kept: tuple[int, ...], gained: tuple[int, ...], rank: int) -> str:
    parts = [f"keeps {len(kept)} it owned"] if kept else []
    parts += [f"gets {len(gained)} as rank {rank} with room"] if gained else []
    return ", ".join(parts)


def _why_not(lost: int, load: int, high: int, readers: int, cap: int, *, local: bool) -> str:  # noqa: PLR0913 - the facts of one member
    if lost:
        return f"gave up {lost}: loads, racks or the worker cap required it"
    if readers >= cap and cap != NO_CAP:
        return f"skipped: workers={cap} is reached by other members"
    if load >= high:
        return f"skipped: full, {load} of {high} partitions"
    if not local:
        return "skipped: in none of the racks of the topic's replicas"
    return "skipped: every partition was kept by its owner or went to a better place"
