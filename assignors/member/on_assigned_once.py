"""Calls `on_assigned` and `on_lost` once for each partition that a program owns."""

import threading
from collections.abc import Callable

from assignors.member.callback_thread import Callback, CallbackThread
from assignors.planner.topics_and_members import TopicPartition


class AnnouncedPartitions:
    """Calls `on_assigned` and `on_lost` once for each partition, from several threads.

    A program that polls too late is informed of a loss before librdkafka reports it. One that closes without an answer
    of the coordinator is informed while the member's thread still waits.

    Args:
        callbacks: the thread in which the program's callbacks run.
        on_assigned: called with newly assigned partitions.
        on_lost: called when other members may own the partitions already.
        reports_empty: call `on_assigned` with no partitions, too.
    """

    def __init__(
        self,
        callbacks: CallbackThread,
        *,
        on_assigned: Callback | None,
        on_lost: Callback | None,
        reports_empty: bool = False,
    ) -> None:
        self._callbacks = callbacks
        self._on_assigned = on_assigned
        self._on_lost = on_lost
        self._reports_empty = reports_empty
        self._keys: frozenset[TopicPartition] = frozenset()
        self._abandoned = False
        self._lock = threading.RLock()

    def add(self, keys: frozenset[TopicPartition], own: Callable[[frozenset[TopicPartition]], None]) -> None:
        """Call `own`, and queue a call of on_assigned with the partitions that are new.

        Args:
            keys: all assigned partitions.
            own: makes them owned.
        """
        new = keys - self._keys
        if not new and (keys or not self._reports_empty):
            return
        with self._lock:
            if self._abandoned:
                return
            self._keys |= new
            own(new)
            if self._on_assigned is not None:
                self._callbacks.put(self._on_assigned, new, lambda: None)

    def take(self, keys: frozenset[TopicPartition]) -> frozenset[TopicPartition]:
        """Remove partitions, and return those that the program knows: the caller reports them."""
        with self._lock:
            known = keys & self._keys
            self._keys -= known
            return known

    def lose(self, then: Callable[[], None] = lambda: None) -> None:
        """Queue a call of on_lost for all partitions, and of `then` after its return, without waiting."""
        with self._lock:
            keys, self._keys = self._keys, frozenset()
            if self._on_lost is not None and keys:
                self._callbacks.put(self._on_lost, keys, then)
            else:
                then()

    def abandon(self, then: Callable[[], None]) -> None:
        """Lose all partitions, and add none from now on."""
        with self._lock:
            self._abandoned = True
            self.lose(then)

    def end(self) -> None:
        """Lose what is left, and end the callbacks' thread.

        Both under one lock: a callback that was queued after the thread's end would never return.
        """
        with self._lock:
            self.lose()
            self._callbacks.end()
