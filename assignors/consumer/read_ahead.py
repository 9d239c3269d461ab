"""Records that were fetched ahead of `poll` and `consume`, and when these have more to do than to return them."""

import copy
import operator
import time
from collections.abc import Callable, Collection, Iterator
from typing import Final

from confluent_kafka import Message

from assignors.planner.topics_and_members import TopicPartition

_NONE: Final[tuple[Message, ...]] = ()


class ReadAhead:
    """What `poll` and `consume` return next without a call of librdkafka.

    `poll` and `consume` take records from `records` as long as `interrupted` is False: an iterator in a `for` statement
    returns a record in so few steps of the interpreter that no signal comes between them.

    Contract:
    * Any thread may set `interrupted`, and only the program's thread clears it, before it looks for the reason.
    * The program is active as long as it calls `poll`: the member's thread sees that by the records left.

    Attributes:
        records: the records that `poll` returns next.
        interrupted: whether `poll` has something else to do first.
    """

    __slots__ = ("_left", "_polled_at", "interrupted", "records")

    def __init__(self) -> None:
        self.records: Iterator[Message] = iter(_NONE)
        self.interrupted = False
        self._left = 0
        self._polled_at = time.monotonic()

    def interrupt(self) -> None:
        """Have the next `poll` look for what there is to do."""
        self.interrupted = True

    def polled(self) -> None:
        """Note that the program polls now."""
        self._polled_at = time.monotonic()

    def idle_s(self) -> float:
        """Return the seconds since the program polled last."""
        left = self.left()
        if left != self._left:
            self._left = left
            self.polled()
        return time.monotonic() - self._polled_at

    def left(self) -> int:
        """Return how many records are held."""
        return operator.length_hint(self.records)

    def hold(self, messages: list[Message]) -> None:
        """Keep these for the next calls of `poll`."""
        self.records = iter(messages)

    def next_offsets(self) -> dict[TopicPartition, int]:
        """Return the offset of the first record of each partition."""
        found: dict[TopicPartition, int] = {}
        for one in copy.copy(self.records):
            if one.error() is None:
                found.setdefault(key_of_message(one), int(one.offset() or 0))
        return found

    def drop(self, partitions: Collection[TopicPartition]) -> None:
        """Forget the records of these partitions."""
        self._keep(lambda one: one.error() is not None or key_of_message(one) not in partitions)

    def keep_only(self, partitions: Collection[TopicPartition]) -> None:
        """Forget the records of all other partitions."""
        self._keep(lambda one: one.error() is not None or key_of_message(one) in partitions)

    def clear(self) -> None:
        """Forget all records."""
        self.records = iter(_NONE)

    def put_first(self, messages: list[Message]) -> None:
        """Have `poll` return these before all others."""
        self._replace(lambda held: [*messages, *held])

    def _keep(self, wanted: Callable[[Message], bool]) -> None:
        if self.left():
            self._replace(lambda held: [one for one in held if wanted(one)])

    def _replace(self, change: Callable[[list[Message]], list[Message]]) -> None:
        """Hold what `change` returns. Another thread's `poll` takes no record meanwhile, which would come twice."""
        held: list[Message] = []
        records, self.records = self.records, iter(_NONE)
        try:
            held.extend(records)
            held = change(held)
        finally:  # also after Ctrl-C
            self.hold(held)


def key_of_message(message: Message) -> TopicPartition:
    """Return the topic and the number of a record's partition."""
    return str(message.topic()), int(message.partition() or 0)
