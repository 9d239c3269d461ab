"""Ends a call of the consumer in a child that a callback of the program has forked."""

import os

from assignors.consumer.consumer_errors import ClosedConsumerError


class OneProcess:
    """The process of a call.

    In a child that a callback forks, the rest of the call would wait for threads that run only in the parent. The child
    gets the error of the callback, or the one of `check`, and none of the other steps is made there.
    """

    def __init__(self) -> None:
        self._process = os.getpid()

    @property
    def left(self) -> bool:
        """Whether this process is a child that was forked during the call."""
        return self._process != os.getpid()

    def check(self) -> None:
        """Raise ClosedConsumerError in a child."""
        if self.left:
            raise ClosedConsumerError(
                f"this consumer belongs to process {self._process}, this process is its child {os.getpid()}: make a "
                "consumer after the fork"
            )
