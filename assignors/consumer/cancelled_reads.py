"""Records of an awaited `poll` or `consume`, which go back to the consumer if its task is cancelled."""

import threading
from collections.abc import Callable
from concurrent.futures import Future
from typing import Final

from confluent_kafka import Message
from confluent_kafka.aio._common import ReentryContext

from assignors.consumer.background_calls import start_thread
from assignors.consumer.fetching import Fetching
from assignors.consumer.one_thread_at_a_time import CallGate

Take = Callable[[list[Message], Callable[[], bool]], object]
"""Adds records to the list until the call is complete, or until the function returns True."""


class AwaitedTake:
    """One call that takes records in a thread of a pool, for a task that may be cancelled at any time.

    A cancelled task does not stop the thread. Without this class the records that the thread takes, or has taken, would
    be lost, and committed as delivered.

    Contract:
    * `run` is called at most once, in any thread; the other methods only in the task's event loop.
    * From the start of `run` until `hand_over` the records count as not delivered: no position is after them.
    * After `give_up` the next call delivers the records; it must wait until `settled` is done.
    * Records whose partition is revoked or sought before `hand_over` are dropped: no commit counts them.

    Attributes:
        settled: done when the records of a call that was given up are back.
        made_in: the lock of the callback in which the call was made; None outside.

    Args:
        fetching: the source of the records, which takes them back.
        gate: of the consumer.
        take: takes the records.
    """

    def __init__(self, fetching: Fetching, gate: CallGate, take: Take) -> None:
        self.settled: Future[None] = Future()
        self.made_in: Final = ReentryContext.current_lock()
        self._identity = ReentryContext.current_id()
        self._fetching = fetching
        self._gate = gate
        self._take = take
        self._found: list[Message] = []
        self._lock = threading.Lock()
        self._running = False
        self._given_up = False

    def run(self) -> None:
        """Take records; raise the errors of `take`."""
        with self._lock:
            if self._given_up:
                return
            self._running = True
        self._fetching.in_hand.take(self._found)
        try:
            self._take(self._found, lambda: self._given_up)
        except BaseException:
            self._return_records()
            raise
        finally:
            with self._lock:
                self._running, given_up = False, self._given_up
            if given_up:
                self._settle()

    def hand_over(self) -> list[Message]:
        """Return the records to the program; from now on they count as delivered."""
        self._fetching.in_hand.release(self._found)
        return self._found

    def give_up(self) -> None:
        """Return the records to the consumer, also those that `run` still takes; does not wait for it."""
        with self._lock:
            self._given_up = True
            if self._running:
                self._fetching.ahead.interrupt()  # ends the wait for records
                return
        if not self._found:
            # Without the gate: the event loop would wait for a call whose callback waits for the event loop.
            self._fetching.in_hand.release(self._found)
            self.settled.set_result(None)
            return
        # Not in the pool: all its threads may wait for the callback that made this call.
        start_thread(self._settle, "group-consumer-settle")

    def _settle(self) -> None:
        try:
            with ReentryContext.active(self._identity):  # a call of a callback enters as such
                self._return_records()
        finally:
            self.settled.set_result(None)

    def _return_records(self) -> None:
        with self._gate.turn():
            self._fetching.return_to_ahead(self._found)
            self._fetching.in_hand.release(self._found)
            self._found.clear()  # a call that failed and was given up returns them twice
