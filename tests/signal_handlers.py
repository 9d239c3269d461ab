"""Signal handlers that a command sets in the tests' own process."""

import signal
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def handlers_kept() -> Iterator[None]:
    """Restore the handlers of SIGINT and SIGTERM at the end; outside of tests the process ends with the command."""
    before = {number: signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
