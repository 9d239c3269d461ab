"""A handler of SIGALRM for the time of a test."""

import contextlib
import signal
from collections.abc import Callable, Iterator
from types import FrameType


@contextlib.contextmanager
def handling_alarms(handler: Callable[[int, FrameType | None], None]) -> Iterator[None]:
    """Let this function handle SIGALRM; a timer that is left at the end is stopped."""
    former = signal.signal(signal.SIGALRM, handler)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, former)


def interrupt(*_: object) -> None:
    """Raise, as the handler of Ctrl-C does."""
    raise KeyboardInterrupt
