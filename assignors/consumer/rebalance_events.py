"""Rebalances on their way from the member's thread to the program that polls."""

import threading
from collections import deque
from collections.abc import Callable
from enum import Enum

from assignors.planner.topics_and_members import TopicPartition


class Kind(Enum):
    """What happens to the partitions."""

    ASSIGNED = "assigned"
    REVOKED = "revoked"
    LOST = "lost"


class Rebalance:
    """One change, handled once: in time by the program, or too late.

    Attributes:
        kind: what happens to the partitions.
        partitions: the partitions of this change.
    """

    def __init__(self, kind: Kind, partitions: frozenset[TopicPartition]) -> None:
        self.kind = kind
        self.partitions = partitions
        self._begun = threading.Lock()
        self._done = threading.Event()

    def begin(self) -> bool:
        """Begin to handle it; False when it is too late, and the group has gone on."""
        return self._begun.acquire(blocking=False)

    def end(self) -> None:
        """Let the group go on."""
        self._done.set()

    def wait(self, timeout_s: float) -> None:
        """Wait until the change was handled; after the timeout it is too late to begin."""
        if not self._done.wait(timeout_s):
            self._begun.acquire(blocking=False)


class Rebalances:
    """The changes that the program has not seen yet, in their order.

    Contract: the member's callbacks add, one after another; only the program takes. A revocation waits until the
    program has handled it, and so does a loss: a member that joins again before its program knows of the loss may get
    the partitions back, and the broker would accept the program's old offsets as those of the new owner. A gain does
    not wait.

    Args:
        timeout_s: how long a revocation or a loss waits.
        notify: called when a change is added.
    """

    def __init__(self, timeout_s: float, notify: Callable[[], object] = lambda: None) -> None:
        self._timeout_s = timeout_s
        self._notify = notify
        self._waiting: deque[Rebalance] = deque()
        self._abandoned = False

    def __bool__(self) -> bool:
        return bool(self._waiting)

    def assigned(self, partitions: frozenset[TopicPartition]) -> None:
        """They are ours now."""
        self._waiting.append(Rebalance(Kind.ASSIGNED, partitions))
        self._notify()

    def revoked(self, partitions: frozenset[TopicPartition]) -> None:
        """They are to be given up; return when they are, or when the group waits no longer."""
        self._handled(Rebalance(Kind.REVOKED, partitions))

    def lost(self, partitions: frozenset[TopicPartition]) -> None:
        """They are another member's; return when the program knows, or when the group waits no longer."""
        self._handled(Rebalance(Kind.LOST, partitions))

    def take(self) -> Rebalance | None:
        """Return the oldest change; None where there is none."""
        return self._waiting.popleft() if self._waiting else None

    def abandon(self) -> None:
        """End all waiting: the program takes no more changes."""
        self._abandoned = True
        while (change := self.take()) is not None:
            change.end()

    def _handled(self, change: Rebalance) -> None:
        self._waiting.append(change)
        self._notify()
        change.wait(0 if self._abandoned else self._timeout_s)
