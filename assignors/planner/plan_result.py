"""The planner's result."""

import itertools
from functools import cached_property
from typing import TypeVar

import numpy as np

from assignors.planner.capped.newcomer_bound import newcomer_moves
from assignors.planner.capped.whole_topic_bound import whole_topic_moves
from assignors.planner.explanation import Candidate, explain_topic
from assignors.planner.input_arrays import I32, Problem
from assignors.planner.load_bounds import Band
from assignors.planner.plan_loops import pairs_of_members
from assignors.planner.plan_loops_interpreted import sorted_by_owner, with_names
from assignors.planner.plan_request import PlanRequest
from assignors.planner.topics_and_members import TopicPartition

T = TypeVar("T")


def count_moved(problem: Problem, owner: I32) -> int:
    """Count the valid claims that went to another member."""
    return int(((problem.owner >= 0) & (problem.owner != owner)).sum())


class Plan:
    """The owner of each partition, and the cost of the plan."""

    def __init__(self, request: PlanRequest, owner: I32, lower_bound: int, *, band: Band | None = None) -> None:
        self._request = request
        self._problem = request.problem
        self._owner = owner
        self._least = lower_bound
        self._band = band

    @cached_property
    def lower_bound(self) -> int:
        """A number of claims below which no plan within the same bounds and caps moves.

        If no worker cap binds, `moved` is equal to it. If one binds in a group too large for an exact plan, it may be
        too low, and `moved` above it. It is 0 if no bound is known, and if topics have weights. If `moved` is above the
        quick bound, the first access takes some milliseconds (`assignors.planner.capped.newcomer_bound`), and up to a
        second if every topic has one worker (`whole_topic_bound`).
        """
        sizes = np.diff(self._problem.first)
        if self._band is None or self.moved <= self._least:
            return self._least
        if (np.minimum(sizes, self._request.caps) > 1).any():
            return max(self._least, newcomer_moves(self._problem.owned, sizes, self._request.caps, self._band))
        return whole_topic_moves(self._problem.owned, sizes, self._band, self._least, self.moved)

    @cached_property
    def partitions(self) -> dict[str, list[TopicPartition]]:
        """Partitions of each member, sorted; members without partitions have an empty list."""
        members = len(self._problem.members)
        return self._by_id(pairs_of_members(self._names(), self._problem.first, self._owner, members))

    def by_topic(self) -> dict[str, list[tuple[str, list[int]]]]:
        """Return the partitions of each member topic by topic, sorted, as the group protocol sends them."""
        members = len(self._problem.members)
        owner, topic, number = sorted_by_owner(self._problem.first, self._owner, members)
        starts = np.flatnonzero(np.r_[True, (owner[1:] != owner[:-1]) | (topic[1:] != topic[:-1])][: len(owner)])
        numbers, bounds = number.tolist(), [*starts.tolist(), len(owner)]
        parts = [numbers[start:end] for start, end in itertools.pairwise(bounds)]
        return self._by_id(with_names(self._names(), topic[starts], parts, owner[starts], members))

    def _names(self) -> list[str]:
        return [t.name for t in self._problem.topics]

    def _by_id(self, found: list[T]) -> dict[str, T]:
        return {m.id: mine for m, mine in zip(self._problem.members, found, strict=True)}

    @cached_property
    def unassigned(self) -> list[TopicPartition]:
        """Partitions of topics without a subscriber."""
        return [(t.name, p) for t in self._problem.unread for p in range(t.partitions)]

    @cached_property
    def loads(self) -> dict[str, int]:
        """Number of partitions of each member."""
        counts = np.bincount(self._owner[self._owner >= 0], minlength=len(self._problem.members)).tolist()
        return {m.id: counts[n] for n, m in enumerate(self._problem.members)}

    @cached_property
    def volumes(self) -> dict[str, float]:
        """Volume of each member in the unit of the weights; its number of partitions if the plan has no weights.

        Topics without a weight count as 0.
        """
        sizes, weights = np.diff(self._problem.first), self._request.weights
        if weights is None:
            return {member: float(load) for member, load in self.loads.items()}
        each = np.array([weights.get(t.name, 0.0) for t in self._problem.topics]) / np.maximum(sizes, 1)
        owned = self._owner >= 0
        of = np.repeat(each, sizes)[owned]
        sums = np.bincount(self._owner[owned], weights=of, minlength=len(self._problem.members)).tolist()
        return {m.id: sums[n] for n, m in enumerate(self._problem.members)}

    @cached_property
    def moved(self) -> int:
        """Number of valid claims that went to another member."""
        return count_moved(self._problem, self._owner)

    @cached_property
    def off_rack(self) -> int:
        """Number of partitions read from another rack, if both racks are known."""
        return self._request.racks.count_off(self._owner)

    @cached_property
    def connections(self) -> dict[str, int]:
        """Number of topics that each member reads."""
        return {m: len({topic for topic, _ in mine}) for m, mine in self.partitions.items()}

    @cached_property
    def withheld(self) -> dict[str, list[TopicPartition]]:
        """Partitions that a cooperative round must not assign yet: another member may still read them (KIP-429)."""
        before = self._problem.owner
        claimant = self._problem.claimant
        held = (self._owner >= 0) & (claimant != -1) & (claimant != self._owner) & (before != self._owner)
        wait = {self._pair(i) for i in np.flatnonzero(held).tolist()}
        if not wait:
            return {m.id: [] for m in self._problem.members}
        return {m: [p for p in mine if p in wait] for m, mine in self.partitions.items()}

    def explain(self, topic: str) -> list[Candidate]:
        """Explain why each member reads the topic or not.

        Returns:
            All members, best ranked first, each with the partitions that it keeps and gains and the reason; empty for
            a topic without a subscriber.
        """
        return explain_topic(self._request, self._owner, topic)

    def _pair(self, at: int) -> TopicPartition:
        topic = int(np.searchsorted(self._problem.first, at, side="right")) - 1
        return self._problem.topics[topic].name, at - int(self._problem.first[topic])
