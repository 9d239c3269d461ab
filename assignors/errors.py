"""The errors of the assignors.

AssignorError
├── BoundError       epsilon is negative or not a finite number
├── FleetError       an agent, a view or a fleet's configuration contradicts itself
├── GroupError       a live group cannot be read: no broker, unknown group, no members
├── MembershipError  the group could not be joined or kept
│   ├── FencedError      the group no longer has this member: its partitions have other owners
│   └── NotOwnedError    a commit for a partition that this member does not own
├── NodesError       rendezvous hashing needs at least one node, and each node once
├── OverrideError    an override names no member, or one that does not read the topic
├── PauseError       the pauses of topics could not be read or written
├── ScalingError     workers could not be chosen from lag
│   ├── ClaimsError      the table of claims cannot be used: settings, driver, columns
│   │   ├── ClaimLostError   the lease ran out or another owner has the partition: nothing was written for it
│   │   └── ClaimsAwayError  the database does not answer; the next call tries again
│   ├── LagError         the lag of a group could not be read from the brokers
│   ├── LimitsError      limits that contradict each other, or an invalid setting of a policy
│   ├── PublishError     the workers topic could not be written or read
│   ├── ScalingFileError settings or records of decisions that cannot be read
│   ├── StoreError       the store of observations does not answer
│   └── TraceError       a trace that cannot be simulated
├── StrategyError    an unknown strategy, way to read racks, or seed
├── TopicError       a topic's partitions, racks or leaders contradict each other
├── WeightError      a weight is zero, negative or not finite
└── WorkersError     workers per topic: below 1, not a number, or a file that cannot be read
"""

import inspect
import re
from collections.abc import Sequence
from typing import Any, Final

NO_PATTERN: Final = (re.error, OverflowError, RecursionError)
"""Errors of `re.compile` about its text: the last two are for `a{99999999999}` and thousands of brackets."""


class AssignorError(Exception):
    """Base of all errors of the assignors: catch it to handle any of them."""

    def __init__(self, message: str | None = None) -> None:
        super().__init__(message or inspect.getdoc(type(self)))


class BoundError(AssignorError):
    """The allowed imbalance must be a number, 0 or more."""


class FleetError(AssignorError):
    """An agent, a view or the configuration of a fleet contradicts itself."""


class GroupError(AssignorError):
    """The live group cannot be read, or has no members."""


class NodesError(AssignorError):
    """Rendezvous hashing needs at least one node, and each node once."""


class OverrideError(AssignorError):
    """An override must name members that read the topic."""


class PauseError(AssignorError):
    """The pauses of topics could not be read or written."""


class ScalingError(AssignorError):
    """Workers could not be chosen from lag."""


class ClaimsError(ScalingError):
    """The table of claims cannot be used."""


class ClaimLostError(ClaimsError):
    """The claim no longer holds the partition, so nothing was written for it.

    Attributes:
        lost: the claims (`assignors.claims.Claim`).
    """

    def __init__(self, message: str | None = None, lost: Sequence[Any] = ()) -> None:
        super().__init__(message)
        self.lost = tuple(lost)


class ClaimsAwayError(ClaimsError):
    """The database of claims does not answer."""


class LagError(ScalingError):
    """The lag of a group could not be read from the brokers."""


class LimitsError(ScalingError):
    """The limits contradict each other."""


class PublishError(ScalingError):
    """The workers topic could not be written or read."""


class ScalingFileError(ScalingError):
    """Settings or records of decisions cannot be read."""


class StoreError(ScalingError):
    """The store of observations does not answer."""


class TraceError(ScalingError):
    """The trace cannot be simulated."""


class StrategyError(AssignorError):
    """The strategy, the way to read racks or the seed is unknown."""


class TopicError(AssignorError):
    """The description of a topic contradicts itself."""


class WeightError(AssignorError):
    """A weight must be a finite number above 0."""


class WorkersError(AssignorError):
    """Workers per topic must be whole numbers, 1 or more (None for all)."""


class MembershipError(AssignorError):
    """The consumer group could not be joined or kept."""


class FencedError(MembershipError):
    """The group no longer has this member: the new owners of its partitions commit for them."""


class NotOwnedError(MembershipError):
    """Only the owner of a partition commits for it."""
