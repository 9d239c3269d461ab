"""Values for a status that take time to find out, found in a thread beside the one that asks."""

import threading
import time
from collections.abc import Callable
from typing import Generic, TypeVar

T = TypeVar("T")


class BackgroundValue(Generic[T]):
    """A value that is found in a thread of its own when it is asked for; asking never waits, and may get an old one.

    Args:
        find: finds it; what it raises ends that attempt alone, in the thread.
        first: the value before it was found.
        every_s: shortest time between two searches.
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
        """The value as it was found last; starts a new search if it is old."""
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
