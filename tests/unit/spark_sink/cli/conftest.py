"""Commands that are run within the tests' own process."""

import signal
from collections.abc import Iterator

import pytest


@pytest.fixture(autouse=True)
def handlers_as_before() -> Iterator[None]:
    """Restore the signal handlers that a command sets; outside of tests the process ends with the command."""
    before = {number: signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)}
    yield
    for number, handler in before.items():
        signal.signal(number, handler)
