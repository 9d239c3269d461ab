"""A request to wake up a thread, safe in signal handlers and destructors."""

from contextlib import suppress
from queue import Empty, SimpleQueue


class WakeUp:
    """As `threading.Event`, but a signal handler may call `set` while the same thread is inside `set`.

    The lock of an `Event` is not re-entrant, and the handler would wait for its own thread forever. A `SimpleQueue` is
    made for calls in signal handlers and destructors.
    """

    def __init__(self) -> None:
        self._requests: SimpleQueue[None] = SimpleQueue()

    def set(self) -> None:
        """Request it."""
        if self._requests.empty():  # or requests would fill the memory while no thread waits
            self._requests.put(None)

    def is_set(self) -> bool:
        """Return whether a request was not taken yet."""
        return not self._requests.empty()

    def wait(self, timeout_s: float) -> None:
        """Wait for a request for at most this many seconds, and take all requests."""
        with suppress(Empty):
            self._requests.get(timeout=timeout_s)
            self.clear()

    def clear(self) -> None:
        """Take all requests."""
        with suppress(Empty):
            while True:
                self._requests.get_nowait()
