"""A method of which one call fails, to walk through all calls of a task."""

from collections.abc import Callable
from typing import Any


class OneFailure:
    """Counts the calls of a method, and lets one of them fail as if the broker had closed the connection.

    Args:
        original: the method.

    Attributes:
        calls: the calls so far.
        failing: the number of the call that fails, 0 for none.
    """

    def __init__(self, original: Callable[..., Any]) -> None:
        self._original = original
        self.calls = 0
        self.failing = 0

    def method(self) -> Callable[..., Any]:
        """Return what takes the method's place."""

        def call(*arguments: Any) -> Any:
            self.calls += 1
            if self.calls == self.failing:
                raise ConnectionResetError
            return self._original(*arguments)

        return call
