"""Who reads what: consumer-group assignors and the planner behind them."""

import importlib
import typing

from assignors._errors import (
    AssignorError,
    BoundError,
    FencedError,
    MembershipError,
    NodesError,
    NotOwnedError,
    StrategyError,
    TopicError,
    WeightError,
    WorkersError,
)
from assignors._explain import Candidate
from assignors._group_member_ownership import Ownership
from assignors._hash import hash64
from assignors._model import Member, Topic
from assignors._plan import plan
from assignors._rendezvous import Rendezvous
from assignors._result import Plan
from assignors._router import Router, RouterSettings

if typing.TYPE_CHECKING:
    from assignors._group_consumer import GroupConsumer
    from assignors._group_member import GroupMember
    from assignors._kafka_python import HRWAssignor, ShuffledRoundRobinAssignor

__all__ = [
    "AssignorError",
    "BoundError",
    "Candidate",
    "FencedError",
    "GroupConsumer",
    "GroupMember",
    "HRWAssignor",
    "Member",
    "MembershipError",
    "NodesError",
    "NotOwnedError",
    "Ownership",
    "Plan",
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

# Names whose module imports a client: found at first use, so that the planner alone stays light.
_AT_FIRST_USE = {
    "GroupConsumer": "assignors._group_consumer",
    "GroupMember": "assignors._group_member",
    "HRWAssignor": "assignors._kafka_python",
    "ShuffledRoundRobinAssignor": "assignors._kafka_python",
}


def __getattr__(name: str) -> object:
    if name not in _AT_FIRST_USE:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(importlib.import_module(_AT_FIRST_USE[name]), name)
