"""A member of a group whose rebalances the test makes, below a real `GroupConsumer`."""

import threading
from collections.abc import Callable, Iterable, Mapping

from assignors import GroupConsumer, Ownership
from assignors.clients import Offset
from assignors.clients.log_offsets import OffsetWithMetadata
from assignors.member.ownership import OwnershipCell
from assignors.planner.topics_and_members import TopicPartition


class Waiting:
    """A thread that waits for the program. An interruption of threading.Thread.is_alive can end that of the thread."""

    def __init__(self, run: Callable[[], object]) -> None:
        self.ended = False
        self._run = run
        threading.Thread(target=self._wait, daemon=True).start()

    def _wait(self) -> None:
        self._run()
        self.ended = True


class ScriptedMember:
    """As `GroupMember`, without a group.

    Attributes:
        committed_of: the group's offsets.
        refused: commits of partitions that were not owned.
    """

    failed = None
    fatal = False

    def __init__(self, one: GroupConsumer) -> None:
        self._rebalances = one._kafka_azimuth.membership._rebalances
        self._cell = OwnershipCell(one._kafka_azimuth.fetching.ahead.interrupt)
        self.committed_of: dict[TopicPartition, int] = {}
        self.refused: list[Mapping[TopicPartition, Offset]] = []
        self.closed = False

    def start(self) -> "ScriptedMember":
        """No effect: it has joined."""
        return self

    def assign(self, partitions: Iterable[TopicPartition]) -> None:
        """Assign these."""
        keys = frozenset(partitions)
        self._cell.change(lambda now: now.plus(keys, 1))
        self._rebalances.assigned(keys)

    def revoke(self, partitions: Iterable[TopicPartition]) -> Waiting:
        """Revoke these in a thread, which ends when they are released."""
        keys = frozenset(partitions)

        def run() -> None:
            self._rebalances.revoked(keys)
            self._cell.change(lambda now: now.minus(keys))

        return self._started(run)

    def lose(self) -> Waiting:
        """Lose all in a thread, which ends when the program knows."""
        keys = self._cell.value.partitions
        self._cell.change(Ownership.outside)
        return self._started(lambda: self._rebalances.lost(keys))

    def _started(self, run: Callable[[], object]) -> Waiting:
        waiting = Waiting(run)
        while not self._rebalances:
            pass
        return waiting

    def ownership(self) -> Ownership:
        """As GroupMember's."""
        return self._cell.value

    def commit(self, offsets: Mapping[TopicPartition, Offset], timeout_s: float = 10.0) -> None:
        """As GroupMember's."""
        assert timeout_s >= 0
        if not offsets.keys() <= self._cell.value.partitions:
            self.refused.append(offsets)
        for key, at in offsets.items():
            self.committed_of[key] = at.offset if isinstance(at, OffsetWithMetadata) else at

    def committed_with_metadata(
        self, partitions: Iterable[TopicPartition], timeout_s: float = 10.0
    ) -> dict[TopicPartition, OffsetWithMetadata]:
        """As GroupMember's."""
        assert timeout_s > 0
        had = self.committed_of
        return {key: OffsetWithMetadata(had[key], "") for key in partitions if key in had}

    def close(self) -> None:
        """As GroupMember's."""
        owned = self._cell.value.partitions
        if owned and not self.closed:
            self._rebalances.revoked(owned)
        self.closed = True
        self._cell.change(Ownership.outside)
