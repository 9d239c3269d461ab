"""Consumer-group assignors and the planner behind them: which member reads which partition.

Each folder imports only from those above it in this list:

* `errors`, `settings`, `lazy`: errors, checks of settings, names imported at first use.
* `hashing`: the hash function; rendezvous ranks and owners.
* `planner`: computes a plan from topics, members and claims.
* `clients`: code that all Kafka clients of these packages share.
* `protocol`: the assignors inside kafka-python's group protocol.
* `comparison`: the plans of several assignors for a live group.
* `member`, `consumer`: `GroupMember`; `GroupConsumer` and `AIOGroupConsumer` with librdkafka's fetching.
* `fleet`, `claims`: topics placed on agents across clusters; partitions claimed in a database.
* `scaling`, `simulation`: workers chosen from lag; policies run on traces.
* `testing`: the goals of a plan in order, and the optimum found by trying every assignment.
"""

import typing

from assignors import lazy

if typing.TYPE_CHECKING:
    from assignors.clients.received_traffic import ReceivedTraffic
    from assignors.consumer.aio_group_consumer import AIOGroupConsumer
    from assignors.consumer.group_consumer import GroupConsumer
    from assignors.errors import (
        AssignorError,
        BoundError,
        FencedError,
        MembershipError,
        NodesError,
        NotOwnedError,
        OverrideError,
        StrategyError,
        TopicError,
        WeightError,
        WorkersError,
    )
    from assignors.hashing.endpoint_router import Router, RouterSettings
    from assignors.hashing.hash import hash64
    from assignors.hashing.rendezvous import Rendezvous
    from assignors.member.broker_assigned_member import BrokerAssignedMember
    from assignors.member.group_member import GroupMember
    from assignors.member.ownership import Ownership
    from assignors.planner.assign_partitions import plan
    from assignors.planner.explanation import Candidate
    from assignors.planner.plan_result import Plan
    from assignors.planner.topics_and_members import Member, Topic
    from assignors.protocol.kafka_python_assignors import HRWAssignor, ShuffledRoundRobinAssignor

__all__ = [
    "AIOGroupConsumer",
    "AssignorError",
    "BoundError",
    "BrokerAssignedMember",
    "Candidate",
    "FencedError",
    "GroupConsumer",
    "GroupMember",
    "HRWAssignor",
    "Member",
    "MembershipError",
    "NodesError",
    "NotOwnedError",
    "OverrideError",
    "Ownership",
    "Plan",
    "ReceivedTraffic",
    "Rendezvous",
    "Router",
    "RouterSettings",
    "ShuffledRoundRobinAssignor",
    "StrategyError",
    "Topic",
    "TopicError",
    "WeightError",
    "WorkersError",
    "hash64",
    "plan",
]

_MODULES = {
    "AIOGroupConsumer": "consumer.aio_group_consumer",
    "AssignorError": "errors",
    "BoundError": "errors",
    "BrokerAssignedMember": "member.broker_assigned_member",
    "Candidate": "planner.explanation",
    "FencedError": "errors",
    "GroupConsumer": "consumer.group_consumer",
    "GroupMember": "member.group_member",
    "HRWAssignor": "protocol.kafka_python_assignors",
    "Member": "planner.topics_and_members",
    "MembershipError": "errors",
    "NodesError": "errors",
    "NotOwnedError": "errors",
    "OverrideError": "errors",
    "Ownership": "member.ownership",
    "Plan": "planner.plan_result",
    "ReceivedTraffic": "clients.received_traffic",
    "Rendezvous": "hashing.rendezvous",
    "Router": "hashing.endpoint_router",
    "RouterSettings": "hashing.endpoint_router",
    "ShuffledRoundRobinAssignor": "protocol.kafka_python_assignors",
    "StrategyError": "errors",
    "Topic": "planner.topics_and_members",
    "TopicError": "errors",
    "WeightError": "errors",
    "WorkersError": "errors",
    "hash64": "hashing.hash",
    "plan": "planner.assign_partitions",
}


def __getattr__(name: str) -> typing.Any:  # noqa: ANN401 -- whatever the name stands for
    return lazy.attribute(__name__, _MODULES, name)
