"""The errors of the assignors.

AssignorError
├── BoundError       epsilon is negative or not a number
├── NodesError       a rendezvous needs one node at least, each named once
├── StrategyError    no such strategy, or no such way to read racks
├── TopicError       a topic's partitions, racks or leaders do not fit each other
├── WeightError      a weight is zero, negative or not finite
└── WorkersError     workers per topic: below 1, no number, or a file that cannot be read
"""

import inspect


class AssignorError(Exception):
    """The assignors could not do what was asked; catch this to stop on any of their errors."""

    def __init__(self, message: str | None = None) -> None:
        super().__init__(message or inspect.getdoc(type(self)))


class BoundError(AssignorError):
    """The allowed imbalance must be a number, 0 or more."""


class NodesError(AssignorError):
    """A rendezvous needs at least one node, and each node once."""


class StrategyError(AssignorError):
    """There is no strategy of this name."""


class TopicError(AssignorError):
    """The description of a topic contradicts itself."""


class WeightError(AssignorError):
    """A weight must be a finite number above 0."""


class WorkersError(AssignorError):
    """Workers per topic must be whole numbers, 1 or more (None for all)."""
