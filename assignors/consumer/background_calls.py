"""Calls in other threads, for the program's thread: an interruption there leaves no lock locked.

A `threading.Condition`, and so an event, a future, a pool or the start of a thread, takes its lock in a function in
Python. An interruption there leaves the lock locked, and each later use, in any thread, waits forever. Handlers of
signals run in the main thread only. So the program's thread takes locks in C only, and makes the calls of kafka-python,
which has such conditions inside, in other threads.
"""

import _thread
import atexit
import contextlib
import os
import queue
import sys
import threading
import weakref
from collections.abc import Callable
from typing import Any, Final, Generic, TypeVar

from assignors.consumer.interruptions import at_once

T = TypeVar("T")

_AT_EXIT_S: Final = 20.0
_FOR_EVER_S: Final = -1.0


def start_thread(run: Callable[[], object], name: str, started: list[object] | None = None) -> None:
    """Start a daemon thread.

    Args:
        run: the function of the thread.
        name: of the thread.
        started: gets an item once the thread has started, even if an interruption follows.

    Raises:
        RuntimeError: the interpreter ends, so the thread would never run.
    """
    _check_threads_run()
    (started if started is not None else []).extend(map(_thread.start_new_thread, (_start,), ((run, name),)))


def _start(run: Callable[[], object], name: str) -> None:
    threading.Thread(target=run, name=name, daemon=True).start()


def _check_threads_run() -> None:
    """Raise RuntimeError while the interpreter ends, as in `__del__` of a global object: daemon threads have ended."""
    if sys.is_finalizing():
        raise RuntimeError("the interpreter ends, and no other thread runs: close the consumer before that")


class Signal:
    """An event that is set once, for one thread that waits."""

    def __init__(self) -> None:
        self._until_set = threading.Lock()
        self._until_set.acquire()
        self._is_set = False

    def __bool__(self) -> bool:
        return self._is_set

    def set(self) -> None:
        """Let the thread continue. A second call has no effect."""
        self._is_set = True
        with contextlib.suppress(RuntimeError):  # not locked: set before, and awaited by no thread yet
            self._until_set.release()

    def wait(self, timeout_s: float = _FOR_EVER_S) -> bool:
        """Wait for `set`, at most this many seconds (-1: no limit); return whether it was called."""
        if not self._is_set:
            self._until_set.acquire(timeout=timeout_s)
        return self._is_set


class Answer(Generic[T]):
    """The result of a call that another thread makes, for one thread that waits."""

    def __init__(self) -> None:
        self._given = Signal()
        self._values: list[T] = []
        self.error: BaseException | None = None

    @property
    def done(self) -> bool:
        """Whether there is a result or an error."""
        return bool(self._given)

    def give(self, value: T) -> None:
        """Set the result."""
        self._values.append(value)
        self._given.set()

    def fail(self, error: BaseException) -> None:
        """Set the error."""
        self.error = error
        self._given.set()

    def answer(self, call: Callable[[], T]) -> None:
        """Make the call, and set its result or its error."""
        try:
            self.give(call())
        except BaseException as error:  # noqa: BLE001 -- raised in the thread that waits
            self.fail(error)

    def wait(self, timeout_s: float) -> bool:
        """Wait, at most this many seconds; return whether there is a result or an error."""
        return self._given.wait(timeout_s)

    def result(self) -> T:
        """Wait, and return the result or raise the error."""
        self._given.wait()
        if self.error is not None:
            raise self.error
        return self._values[0]


def call_apart(call: Callable[[], T], undo: Callable[[T], object] = lambda _: None) -> T:
    """Make a call in a thread of its own, and return its result or raise its error.

    Args:
        call: any call that may wait.
        undo: called in that thread with the result if this thread was interrupted, and will not use it.
    """
    answer: Answer[T] = Answer()
    left = Signal()
    used = iter((True,))  # taken by the one thread that decides what becomes of the result

    def run() -> None:
        answer.answer(call)
        if left and answer.error is None:
            for _ in used:
                undo(answer.result())

    try:
        start_thread(run, "group-consumer-call")
        return answer.result()
    except BaseException:
        if answer.error is None:
            left.set()
            if answer.done:
                start_thread(lambda: [undo(answer.result()) for _ in used], "group-consumer-call")
        raise


class BackgroundCalls:
    """A thread that makes calls in their order. It begins with the first call.

    Args:
        name: of the thread.
    """

    def __init__(self, name: str) -> None:
        self._name = name
        self._waiting: queue.SimpleQueue[Callable[[], object] | None] = queue.SimpleQueue()
        self._ended = Signal()
        self._ending = False
        self._changing = threading.RLock()
        self._started: list[object] = []
        self._process = os.getpid()
        weakref.finalize(self, self._waiting.put, None).atexit = False
        _IN_USE.add(self)

    def put(self, call: Callable[[], object], *before: tuple[Any, ...]) -> None:
        """Make a call when all earlier ones have returned; its errors are not raised.

        Args:
            call: any call that may wait.
            before: functions in C with their arguments, called together with the request: an interruption cannot come
                between them.

        Raises:
            RuntimeError: after `end`, because the call would never be made.
        """
        with self._changing:  # else the end of another thread could come between the check and the request
            if self._ending:
                raise RuntimeError(f"{self._name}: no calls are made after the end")
            _check_threads_run()
            if not self._started:
                start_thread(_Run(self._waiting, self._ended), self._name, self._started)
            at_once(*before, (self._waiting.put, call))

    def wait(self, timeout_s: float) -> bool:
        """Wait for all calls so far; return whether they were made in time."""
        if not self._started or self._process != os.getpid():
            return True
        if self._ending:
            return self._ended.wait(timeout_s)
        made = Signal()
        self._waiting.put(made.set)
        return made.wait(timeout_s)

    def end(self, timeout_s: float) -> bool:
        """End after all calls; return whether that was in time."""
        with self._changing:
            self._ending = True
            self._waiting.put(None)
        limit_s = 0.0 if sys.is_finalizing() else timeout_s
        return not self._started or self._process != os.getpid() or self._ended.wait(limit_s)


class _Run:
    """The thread's loop, which does not keep its `BackgroundCalls` alive."""

    def __init__(self, waiting: "queue.SimpleQueue[Callable[[], object] | None]", ended: Signal) -> None:
        self._waiting = waiting
        self._ended = ended

    def __call__(self) -> None:
        try:
            while (call := self._waiting.get()) is not None:
                call()
        finally:
            self._ended.set()


_IN_USE: "weakref.WeakSet[BackgroundCalls]" = weakref.WeakSet()


@atexit.register
def _finish_calls() -> None:
    """Wait for calls of consumers that were not closed: their last commits are under way.

    It does not end the threads: a function that the program registered earlier is called later, and may close one.
    """
    for one in list(_IN_USE):
        one.wait(_AT_EXIT_S)
