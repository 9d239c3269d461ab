"""One call at a time: calls of other threads wait for the current step of `poll`."""

import os
import threading
import time

from confluent_kafka import cimpl

from assignors.consumer.consumer_errors import ClosedConsumerError

_YIELD_S = 0.0005


class CallGate:
    """Lets one caller in at a time: the body of `with gate:`.

    Contract:
    * A call inside a callback belongs to the call that runs the callback, and may enter. With asyncio the two run in
      different threads, and confluent-kafka's context variable links them.
    * If a caller leaves and returns immediately, as a loop of `poll` does, waiting callers enter before it.
    * A consumer belongs to the process that created it: after a fork the child's calls are refused, because no thread
      of either client runs there.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._owner = 0
        self._depth = 0
        self._waiting = 0
        self._process = os.getpid()

    @property
    def forked(self) -> bool:
        """Whether this process is a child of the consumer's process."""
        return self._process != os.getpid()

    @property
    def waited_for(self) -> bool:
        """Whether a caller waits to enter."""
        return self._waiting > 0

    def check_process(self) -> None:
        """Raise ClosedConsumerError after a fork."""
        if self.forked:
            raise ClosedConsumerError(
                f"this consumer belongs to process {self._process}, this process is its child {os.getpid()}: make a "
                "consumer after the fork"
            )

    def __enter__(self) -> None:
        if self._process != os.getpid():
            self.check_process()
        # confluent-kafka's identities are above 0.
        caller = cimpl._reentry_identity_var.get() or -threading.get_ident()  # noqa: SLF001 -- see the class
        if self._owner != caller:
            self._acquire()
            self._owner = caller
        self._depth += 1

    def __exit__(self, *_: object) -> None:
        self._depth -= 1
        if not self._depth:
            self._owner = 0
            self._lock.release()

    def _acquire(self) -> None:
        if self._waiting:
            time.sleep(_YIELD_S)
        self._waiting += 1
        try:
            self._lock.acquire()
        finally:
            self._waiting -= 1
