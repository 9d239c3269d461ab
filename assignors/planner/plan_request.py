"""The request of a plan: the input as arrays, and the settings."""

from dataclasses import dataclass

from assignors.planner.input_arrays import I32, Problem
from assignors.planner.member_hosts import Node
from assignors.planner.member_ranking import Strategy
from assignors.planner.rack_locality import Racks
from assignors.planner.topic_volumes import TopicWeights


@dataclass(frozen=True, slots=True, kw_only=True)
class PlanRequest:
    """The input of a plan, with its settings.

    Attributes:
        problem: topics, members and claims.
        racks: which members are local to which partitions.
        caps: maximum number of different members of each topic, shape (T,).
        strategy: how members are ranked.
        epsilon: allowed distance from the fair share.
        seed: of the ranking.
        node: how to find the host in an identity.
        weights: volume of topics, if their volume is balanced; None if the number of partitions is.
    """

    problem: Problem
    racks: Racks
    caps: I32
    strategy: Strategy
    epsilon: float
    seed: int
    node: Node
    weights: TopicWeights | None = None
