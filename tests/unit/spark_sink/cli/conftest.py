"""Commands that are run within the tests' own process."""

from collections.abc import Iterator

import pytest

from tests.signal_handlers import handlers_kept


@pytest.fixture(autouse=True)
def handlers_as_before() -> Iterator[None]:
    """Restore the signal handlers that a command sets."""
    with handlers_kept():
        yield
