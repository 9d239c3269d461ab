"""The queue of rebalances from the member's thread to the program that polls."""

from collections import deque
from collections.abc import Callable
from enum import Enum

from assignors.consumer.background_calls import Signal
from assignors.consumer.interruptions import PendingSteps
from assignors.planner.topics_and_members import TopicPartition


class Kind(Enum):
    """The kind of a change: assigned, revoked or lost."""

    ASSIGNED = "assigned"
    REVOKED = "revoked"
    LOST = "lost"


class Rebalance:
    """One change; the program handles it once, or it is too late.

    Attributes:
        kind: assigned, revoked or lost.
        partitions: the partitions of this change.
        steps: what the program has still to do; None before the first one.
        raised: errors of the program's callback, not raised yet.
    """

    def __init__(self, kind: Kind, partitions: frozenset[TopicPartition]) -> None:
        self.kind = kind
        self.partitions = partitions
        self.steps: PendingSteps | None = None
        self.raised: list[BaseException] = []
        self._first: dict[str, str] = {}
        self._done = Signal()

    def begin(self) -> bool:
        """Begin to handle it; False if it is too late because the group has continued. It may be repeated."""
        return self._first.setdefault("first", "program") == "program"

    def end(self) -> None:
        """Let the group continue."""
        self._done.set()

    def wait(self, timeout_s: float) -> None:
        """Wait until the change is handled; after the timeout it is too late to begin."""
        if not self._done.wait(timeout_s):
            self._first.setdefault("first", "group")


class Rebalances:
    """The changes that the program has not seen yet, in order.

    Contract: the member's callbacks add changes, one after another; only the program removes them, each when it has
    been handled, so that an interruption of the handling loses none. A revocation waits until the program has handled
    it, and so does a loss: if the member rejoined before its program knows of the loss, it could get the partitions
    back, and the broker would accept the program's old offsets as those of the new owner. An assignment does not wait.

    Args:
        timeout_s: longest wait of a revocation or a loss.
        notify: called when a change is added.
        gone: whether the brokers no longer have a topic.
    """

    def __init__(
        self,
        timeout_s: float,
        notify: Callable[[], object] = lambda: None,
        gone: Callable[[str], bool] = lambda _: False,
    ) -> None:
        self._timeout_s = timeout_s
        self._notify = notify
        self._gone = gone
        self._waiting: deque[Rebalance] = deque()
        self._abandoned = False

    def __bool__(self) -> bool:
        return bool(self._waiting)

    def add(self, change: Rebalance) -> None:
        """Add a change for which no thread waits."""
        self._waiting.append(change)
        self._notify()

    def assigned(self, partitions: frozenset[TopicPartition]) -> None:
        """Add assigned partitions."""
        self.add(Rebalance(Kind.ASSIGNED, partitions))

    def revoked(self, partitions: frozenset[TopicPartition]) -> None:
        """Add revoked partitions; return when the program has handled them, or when the group stops waiting.

        Those of deleted topics are lost, as in librdkafka: a commit for them, usual in `on_revoke`, would be refused.
        """
        gone = frozenset(one for one in partitions if self._gone(one[0]))
        if gone:
            self.lost(gone)
        if partitions != gone or not gone:
            self._handled(Rebalance(Kind.REVOKED, partitions - gone))

    def lost(self, partitions: frozenset[TopicPartition]) -> None:
        """Add lost partitions; return when the program has handled them, or when the group stops waiting."""
        self._handled(Rebalance(Kind.LOST, partitions))

    def first(self) -> Rebalance | None:
        """Return the oldest change; None if there is none."""
        return self._waiting[0] if self._waiting else None

    def remove_first(self) -> None:
        """Remove the oldest change."""
        self._waiting.popleft()

    def abandon(self) -> None:
        """End all waits: the program takes no more changes."""
        self._abandoned = True
        while (change := self.first()) is not None:
            change.end()
            self.remove_first()

    def _handled(self, change: Rebalance) -> None:
        self.add(change)
        change.wait(0 if self._abandoned else self._timeout_s)
