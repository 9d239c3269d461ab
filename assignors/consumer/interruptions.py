"""Work that an interruption cannot leave half done. An interruption is a signal whose handler raises, as for Ctrl-C.

The interpreter runs handlers in the main thread: at the start of a function in Python, after the call of a function in
C, and at the end of each round of a loop. It runs none between the calls that a function in C makes itself.
"""

import collections
import itertools
import operator
from collections.abc import Callable, Iterable
from typing import Any, Final

from assignors.consumer.one_process import OneProcess

_TRIES: Final = 2
_INTERRUPTED_TRIES: Final = 10


def at_once(*calls: tuple[Any, ...]) -> None:
    """Call functions in C one after another, without an interruption between them; the error of one ends the rest.

    Args:
        calls: each a function and its arguments.
    """
    collections.deque(itertools.starmap(operator.call, calls), maxlen=0)


class Once:
    """Makes one call: it is made later if an interruption comes before it, and not repeated if one comes during it."""

    def __init__(self) -> None:
        self._left = iter((True,))

    @property
    def made(self) -> bool:
        """Whether the call has started."""
        return not operator.length_hint(self._left)

    def call(self, function: Callable[..., object], *args: object) -> None:
        """Call the function unless one was called.

        Raises:
            RuntimeError: the function raised StopIteration, as `next` does, which would end the loop here unnoticed.
        """
        first = not self.made
        # One step of the interpreter notes the call and begins it.
        for _ in itertools.starmap(function, itertools.compress((args,), self._left)):
            return
        if first:
            raise RuntimeError(f"{function!r} raised StopIteration")


class PendingSteps:
    """What is still to be done, in order.

    Contract:
    * A step is removed when it has returned. So an interruption repeats it from its start, and each must allow that.
    * A step that raises an `Exception` for the second time is removed, too, because one that fails by itself would
      be repeated forever. A step that Ctrl-C interrupts is removed only at the tenth time.

    Args:
        steps: functions without arguments.
    """

    def __init__(self, steps: Iterable[Callable[[], object]]) -> None:
        self._left = collections.deque(steps)
        self._failed: Callable[[], object] | None = None
        self._tries = 0

    def __bool__(self) -> bool:
        return bool(self._left)

    def run(self) -> None:
        """Make the steps; raise the error of the first one that fails, and leave the rest for the next call."""
        while self._left:
            step = self._left[0]
            try:
                step()
            except BaseException as error:
                self._tries = self._tries + 1 if self._failed is step else 1
                self._failed = step
                if self._tries >= (_TRIES if isinstance(error, Exception) else _INTERRUPTED_TRIES):
                    self._remove(step)
                raise
            self._remove(step)

    def _remove(self, step: Callable[[], object]) -> None:
        if self._left and self._left[0] is step:  # else a call in the step has made it, and removed it
            self._left.popleft()

    def finish(self) -> None:
        """Make all steps, also after one that fails; raise the first error at the end."""
        raised: list[BaseException] = []
        process = OneProcess()
        while self._left:
            try:
                self.run()
            except BaseException as error:  # Ctrl-C too: raised below, when all is done
                if process.forked:
                    raise
                raised.append(error)
        if raised:
            raise raised[0]
