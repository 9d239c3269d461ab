"""SIGTERM and SIGINT of an agent: from the first moment on, the work that it has started ends in order."""

import signal
from types import FrameType


class StopSignal:
    """Handles both signals: immediately while Spark starts, and afterwards between two checks of the query.

    If an exception interrupts a call into the JVM, the thread's only connection still waits for its answer, and the
    next call, which stops the query, would wait forever.
    """

    def __init__(self) -> None:
        self.asked = False
        self._at_once = True
        self._listen()

    def wait_for_the_query(self) -> None:
        """From now on only record that a signal arrived."""
        self._at_once = False
        self._listen()

    def _listen(self) -> None:
        for number in (signal.SIGTERM, signal.SIGINT):
            signal.signal(number, self._hear)

    def _hear(self, _signal: int, _frame: FrameType | None) -> None:
        first, self.asked = not self.asked, True
        if first and self._at_once:  # a second one must not interrupt the end that the first began
            raise SystemExit(0)
