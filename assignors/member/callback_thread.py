"""Runs the user's callbacks outside kafka-python's event loop, so that heartbeats continue during slow callbacks."""

import logging
import os
import queue
import threading
from collections.abc import Callable

from assignors.planner.topics_and_members import TopicPartition

log = logging.getLogger(__name__)

Callback = Callable[[frozenset[TopicPartition]], object]


class CallbackThread:
    """Runs callbacks in order in one daemon thread; a callback that raises is logged and counts as returned.

    If a callback forks, the child has only this thread. There it ends with the callback, so that the child ends.
    """

    def __init__(self, name: str) -> None:
        self._waiting: queue.SimpleQueue[Callable[[], None] | None] = queue.SimpleQueue()
        self._thread = threading.Thread(target=self._run, name=name, daemon=True)
        self._thread.start()

    def here(self) -> bool:
        """Whether the call comes from a callback."""
        return threading.current_thread() is self._thread

    def put(self, callback: Callback, partitions: frozenset[TopicPartition], then: Callable[[], None]) -> None:
        """Run the callback after the previous ones, and `then` after its return."""

        def call() -> None:
            try:
                callback(partitions)
            except BaseException:  # sys.exit() too: it would end this thread, and later callbacks would never run
                log.exception("the callback %r failed for %d partitions", callback, len(partitions))
            finally:
                then()

        self._waiting.put(call)

    def end(self) -> None:
        """End the thread after all waiting callbacks."""
        self._waiting.put(None)

    def _run(self) -> None:
        process = os.getpid()
        while os.getpid() == process and (call := self._waiting.get()) is not None:
            call()
