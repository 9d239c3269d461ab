"""SIGTERM and SIGINT of a process: from the first moment on, the work that it has started ends in order."""

import signal
import threading
from collections.abc import Callable
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


def stop_on_signals(note: Callable[[str], object] = lambda _: None) -> threading.Event:
    """Return an event that both signals set, for a process without Spark.

    Args:
        note: called with the name of the first signal.
    """
    stop = threading.Event()

    def hear(number: int, _frame: FrameType | None) -> None:
        if not stop.is_set():  # `timeout` sends the signal twice: to the process, and to its group
            note(signal.Signals(number).name)
        stop.set()

    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, hear)
    return stop
