"""Callbacks for which a member's thread waits, while it serves the calls that they make."""

import time
from collections.abc import Callable

from assignors.member.callback_thread import Callback, CallbackThread
from assignors.member.thread_calls import ThreadCalls
from assignors.planner.topics_and_members import TopicPartition


class ServedCallbacks:
    """Runs callbacks in their thread, and serves calls until they have returned.

    Args:
        callbacks: runs the callbacks.
        calls: the calls to serve.
    """

    def __init__(self, callbacks: CallbackThread, calls: ThreadCalls) -> None:
        self._callbacks = callbacks
        self._calls = calls
        self._running = False
        self._returned_at = time.monotonic()

    @property
    def idle_s(self) -> float:
        """Seconds since the last callback returned; 0 while one runs."""
        return 0.0 if self._running else time.monotonic() - self._returned_at

    def call(self, callback: Callback, partitions: frozenset[TopicPartition]) -> None:
        """Run the callback after the previous ones, and serve calls until it has returned."""

        def start(done: Callable[[], None]) -> None:
            def end() -> None:
                self._returned_at, self._running = time.monotonic(), False
                done()

            self._callbacks.put(callback, partitions, end)

        self._running = True
        self._calls.serve_until(start)
