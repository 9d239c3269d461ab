"""Records fetched before `poll` and `consume` need them, and the flag that these have other work to do first."""

import copy
import itertools
import operator
import time
from collections.abc import Callable, Collection, Iterable, Iterator
from typing import Final

from confluent_kafka import KafkaError, Message

from assignors.planner.topics_and_members import TopicPartition

_NONE: Final[tuple[Message, ...]] = ()
_NO_BATCH: Final[tuple[list[Message], ...]] = ()


class ReadAhead:
    """The records that `poll` and `consume` return next, without a call of librdkafka.

    `poll` and `consume` take records from `records` while `interrupted` is False: an iterator in a `for` statement
    returns a record in so few interpreter steps that no signal can come between them. A program that always consumes
    the same number finds its records cut into lists: to copy 100 records takes three times as long as such a call.

    Contract:
    * Either `records` or `batches` is empty.
    * Any thread may set `interrupted`, and only the program's thread clears it, before it checks the reasons.
    * The program is active while it calls `poll`: the member's thread detects that by the number of records left.

    Attributes:
        records: the records that `poll` returns next.
        batches: the lists that `consume(batch_size)` returns next, or begins with: some may be shorter.
        batch_size: size of these lists, even when none is left; 0 if the next call may need a different size.
        interrupted: whether `poll` has other work to do first.
        polled_at: when the program polled last, in seconds of `time.monotonic`; `idle_s` also counts records that left.
    """

    __slots__ = ("_left", "batch_size", "batches", "interrupted", "polled_at", "records")

    def __init__(self) -> None:
        self.records: Iterator[Message] = iter(_NONE)
        self.batches: Iterator[list[Message]] = iter(_NO_BATCH)
        self.batch_size = 0
        self.interrupted = False
        self._left = 0
        self.polled_at = time.monotonic()

    def interrupt(self) -> None:
        """Make the next `poll` check for other work."""
        self.interrupted = True

    def polled(self) -> None:
        """Record that the program polls now."""
        self.polled_at = time.monotonic()

    def idle_s(self) -> float:
        """Return the seconds since the program's last poll."""
        left = self.left()
        if left != self._left:
            self._left = left
            self.polled()
        return time.monotonic() - self.polled_at

    def left(self) -> int:
        """Return the number of records held; each batch counts as a full one."""
        return operator.length_hint(self.records) + self.batch_size * operator.length_hint(self.batches)

    def hold(self, messages: list[Message]) -> None:
        """Keep these for the next calls of `poll`."""
        self.records = iter(messages)
        self.batches = iter(_NO_BATCH)
        self.batch_size = 0

    def hold_batches(self, batches: list[list[Message]], size: int) -> None:
        """Keep these for the next calls of `consume(size)`; each has at most `size` records, and all but some have."""
        self.records = iter(_NONE)
        self.batches = iter([batch for batch in batches if batch])
        self.batch_size = size

    def next_batch(self) -> list[Message]:
        """Take one batch; empty if there is none."""
        for batch in self.batches:
            return batch
        return []

    def join_batches(self) -> None:
        """Make `records` of the batches, for a call that needs another number."""
        if operator.length_hint(self.batches):
            self._replace(lambda held: held)
        self.batch_size = 0

    def held(self) -> list[Message]:
        """Return all records, which stay."""
        return [*itertools.chain.from_iterable(copy.copy(self.batches)), *copy.copy(self.records)]

    def next_offsets(self) -> dict[TopicPartition, int]:
        """Return the offset of the first record of each partition."""
        return first_offsets(self.held())

    def drop(self, partitions: Collection[TopicPartition]) -> None:
        """Drop the records of these partitions, and the ends that were reached."""
        self._keep(lambda one: not is_read(one) or key_of_message(one) not in partitions)

    def keep_only(self, partitions: Collection[TopicPartition]) -> None:
        """Drop the records of all other partitions."""
        self._keep(lambda one: not is_read(one) or key_of_message(one) in partitions)

    def clear(self) -> None:
        """Drop all records."""
        self.hold([])

    def put_first(self, messages: list[Message]) -> None:
        """Make `poll` return these before all others."""
        self._replace(lambda held: [*messages, *held])

    def put_back(self, messages: list[Message]) -> None:
        """Make `poll` return these again before all others, but none before an earlier record of its partition."""
        self._replace(lambda held: in_order([*messages, *held]))

    def put_last(self, messages: list[Message]) -> None:
        """Make these the last records, and with batches the last batch."""
        if messages and self.batch_size:
            self.batches = iter([*copy.copy(self.batches), messages])
        elif messages:
            self._replace(lambda held: [*held, *messages])

    def _keep(self, wanted: Callable[[Message], bool]) -> None:
        if self.left():
            self._replace(lambda held: [one for one in held if wanted(one)])

    def _replace(self, change: Callable[[list[Message]], list[Message]]) -> None:
        """Hold the result of `change`. Until then another thread's `poll` must take no record: it would come twice."""
        held: list[Message] = []
        kept, none, no_batch = iter(held), iter(_NONE), iter(_NO_BATCH)
        present = itertools.chain(itertools.chain.from_iterable(self.batches), self.records)
        self.records, self.batches = none, no_batch
        try:
            held.extend(present)  # the first call after the change: a signal raises only after it
            held[:] = change(held)
        finally:  # without a call, at which a second signal could come
            self.records, self.batch_size = kept, 0


def key_of_message(message: Message) -> TopicPartition:
    """Return the topic and the number of a record's partition."""
    return str(message.topic()), int(message.partition() or 0)


def offset_of(message: Message) -> int:
    """Return the offset of a record, or of the end of a partition."""
    return int(message.offset() or 0)


def is_read(message: Message) -> bool:
    """Return whether it is a record or the end of a partition, which belong to the current position, not an error."""
    error = message.error()
    return error is None or error.code() == KafkaError._PARTITION_EOF  # noqa: SLF001 -- librdkafka's own code


def first_offsets(messages: Iterable[Message]) -> dict[TopicPartition, int]:
    """Return the offset of the first record of each partition."""
    found: dict[TopicPartition, int] = {}
    for one in messages:
        if one.error() is None:
            found.setdefault(key_of_message(one), offset_of(one))
    return found


def in_order(messages: list[Message]) -> list[Message]:
    """Return the same messages; those of a partition have the same places, in the order of their offsets.

    An end of a partition is after its records; errors stay where they are.
    """
    of_partitions: dict[TopicPartition, list[int]] = {}
    for place, one in enumerate(messages):
        if is_read(one):
            of_partitions.setdefault(key_of_message(one), []).append(place)
    ordered = list(messages)
    for places in of_partitions.values():
        by_offset = sorted((messages[place] for place in places), key=offset_of)
        for place, one in zip(places, by_offset, strict=True):
            ordered[place] = one
    return ordered
