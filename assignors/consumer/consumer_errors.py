"""Errors of `GroupConsumer`: each is a `MembershipError` and a `KafkaException`, so both `except` clauses catch it.

MembershipError and KafkaException
└── ConsumerError                 the group, the brokers or the configuration do not allow the call
    ├── ArgumentError             the arguments are invalid; also a ValueError and a TypeError
    ├── ClosedConsumerError       the consumer is closed, or belongs to another process; also a RuntimeError
    ├── FencedConsumerError       the group continued without this member; also a FencedError
    └── NotOwnedConsumerError     a commit or `store_offsets` for another member's partition; also a NotOwnedError
"""

from collections.abc import Callable, Collection
from typing import Self

import kafka.errors
from confluent_kafka import KafkaError, KafkaException

from assignors.errors import FencedError, MembershipError, NotOwnedError
from assignors.planner.topics_and_members import TopicPartition

Text = str  # the class has a method of this name


class ConsumerError(MembershipError, KafkaException):
    """The consumer could not complete the call.

    Contract: `args[0]` is a `KafkaError`, as in any `KafkaException`. The methods `code`, `name`, `str`, `fatal` and
    `retriable` are those of that error, so an `on_commit` callback can treat both in the same way.
    """

    def __init__(self, message: str, code: int = KafkaError._STATE) -> None:  # noqa: SLF001 -- librdkafka's own code
        super().__init__(message)
        self._message = message
        self.error = KafkaError(code, message)
        self.args = (self.error,)

    def __reduce__(self) -> tuple[Callable[..., "ConsumerError"], tuple[type[Self], Text, int]]:
        # `args` has the error of librdkafka, which no exception of ours can be made from.
        return _again, (type(self), self._message, self.code())

    def __str__(self) -> Text:
        return self._message

    def code(self) -> int:
        """Return the error's code, one of `KafkaError`'s constants."""
        return self.error.code()

    def name(self) -> str:
        """Return the name of the code."""
        return self.error.name()

    def str(self) -> str:
        """Return the message."""
        return self._message

    def fatal(self) -> bool:
        """Return False: the consumer continues after this error."""
        return False

    def retriable(self) -> bool:
        """Return whether the same call may succeed later."""
        return self.error.retriable()


class ArgumentError(ConsumerError, ValueError, TypeError):
    """The arguments make no sense."""

    def __init__(self, message: str) -> None:
        super().__init__(message, KafkaError._INVALID_ARG)  # noqa: SLF001 -- librdkafka's own code


class ClosedConsumerError(ConsumerError, RuntimeError):
    """The consumer is closed, or belongs to the process that this one was forked from."""


class FencedConsumerError(ConsumerError, FencedError):
    """The group went on without this member."""


class NotOwnedConsumerError(ConsumerError, NotOwnedError):
    """A commit or `store_offsets` for a partition that this member does not own."""


def _again(kind: type[ConsumerError], message: str, code: int) -> ConsumerError:
    """Make an error that was copied, or came from another process."""
    made = kind.__new__(kind)
    ConsumerError.__init__(made, message, code)
    return made


def consumer_error(error: MembershipError) -> ConsumerError:
    """Convert a member's error into one of the consumer's, with the broker's code if a broker caused it."""
    if isinstance(error, ConsumerError):
        return error
    kind = ConsumerError
    code = KafkaError._FAIL  # noqa: SLF001 -- librdkafka's own code
    if isinstance(error, FencedError):
        kind, code = FencedConsumerError, KafkaError.ILLEGAL_GENERATION
    elif isinstance(error, NotOwnedError):
        kind, code = NotOwnedConsumerError, KafkaError._STATE  # noqa: SLF001 -- librdkafka's own code
    cause = error.__cause__
    if isinstance(cause, kafka.errors.KafkaTimeoutError | TimeoutError):
        code = KafkaError._TIMED_OUT  # noqa: SLF001 -- librdkafka's own code
    elif isinstance(cause, kafka.errors.KafkaError) and (errno := getattr(cause, "errno", None)):
        code = int(errno)  # -1 is UNKNOWN
    elif isinstance(cause, KafkaException) and kind is ConsumerError:
        code = cause.args[0].code()
    made = kind(str(error), code)
    made.__cause__ = cause
    return made


def code_of_unread(key: TopicPartition, read: Collection[TopicPartition]) -> int:
    """Return librdkafka's code for a partition that is not read; it depends on whether its topic is read."""
    known = key[0] in {topic for topic, _ in read}
    return KafkaError._STATE if known else KafkaError._UNKNOWN_PARTITION  # noqa: SLF001 -- librdkafka's own codes
