"""Closes a member in a separate thread, while the program's thread runs the callbacks for which the member waits."""

import logging
import time
from collections.abc import Callable
from typing import Final

from assignors.consumer.background_calls import Answer, start_thread
from assignors.consumer.consumer_errors import ConsumerError
from assignors.consumer.fetch_start_and_last_commit import Member
from assignors.consumer.one_process import OneProcess

log = logging.getLogger(__name__)

_STEP_S: Final = 0.005
_LONGEST_S: Final = 90.0  # the end waits for a start, a commit and a rebalance, 30, 20 and 5 s


class Leaving:
    """Closes a member while the program's thread handles its rebalances.

    Args:
        member: its rebalances are handled.
        close: closes it; by default its own `close`.

    Attributes:
        ended: whether `finish` has done all.
    """

    def __init__(self, member: Member, close: Callable[[], None] | None = None) -> None:
        self.member = member
        self._close_member = close or member.close
        self.ended = False
        self._closed: Answer[None] = Answer()
        self._thread: list[object] = []

    def finish(self, handle: Callable[[], bool]) -> None:
        """Handle changes until the member is closed; raise the first error of a callback at the end.

        After an interruption it may be called again, and continues.

        Args:
            handle: handles all waiting changes; returns whether there were some.

        Raises:
            ConsumerError: the member does not end.
        """
        if not self._thread:
            start_thread(self._close, "group-consumer-close", self._thread)
        # Another revocation may follow one whose callback raised, so all of them are handled.
        raised: list[BaseException] = []
        process = OneProcess()
        until, closed = time.monotonic() + _LONGEST_S, False
        while not closed:
            closed = self._closed.done
            began = time.monotonic()
            try:
                if handle():
                    until = time.monotonic() + _LONGEST_S
                self._closed.wait(_STEP_S)
            except BaseException as error:  # Ctrl-C too: raised below, when all partitions are released
                if process.forked:
                    raise
                raised.append(error)
                until += time.monotonic() - began  # of a callback, for which the member waits
            if time.monotonic() > until:
                raised.append(_hangs())
                break
        if not self.ended and (failure := self._closed.error) is not None:
            log.warning("the member left with an error: %r", failure)
        self.ended = True
        if raised:
            raise raised[0]

    def _close(self) -> None:
        self._closed.answer(self._close_member)


def _hangs() -> ConsumerError:
    return ConsumerError(
        f"the member has not ended within {_LONGEST_S:.0f} s, so close() no longer waits for it: the group reassigns "
        "its partitions when its session expires (a handler of a signal that raises can leave a lock of Python or of a "
        "library locked)"
    )
