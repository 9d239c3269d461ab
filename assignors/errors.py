"""The errors of the assignors.

AssignorError
├── BoundError       epsilon is negative or not a number
├── FleetError       an agent, a view or a fleet's configuration contradicts itself
├── GroupError       a live group cannot be read: no broker, no such group, no members
├── MembershipError  the group could not be joined or kept
│   ├── FencedError      the group went on without this member: another one speaks for its partitions
│   └── NotOwnedError    a commit for a partition that this member does not own
├── NodesError       a rendezvous needs one node at least, each named once
├── ScalingError     workers could not be chosen from lag
│   ├── ClaimsError      the table of claims cannot be used: settings, driver, columns
│   │   ├── ClaimLostError   the lease ran out or another owner has the partition: nothing of it was written
│   │   └── ClaimsAwayError  the database does not answer; the next call tries anew
│   ├── LagError         the brokers did not say how far a group is behind
│   ├── LimitsError      limits that contradict each other, or a policy's setting without a meaning
│   ├── PublishError     the number of workers could not be put on the workers topic, or read from it
│   ├── ScalingFileError settings or records of decisions that cannot be read
│   ├── StoreError       the store of observations does not answer
│   └── TraceError       a trace that cannot be simulated
├── StrategyError    no such strategy, or no such way to read racks
├── TopicError       a topic's partitions, racks or leaders do not fit each other
├── WeightError      a weight is zero, negative or not finite
└── WorkersError     workers per topic: below 1, no number, or a file that cannot be read
"""

import inspect
from collections.abc import Sequence
from typing import Any


class AssignorError(Exception):
    """The assignors could not do what was asked; catch this to stop on any of their errors."""

    def __init__(self, message: str | None = None) -> None:
        super().__init__(message or inspect.getdoc(type(self)))


class BoundError(AssignorError):
    """The allowed imbalance must be a number, 0 or more."""


class FleetError(AssignorError):
    """An agent, a view or the configuration of a fleet contradicts itself."""


class GroupError(AssignorError):
    """A live group must answer, and have members."""


class NodesError(AssignorError):
    """A rendezvous needs at least one node, and each node once."""


class ScalingError(AssignorError):
    """Workers could not be chosen from lag."""


class ClaimsError(ScalingError):
    """The table of claims cannot be used."""


class ClaimLostError(ClaimsError):
    """The partition is not held any more, so nothing was written for it.

    Attributes:
        lost: the claims (`assignors.claims.Claim`).
    """

    def __init__(self, message: str | None = None, lost: Sequence[Any] = ()) -> None:
        super().__init__(message)
        self.lost = tuple(lost)


class ClaimsAwayError(ClaimsError):
    """The database of claims does not answer."""


class LagError(ScalingError):
    """The brokers did not say how far a group is behind."""


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
    """There is no strategy of this name."""


class TopicError(AssignorError):
    """The description of a topic contradicts itself."""


class WeightError(AssignorError):
    """A weight must be a finite number above 0."""


class WorkersError(AssignorError):
    """Workers per topic must be whole numbers, 1 or more (None for all)."""


class MembershipError(AssignorError):
    """The consumer group could not be joined or kept."""


class FencedError(MembershipError):
    """The group went on without this member: whoever owns its partitions now commits for them."""


class NotOwnedError(MembershipError):
    """Only the owner of a partition commits for it."""
