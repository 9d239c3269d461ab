"""Records on their way to the program: they have left the read-ahead, and the program may not get them."""

import itertools
import math
import threading
from collections import deque
from collections.abc import Collection, Iterable

from confluent_kafka import Message

from assignors.consumer.interruptions import at_once
from assignors.consumer.read_ahead import ReadAhead, first_offsets, is_read, key_of_message, offset_of
from assignors.planner.topics_and_members import TopicPartition


class RecordsInHand:
    """Lists of records that calls under way will return, and those of calls that were interrupted.

    Contract: positions are before these records, so that no commit is ahead of the program. `take`, `release` and
    `leave` are called in any thread; a list that was released does not change afterwards.

    Args:
        ahead: the records read ahead; `interrupted` is set where a call leaves records.
    """

    def __init__(self, ahead: ReadAhead) -> None:
        self._ahead = ahead
        self._lists: dict[int, list[Message]] = {}  # by `id`
        self._left: deque[list[Message]] = deque()
        self._lock = threading.Lock()

    def take(self, messages: list[Message]) -> None:
        """Add a list, which a call fills and will return."""
        with self._lock:
            self._lists[id(messages)] = messages

    def release(self, messages: list[Message]) -> None:
        """Remove a list: its call returns it."""
        with self._lock:
            self._lists.pop(id(messages), None)

    def leave(self, messages: list[Message]) -> None:
        """Add the records of an interrupted call until `forget_left`."""
        with self._lock:
            at_once(
                (self._lists.__setitem__, id(messages), messages),
                (self._left.append, messages),
                (setattr, self._ahead, "interrupted", True),
            )

    def leave_ahead(self, partition: TopicPartition) -> list[Message]:
        """Move the records of a partition from the read-ahead into a list, and `leave` it; return the list.

        The caller continues the partition elsewhere, and then clears the list. If a signal comes before that, the next
        step delivers these records, since librdkafka's position is after them.
        """
        moved = [one for one in self._ahead.held() if is_read(one) and key_of_message(one) == partition]
        if moved:
            self.leave(moved)
        self._ahead.drop([partition])
        return moved

    def left(self) -> list[Message] | None:
        """The first list that an interrupted call left; `drop` may have emptied it."""
        return self._left[0] if self._left else None

    def forget_left(self) -> None:
        """Remove the list of `left`."""
        with self._lock:
            at_once((self._lists.pop, id(self._left[0]), None), (self._left.popleft,))

    def first_offsets(self) -> dict[TopicPartition, int]:
        """The first offset of each partition."""
        return _least(first_offsets(held).items() for held in list(self._lists.values()))

    def drop(self, partitions: Collection[TopicPartition]) -> dict[TopicPartition, int]:
        """Remove the records of these partitions; return the first offset of each that had one."""
        with self._lock:
            first = _least(first_offsets(held).items() for held in self._lists.values())
            for held in self._lists.values():
                held[:] = [one for one in held if not is_read(one) or key_of_message(one) not in partitions]
        return {key: at for key, at in first.items() if key in partitions}

    def withdraw(self, messages: list[Message]) -> list[Message]:
        """Remove from all lists but this one the later records of its partitions, and return them."""
        first = first_offsets(messages)

        def is_later(one: Message) -> bool:
            return is_read(one) and offset_of(one) >= first.get(key_of_message(one), math.inf)

        withdrawn: list[Message] = []
        with self._lock:
            for held in self._lists.values():
                if held is not messages:
                    withdrawn += filter(is_later, held)
                    held[:] = itertools.filterfalse(is_later, held)
        return withdrawn


def _least(offsets: Iterable[Iterable[tuple[TopicPartition, int]]]) -> dict[TopicPartition, int]:
    found: dict[TopicPartition, int] = {}
    for some in offsets:
        for key, at in some:
            found[key] = min(at, found.get(key, at))
    return found
