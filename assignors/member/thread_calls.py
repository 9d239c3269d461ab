"""Lets other threads make calls through the only thread that may use a client."""

import contextlib
import queue
import threading
from collections.abc import Callable
from concurrent.futures import Future
from typing import TypeVar

from assignors.errors import MembershipError

T = TypeVar("T")


class ThreadCalls:
    """Runs calls in the thread that serves them, and returns their results to the threads that asked.

    While one thread polls confluent-kafka's consumer, all other threads wait for it. If it polls in a loop, they may
    wait for many seconds.
    """

    def __init__(self) -> None:
        self._waiting: queue.SimpleQueue[Callable[[], None]] = queue.SimpleQueue()
        self._ended = threading.Event()

    def ask(self, call: Callable[[], T], timeout_s: float) -> T:
        """Return the result of the call, or raise its error.

        Raises:
            MembershipError: the call has no result in time.
        """
        answer: Future[T] = Future()

        def run() -> None:
            if not answer.set_running_or_notify_cancel():
                return  # it was asked too long ago: a commit that was reported as failed must not be made later
            try:
                answer.set_result(call())
            except BaseException as error:  # noqa: BLE001 -- raised in the thread that asked
                answer.set_exception(error)

        self._waiting.put(run)
        if self._ended.is_set():
            self.serve()  # no other thread does; the call finds a closed client
        try:
            return answer.result(timeout_s)
        except TimeoutError as error:
            answer.cancel()
            raise MembershipError(f"the coordinator has not answered for {timeout_s:g} s") from error

    def serve(self) -> None:
        """Run all waiting calls."""
        with contextlib.suppress(queue.Empty):
            while True:
                self._waiting.get_nowait()()

    def serve_until(self, start: Callable[[Callable[[], None]], object]) -> None:
        """Run calls until work in another thread is done.

        Args:
            start: starts the work; its argument is the function that the work calls at its end.
        """
        done: list[bool] = []
        start(lambda: self._waiting.put(lambda: done.append(True)))
        while not done:
            self._waiting.get()()

    def end(self) -> None:
        """Run all waiting calls; each later call runs immediately, in the thread that asks."""
        self._ended.set()
        self.serve()
