"""Rebalances on their way from the member's thread to the program that polls."""

import threading
from collections import deque
from enum import Enum

from assignors.planner.topics_and_members import TopicPartition


class Kind(Enum):
    """What happens to the partitions."""

    ASSIGNED = "assigned"
    REVOKED = "revoked"
    LOST = "lost"


class Rebalance:
    """One change, handled once: in time by the program, or not in time.

    Attributes:
        kind: what happens.
        partitions: to which partitions.
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
        """Wait until it was handled. Who has not begun by then comes too late; who has begun is waited for no more."""
        if not self._done.wait(timeout_s):
            self._begun.acquire(blocking=False)


class Rebalances:
    """The changes that the program has not seen yet, in their order.

    Contract: the member's callbacks put, one after another; only the program takes. A revocation waits until it was
    handled, and so does a loss: who joins anew before the program knows may get the partitions back, and what the
    program then commits, of before, would be accepted as the new owner's word. Gains wait for nobody.
    """

    def __init__(self, timeout_s: float) -> None:
        self._timeout_s = timeout_s
        self._waiting: deque[Rebalance] = deque()
        self._abandoned = False

    def __bool__(self) -> bool:
        return bool(self._waiting)

    def assigned(self, partitions: frozenset[TopicPartition]) -> None:
        """They are ours now."""
        self._waiting.append(Rebalance(Kind.ASSIGNED, partitions))

    def revoked(self, partitions: frozenset[TopicPartition]) -> None:
        """They are to be given up; returns when they are, or when the group waits no longer."""
        self._handled(Rebalance(Kind.REVOKED, partitions))

    def lost(self, partitions: frozenset[TopicPartition]) -> None:
        """They are another member's; returns when the program was told, or when the group waits no longer."""
        self._handled(Rebalance(Kind.LOST, partitions))

    def take(self) -> Rebalance | None:
        """The oldest one."""
        return self._waiting.popleft() if self._waiting else None

    def abandon(self) -> None:
        """The program takes nothing more: whoever waits goes on."""
        self._abandoned = True
        while (change := self.take()) is not None:
            change.end()

    def _handled(self, change: Rebalance) -> None:
        self._waiting.append(change)
        change.wait(0 if self._abandoned else self._timeout_s)
