"""Consumer-group assignors and the planner behind them: which member reads which partition.

Each folder imports only from those above it in this list:

* `errors`, `settings`, `lazy_imports`: errors, checks of settings, names imported at first use.
* `hashing`: the hash function; rendezvous ranks and owners.
* `planner`: computes a plan from topics, members and claims.
* `testing`: the goals of a plan in order, and the optimum found by trying every assignment.
* `clients`: code that all Kafka clients of these packages share.
* `pauses`: topics that a group does not read until they are resumed.
* `protocol`: the assignors inside kafka-python's group protocol.
* `comparison`: the plans of several assignors for a live group.
* `member`, `consumer`: `GroupMember`; `GroupConsumer` and `AIOGroupConsumer` with librdkafka's fetching.
* `fleet`, `claims`: topics placed on agents across clusters; partitions claimed in a database.
* `scaling`, `simulation`: workers chosen from lag; policies run on traces.
"""

import typing

from assignors import lazy_imports

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
    from assignors.hashing.murmur3_hash import hash64
    from assignors.hashing.rendezvous import Rendezvous
    from assignors.member.broker_assigned_member import BrokerAssignedMember
    from assignors.member.group_member import GroupMember
    from assignors.member.ownership import Ownership
    from assignors.planner.assign_partitions import plan
    from assignors.planner.explanation import Candidate
    from assignors.planner.plan_result import Plan
    from assignors.planner.topics_and_members import Member, Topic
    from assignors.protocol.kafka_python_assignors import HRWAssignor, ShuffledRoundRobinAssignor
else:
    __getattr__ = lazy_imports.attributes(
        __name__,
        {
            "clients.received_traffic": ["ReceivedTraffic"],
            "consumer.aio_group_consumer": ["AIOGroupConsumer"],
            "consumer.group_consumer": ["GroupConsumer"],
            "errors": [
                "AssignorError",
                "BoundError",
                "FencedError",
                "MembershipError",
                "NodesError",
                "NotOwnedError",
                "OverrideError",
                "StrategyError",
                "TopicError",
                "WeightError",
                "WorkersError",
            ],
            "hashing.endpoint_router": ["Router", "RouterSettings"],
            "hashing.murmur3_hash": ["hash64"],
            "hashing.rendezvous": ["Rendezvous"],
            "member.broker_assigned_member": ["BrokerAssignedMember"],
            "member.group_member": ["GroupMember"],
            "member.ownership": ["Ownership"],
            "planner.assign_partitions": ["plan"],
            "planner.explanation": ["Candidate"],
            "planner.plan_result": ["Plan"],
            "planner.topics_and_members": ["Member", "Topic"],
            "protocol.kafka_python_assignors": ["HRWAssignor", "ShuffledRoundRobinAssignor"],
        },
    )

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
