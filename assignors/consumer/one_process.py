"""Ends a call of the consumer in a child that a callback of the program has forked."""

from typing import ClassVar

from assignors.consumer.consumer_errors import ClosedConsumerError
from assignors.member.own_process import OwnProcess


class OneProcess(OwnProcess):
    """The process that creates it, for a call or for the consumer.

    In a child that a callback forks, the rest of the call would wait for threads that run only in the parent. The child
    gets the error of the callback, or the one of `check`, and none of the other steps is made there.
    """

    owner: ClassVar[str] = "consumer"
    refusal: ClassVar[type[Exception]] = ClosedConsumerError

    def __init__(self) -> None:
        super().__init__()
        self.begin()
