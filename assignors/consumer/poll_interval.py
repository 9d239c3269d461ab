"""Whether the program polls, for the member's thread."""

import math
import time
from typing import Final

from assignors.consumer.fetching import Fetching
from assignors.consumer.split_configuration import Configuration

_AWAKE_PART: Final = 10
_QUIET_S: Final = 3.0
_LEAST_QUIET_S: Final = 0.2  # a shorter commit interval would keep an idle member busy


def quiet_s(config: Configuration) -> float:
    """Return the seconds between two calls of `ProgramAwake` if nothing else happens."""
    commit_s = config.auto_commit_s
    if not commit_s:
        return _QUIET_S
    return max(_LEAST_QUIET_S, commit_s / math.ceil(commit_s / _QUIET_S))  # it is the clock of commits


class ProgramAwake:
    """Reports to the member's thread whether the program polls; also the clock of automatic commits.

    If the configuration has callbacks, it lets the next call ask the client for them, also while records are ahead.

    It has no reference to the consumer, because the member's thread must not keep a dropped consumer alive.
    """

    def __init__(self, fetching: Fetching, config: Configuration) -> None:
        self._records = fetching.ahead
        self._limit_s = config.max_poll_s / _AWAKE_PART
        self._commit_s = config.auto_commit_s
        self._committed_at = time.monotonic()
        self._callbacks = fetching.callbacks

    def __call__(self) -> bool:
        """Return whether the program polls, and let its next call commit if it is time."""
        now = time.monotonic()
        if self._commit_s is not None and now - self._committed_at >= self._commit_s:
            self._committed_at = now
            self._records.interrupt()
        if self._callbacks.listens and self._records.left():
            self._records.interrupt()
        return self._records.idle_s() < self._limit_s
