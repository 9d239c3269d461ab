"""One call at a time: calls of other threads wait for the current step of `poll`."""

import os
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from typing import Any, Final

from confluent_kafka import cimpl

from assignors.consumer.one_process import OneProcess
from assignors.consumer.quick_step import Readiness

_YIELD_S: Final = 0.0005
_SEVERAL: Final = -1  # no thread has this number
# No signal comes between the entry of a lock, in C, and the body of the `with` statement. Python 3.14 may check for
# signals there.
_ENTERED_AT_ONCE: Final = sys.version_info < (3, 14)


class CallGate:
    """Lets one caller in at a time: the body of `with gate.turn():`.

    Contract:
    * A call inside a callback belongs to the call that runs the callback, and may enter. With asyncio the two run in
      different threads, and confluent-kafka's context variable links them.
    * If a caller leaves and returns immediately, as a loop of `poll` does, waiting callers enter before it.
    * A consumer belongs to the process that created it: after a fork the child's calls are refused, because no thread
      of either client runs there.
    * Ctrl-C at any step of entering or leaving does not leave the gate closed.
    * Each entry ends the state that `QuickStep` relies on: it sets `readiness.state` to 0.
    * The thread that takes steps one after the other enters by the lock alone while no other waits: that is four times
      as fast. A call that is inside then does not see that this thread waits. Only steps need to see that, so
      there is no such entry for a consumer whose steps several threads take.
    """

    def __init__(self) -> None:
        self.lock: Final = threading.RLock()
        self.readiness: Final = Readiness()
        self._stepping = 0
        self._own: Final = OneProcess()
        self._of_threads: Final = _ThreadTurn(self._enter, self.lock.__exit__)
        self._of_tasks: Final = _TaskTurn(self.lock, self.readiness)

    @property
    def forked(self) -> bool:
        """Whether this process is a child of the consumer's process."""
        return self._own.forked

    @property
    def waited_for(self) -> bool:
        """Whether a caller waits to enter."""
        return self.readiness.waiting > 0

    def check_process(self) -> None:
        """Raise ClosedConsumerError after a fork."""
        self._own.check()

    def turn(self) -> AbstractContextManager[object]:
        """Return the context of one call.

        Raises:
            ClosedConsumerError: this process is a child of the consumer's process.
        """
        self._own.check()
        self.readiness.state = 0
        # confluent-kafka sets an identity for each call of asyncio, which its callbacks inherit in any thread.
        return self._of_tasks if cimpl._reentry_identity_var.get() else self._of_threads  # noqa: SLF001

    def callback(self) -> AbstractContextManager[None]:
        """Return the context in which a call of asyncio runs a callback: calls of the callback may enter."""
        return self._of_tasks.callback()

    def runs_callback(self, identity: int) -> bool:
        """Whether the call of asyncio with this identity runs a callback now."""
        return self._of_tasks.runs_callback(identity)

    def step(self) -> AbstractContextManager[object]:
        """Return the context of a step of `poll` or `consume`; as `turn`."""
        thread = threading.get_ident()
        self.readiness.state = 0
        if (
            self._stepping == thread
            and _ENTERED_AT_ONCE
            and not self.readiness.waiting
            and self._own.process == os.getpid()  # as `forked`, without a call
            and not cimpl._reentry_identity_var.get()  # noqa: SLF001 -- as in `turn`
        ):
            return self.lock
        self._stepping = thread if self._stepping in {0, thread} else _SEVERAL
        return self.turn()

    def _enter(self) -> None:
        if self.readiness.waiting:
            time.sleep(_YIELD_S)
        entered: list[bool] = []
        self.readiness.waiting += 1
        self.readiness.state = 0
        try:
            # A signal raises after this one call in C, whose result is then in the list.
            entered.extend(map(self.lock.acquire, (True,)))
        except BaseException:
            if entered:
                self.lock.release()
            raise
        finally:
            self.readiness.waiting -= 1


class _ThreadTurn:
    """A call of a thread. A function in C ends its `with` statement, because no signal can come before one begins."""

    def __init__(self, enter: Callable[[], None], leave: Callable[..., None]) -> None:
        self._enter = enter
        self._leave = leave

    def __enter__(self) -> None:
        self._enter()

    @property
    def __exit__(self) -> Callable[..., None]:  # noqa: PLE0302, PYI036 -- the function itself takes the arguments
        return self._leave


@dataclass(slots=True, eq=False)
class _Inside:
    """A call of asyncio inside the gate, or a call of a callback that such a call runs."""

    thread: int
    identity: int
    depth: int = 1
    callbacks: int = 0


class _TaskTurn:
    """A call of asyncio, which runs in a thread of a pool, where no signal comes.

    Calls that a callback makes have the identity of the call that runs it, and run in other threads: one of them at a
    time enters, while that call is in the callback. A callback may end before such a call, if it does not await the
    whole call. The call that runs the callback then waits for the other one, whose later steps wait for the gate.
    """

    def __init__(self, lock: threading.RLock, readiness: Any) -> None:  # noqa: ANN401 -- compiled or not
        self._lock = lock
        self._readiness = readiness
        self._changed = threading.Condition()
        self._inside: list[
            _Inside
        ] = []  # the first one holds the lock, each other one is of a callback of the one before

    def __enter__(self) -> None:
        identity, thread = cimpl._reentry_identity_var.get(), threading.get_ident()  # noqa: SLF001 -- see CallGate
        if self._readiness.waiting:
            time.sleep(_YIELD_S)
        with self._changed, self._waiting():
            while not self._enters(thread, identity):
                # A call of a thread does not notify the condition when it leaves.
                self._changed.wait(None if self._inside else _YIELD_S)

    def _enters(self, thread: int, identity: int) -> bool:
        for one in self._inside:
            if one.thread == thread:
                one.depth += 1
                return True
        if self._inside:
            may = self._inside[0].identity == identity and self._inside[-1].callbacks > 0
        else:
            may = self._lock.acquire(blocking=False)
        if may:
            self._inside.append(_Inside(thread, identity))
        return may

    def __exit__(self, *_: object) -> None:
        with self._changed:
            one = self._inside[-1]
            one.depth -= 1
            if not one.depth:
                self._inside.pop()
                if self._inside:
                    self._changed.notify_all()
                else:
                    self._lock.release()
                    self._changed.notify()  # any call may enter now, and wakes up the next one when it leaves

    @contextmanager
    def callback(self) -> Iterator[None]:
        """Let the calls of a callback in, one at a time, until it has ended and they have left."""
        thread = threading.get_ident()
        with self._changed:
            runs = next((one for one in self._inside if one.thread == thread), None)
            if runs is not None:
                runs.callbacks += 1
                self._changed.notify_all()
        try:
            yield
        finally:
            if runs is not None:
                with self._changed, self._waiting():
                    runs.callbacks -= 1
                    self._changed.wait_for(lambda: self._inside[-1] is runs)

    def runs_callback(self, identity: int) -> bool:
        """Whether a call with this identity is in a callback. It takes no lock: the event loop's thread asks."""
        return any(one.identity == identity and one.callbacks for one in tuple(self._inside))

    @contextmanager
    def _waiting(self) -> Iterator[None]:
        """Let the call inside end its step."""
        self._readiness.waiting += 1
        self._readiness.state = 0
        try:
            yield
        finally:
            self._readiness.waiting -= 1
