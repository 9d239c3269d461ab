"""Slow values of a status, computed in a background thread."""

import threading
import time
from collections.abc import Callable
from typing import Generic, TypeVar

T = TypeVar("T")


class BackgroundValue(Generic[T]):
    """A value that a background thread computes on request; a call never waits, and may return an old value.

    Args:
        find: computes it; an exception ends only that attempt, in the thread.
        first: the value before the first result.
        every_s: shortest time between two computations.
        clock: seconds of a monotonic clock.
    """

    def __init__(
        self, find: Callable[[], T], first: T, every_s: float, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._find = find
        self._every_s = every_s
        self._clock = clock
        self._lock = threading.Lock()
        self._next = float("-inf")
        self.last = first

    def __call__(self) -> T:
        """Return the last result; start a new computation if it is old."""
        with self._lock:
            if self._clock() >= self._next:
                self._next = float("inf")
                threading.Thread(target=self._run, name="fleet-background", daemon=True).start()
        return self.last

    def _run(self) -> None:
        try:
            self.last = self._find()
        finally:
            self._next = self._clock() + self._every_s
