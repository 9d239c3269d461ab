"""Reports that wait in memory because the application does not poll."""

import warnings
from collections.abc import Callable
from time import monotonic

from producer.errors import PollWarning

_GRACE_S = 5.0
_SILENT_S = 300.0


class UnpolledReports:
    """Polls for an application that does not poll, or warns it.

    Args:
        drain: polls for the application; returns False if only the application may poll.
    """

    def __init__(self, drain: Callable[[], bool]) -> None:
        self._drain = drain
        self._due_at: float | None = None

    @property
    def are_expected(self) -> bool:
        """Whether a report is expected, in time or late."""
        return self._due_at is not None

    def expect(self, within_s: float) -> None:
        """Expect the next report within this many seconds; without polling it waits in memory."""
        self._due_at = monotonic() + within_s

    def take(self) -> None:
        """Take the reports if the application does not poll; if that is not allowed, warn the application."""
        if self._due_at is None or monotonic() < self._due_at + _GRACE_S:
            return
        if self._drain():
            return
        if monotonic() - self._due_at < _SILENT_S:
            return
        self._due_at = None  # once, until the application polls and stops again
        warnings.warn(
            f"poll() was not called for {_SILENT_S:.0f} s, and statistics wait in memory until it is: call poll(0) "
            "regularly, or set statistics.interval.ms to 0",
            PollWarning,
            stacklevel=4,
        )
