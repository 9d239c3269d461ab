"""Records on their way to the program: they have left the read-ahead, and the program may not get them."""

import itertools
import math
import threading
from collections import deque
from collections.abc import Collection, Iterable
from typing import Final

from confluent_kafka import Message

from assignors.consumer.read_ahead import ReadAhead, first_offsets, is_read, key_of_message, offset_of
from assignors.planner.topics_and_members import TopicPartition


class RecordsInHand:
    """Lists of records that calls under way will return, and those of calls that were interrupted.

    Contract: positions are before these records, so that no commit is ahead of the program. `take` and `release`
    are called in any thread; a list that was released does not change afterwards.

    Args:
        ahead: the records read ahead; `interrupted` is set where a call leaves records.

    Attributes:
        left: lists of interrupted calls, the first of which the next step removes when it has delivered them again. A
            call's handler of the interruption adds its lists by one call of a function in C, before which no second
            signal comes, and sets `interrupted` first.
    """

    def __init__(self, ahead: ReadAhead) -> None:
        self._ahead = ahead
        self._lists: dict[int, list[Message]] = {}  # by `id`
        self.left: Final[deque[list[Message]]] = deque()
        self._lock = threading.Lock()

    def take(self, messages: list[Message]) -> None:
        """Add a list, which a call fills and will return."""
        with self._lock:
            self._lists[id(messages)] = messages

    def release(self, messages: list[Message]) -> None:
        """Remove a list: its call returns it."""
        with self._lock:
            self._lists.pop(id(messages), None)

    def leave_ahead(self, partitions: Collection[TopicPartition]) -> list[Message]:
        """Move the records of these partitions from the read-ahead into a list in `left`; return the list.

        The caller continues the partitions elsewhere, and then clears the list. If a signal comes before that, the next
        step delivers these records, since librdkafka's positions are after them.
        """
        moved = [one for one in self._ahead.held() if is_read(one) and key_of_message(one) in partitions]
        if moved:
            self._ahead.interrupted = True
            self.left.append(moved)
        self._ahead.drop(partitions)
        return moved

    def first_offsets(self) -> dict[TopicPartition, int]:
        """The first offset of each partition."""
        return least_offsets(self._all())

    def drop(self, partitions: Collection[TopicPartition]) -> dict[TopicPartition, int]:
        """Remove the records of these partitions; return the first offset of each that had one."""
        with self._lock:
            first = least_offsets(self._all())
            for held in self._all():
                held[:] = [one for one in held if not is_read(one) or key_of_message(one) not in partitions]
        return {key: at for key, at in first.items() if key in partitions}

    def withdraw(self, messages: list[Message]) -> list[Message]:
        """Remove from all lists but this one the later records of its partitions, and return them."""
        first = first_offsets(messages)

        def is_later(one: Message) -> bool:
            return is_read(one) and offset_of(one) >= first.get(key_of_message(one), math.inf)

        withdrawn: list[Message] = []
        with self._lock:
            for held in self._all():
                if held is not messages:
                    withdrawn += filter(is_later, held)
                    held[:] = itertools.filterfalse(is_later, held)
        return withdrawn

    def _all(self) -> list[list[Message]]:
        return [*self._lists.values(), *self.left]


def least_offsets(lists: Iterable[Iterable[Message]]) -> dict[TopicPartition, int]:
    """Return the first offset of each partition; each list is in order, but an earlier one may follow a later one."""
    found: dict[TopicPartition, int] = {}
    for one in lists:
        for key, at in first_offsets(one).items():
            found[key] = min(at, found.get(key, at))
    return found
