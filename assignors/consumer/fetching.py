"""Fetching by librdkafka, of owned partitions only."""

import itertools
import logging
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from typing import Any, Final

from confluent_kafka import OFFSET_INVALID, OFFSET_STORED, Consumer, KafkaError, KafkaException, Message
from confluent_kafka import TopicPartition as KafkaPartition

from assignors.clients.log_offsets import Offset, OffsetWithMetadata
from assignors.consumer.client_callbacks import ClientCallbacks
from assignors.consumer.consumer_errors import ConsumerError, code_of_unread
from assignors.consumer.interruptions import at_once
from assignors.consumer.logical_offsets import check_start
from assignors.consumer.positions_before_call import PositionsBefore
from assignors.consumer.read_ahead import ReadAhead, first_offsets, is_read, key_of_message
from assignors.consumer.records_in_hand import RecordsInHand, least_offsets
from assignors.consumer.resolved_starts import ResolvedStarts
from assignors.consumer.stored_offsets import StoredOffsets
from assignors.member.ownership import Ownership
from assignors.planner.topics_and_members import TopicPartition

log = logging.getLogger(__name__)

_MOST_AHEAD: Final = 10_000
_RECORDS_PER_POSITION: Final = 4  # the position of a partition costs as much as 0.3 to 1 record


class Fetching:
    """librdkafka's consumer, and the records fetched from it before `poll` needs them.

    Contract:
    * Not safe for threads.
    * After `remove`, records of these partitions that were fetched before are not delivered. librdkafka itself drops
      queued records: each partition has a version, which grows with each removal, and older records are dropped.
    * `take` delivers records of owned partitions only. The ownership may shrink without `remove` if a program was too
      slow for its group; only then is each record checked.
    * After a fatal error a new client replaces the old one, and continues after the last delivered record.
    * Callbacks of the configuration are noted in `callbacks`; they end the wait for records, and `ahead.interrupted` is
      set until they are called.
    * Records `in_hand` have left `ahead`, but the program may not get them: `positions` is before them,
      and `remove`, `seek` and `close` drop them.

    Args:
        config: librdkafka's properties.

    Attributes:
        ahead: the records fetched before `poll` needs them.
        callbacks: the callbacks of the configuration.
        in_hand: the records described above.
    """

    COMMITTED: Final = OFFSET_STORED
    """Begin at the group's committed offset; without one, where auto.offset.reset says."""

    def __init__(self, config: Mapping[str, Any]) -> None:
        self.ahead = ReadAhead()
        self.callbacks = ClientCallbacks()
        self._came = self.callbacks.came
        self._config = self.callbacks.listening(config)
        self._consumer = Consumer(self._config)
        self.in_hand = RecordsInHand(self.ahead)
        self._left = self.in_hand.left
        self._checked = Ownership()
        self._sought: dict[TopicPartition, int] = {}
        self._begun: dict[TopicPartition, int] = {}
        self._asked: list[KafkaPartition] = []
        self._before = PositionsBefore()
        self._paused: set[TopicPartition] = set()
        self._closed: list[bool] = []
        self._stored = StoredOffsets(self._watermarks, self._returned)
        self._starts = ResolvedStarts()

    @property
    def client(self) -> Consumer:
        """Librdkafka's consumer, for requests other than fetching."""
        return self._consumer

    @property
    def partitions(self) -> frozenset[TopicPartition]:
        """The partitions that are read."""
        return frozenset(self._begun)

    @property
    def fewest_ahead(self) -> int:
        """The least number of records for which it pays to ask for the positions of all partitions first."""
        return min(_RECORDS_PER_POSITION * len(self._asked), _MOST_AHEAD)

    def begins(self) -> dict[TopicPartition, int]:
        """Return the offset that was given for the begin of each partition that is read."""
        return {key: self._starts.given[key] for key in self._begun}

    def set_sasl_credentials(self, username: str, password: str) -> None:
        """Use these credentials from the next connection on, also with a client that replaces this one."""
        self._consumer.set_sasl_credentials(username, password)
        self._config |= {"sasl.username": username, "sasl.password": password}

    def add(self, begins: Mapping[TopicPartition, int]) -> None:
        """Read these partitions in addition, from these offsets on."""
        self.redeliver_left()
        if given := {key: at for key, at in begins.items() if key not in self._begun}:
            new = self._starts.begin(self._consumer, given)
            begun = self._begun | new
            self._before.forget()
            for key, at in new.items():
                self._stored.start(key, at)
            at_once(
                (setattr, self, "_begun", begun),
                (setattr, self, "_asked", [KafkaPartition(*key) for key in begun]),
                (setattr, self, "_checked", Ownership()),
                (self._consumer.incremental_assign, [KafkaPartition(*key, at) for key, at in new.items()]),
            )

    def remove(self, partitions: Collection[TopicPartition]) -> None:
        """Stop reading these partitions."""
        self.redeliver_left()
        if gone := self._begun.keys() & partitions:
            self.ahead.drop(gone)
            self.in_hand.drop(gone)
            self._before.forget()
            self._stored.forget(gone)
            begun = {key: at for key, at in self._begun.items() if key not in gone}
            at_once(
                (setattr, self, "_begun", begun),
                (setattr, self, "_asked", [KafkaPartition(*key) for key in begun]),
                (setattr, self, "_sought", {key: at for key, at in self._sought.items() if key in begun}),
                (setattr, self, "_paused", self._paused & begun.keys()),
                (self._consumer.incremental_unassign, [KafkaPartition(*key) for key in gone]),
            )
            self._starts.forget(gone)

    def take(self, most: int, waits_s: Iterable[float], ownership: Callable[[], Ownership]) -> list[Message]:
        """Return up to `most` records, first those read ahead; wait for each time in turn only if there are none."""
        self.redeliver_left()  # of another thread, whose handling of an interruption was interrupted
        found: list[Message] = []
        fetched: list[list[Message]] = []
        self.ahead.join_batches()
        try:
            # A signal during a call raises after the call, before its value is assigned, so Ctrl-C would lose the
            # records. This single call into C has put them into a list by then.
            found.extend(itertools.islice(self.ahead.records, most))
            if len(found) < most:
                self._before.note(self._consumer, self._asked)
                for wait_s in (0.0,) if found else waits_s:
                    fetched.clear()
                    fetched.extend(map(self._consumer.consume, (most - len(found),), (wait_s,)))
                    if self._came:
                        self.ahead.interrupt()  # ends the wait for records
                    if fetched[0]:
                        self._before.received(fetched[0])
                        break
                found = found + fetched[0] if found else fetched[0]
            return self.deliverable(found, ownership) if found else found
        except KafkaException as error:
            self._replace_client(error.args[0])
            return found
        except BaseException:
            self.ahead.interrupted = self._before.interrupted = True
            self._left.extend((found, *fetched))
            self.redeliver_left()
            raise

    def read_ahead(self, most: int, waits_s: Iterable[float], ownership: Callable[[], Ownership]) -> None:
        """Add up to `most` records to `ahead`; wait for the first ones as `take` does."""
        found: list[Message] = []
        try:
            found += self.take(most, waits_s, ownership)
            self.ahead.hold(found)
        except BaseException:
            self.ahead.interrupted = True
            self._left.append(found)
            self.redeliver_left()
            raise

    def read_batches(self, size: int, count: int, ownership: Callable[[], Ownership]) -> None:
        """Add up to `count` batches of fetched records to `ahead`, which is empty; a short one is the last.

        librdkafka fills the lists that the program gets: other lists would access each record twice, 5 % of the time.
        """
        fetched: list[list[Message]] = []

        def sizes() -> Iterator[int]:
            yield size
            while len(fetched) < count and len(fetched[-1]) == size:
                yield size

        try:
            self._before.note(self._consumer, self._asked)
            # In one call, for the reason that `take` gives: each list is in `fetched` before `sizes` continues.
            fetched.extend(map(self._consumer.consume, sizes(), itertools.repeat(0.0)))
            if self._came:
                self.ahead.interrupt()
            if len(fetched) > 1:
                self._before.forget()
            else:
                self._before.received(fetched[0])
            self.ahead.hold_batches([self.deliverable(batch, ownership) for batch in fetched], size)
        except KafkaException as error:
            self.keep_fetched(fetched, size, error)
        except BaseException:
            self.ahead.interrupted = self._before.interrupted = True
            self._left.extend(fetched)
            self.redeliver_left()
            raise

    def listen(self, ownership: Callable[[], Ownership]) -> None:
        """Let the client make its callbacks while `ahead` has records; what it returns comes after those."""
        fetched: list[list[Message]] = []
        try:
            self._before.note(self._consumer, self._asked)
            fetched.extend(map(self._consumer.consume, (max(1, self.ahead.batch_size),), (0.0,)))
            self._before.received(fetched[0])
            self.ahead.put_last(self.deliverable(fetched[0], ownership))
        except KafkaException as error:
            self._replace_client(error.args[0])
        except BaseException:
            self.ahead.interrupted = self._before.interrupted = True
            self._left.extend(fetched)
            self.redeliver_left()
            raise

    def keep_fetched(self, batches: list[list[Message]], size: int, error: KafkaException) -> None:
        """Hold the batches that were fetched before this error of librdkafka's client, and replace the client."""
        self.ahead.hold_batches(batches, size)
        self._replace_client(error.args[0])

    def redeliver(self, messages: Iterable[Message]) -> None:
        """Deliver these again and do not count them as delivered: the program has not seen them."""
        self._restart(self._earliest(first_offsets(messages), {}))

    def redeliver_left(self) -> None:
        """Deliver again the records of interrupted calls, and those that librdkafka's client dropped in one."""
        while self._before.interrupted or self._left:
            left = tuple(self._left)
            dropped = self._before.dropped(self._consumer) if self._before.interrupted else {}
            self._restart(
                self._earliest(least_offsets(left), dropped),
                (setattr, self._before, "interrupted", False),
                *((self._left.popleft,),) * len(left),
            )

    def _earliest(
        self, first: Mapping[TopicPartition, int], dropped: Mapping[TopicPartition, int | None]
    ) -> dict[TopicPartition, int]:
        """Return where each partition begins again; one that had no position begins where it began."""
        keys = (dropped.keys() | first.keys()) & self._begun.keys()
        # Another call may have put back earlier records of these partitions.
        present = self._taken(keys)
        earliest: dict[TopicPartition, int] = {}
        for key in keys:
            known = [at for at in (dropped.get(key), first.get(key)) if at is not None]
            at = min(known, default=self._sought.get(key, self._begun[key]))
            earliest[key] = min(at, present.get(key, at))
        return earliest

    def refetch_in_hand(self, partitions: Collection[TopicPartition]) -> None:
        """Drop the records in hand of these partitions; `positions` stays before them."""
        self._restart({key: at for key, at in self.in_hand.drop(partitions).items() if key in self._begun})

    def return_to_ahead(self, messages: list[Message]) -> None:
        """Let the next call return these; only those of paused partitions are fetched again.

        Later records of the same partitions that other calls have in hand come after these, so they go back, too.
        """
        read = self._begun.keys() - self._paused
        returned = [*messages, *self.in_hand.withdraw(messages)]
        self.redeliver(one for one in returned if key_of_message(one) in self._paused)
        if kept := [one for one in returned if one.error() is not None or key_of_message(one) in read]:
            self.ahead.put_back(kept)

    def check_ahead(self, owned: Ownership) -> None:
        """Drop the records in `ahead` whose partition is no longer owned."""
        if owned is not self._checked:
            self.ahead.keep_only(owned.partitions)

    def deliverable(self, found: list[Message], ownership: Callable[[], Ownership]) -> list[Message]:
        """Return those of owned partitions; replace the client if the last one is a fatal error."""
        # Checked after the wait, because a partition may have been revoked during it.
        owned = ownership()
        if owned is not self._checked:
            if not self._begun.keys() <= owned.partitions:
                found = [one for one in found if not is_read(one) or key_of_message(one) in owned.partitions]
            else:
                self._checked = owned
        last = found[-1].error() if found else None
        if last is not None and last.fatal():
            self._replace_client(last)
        return found

    def positions(self, of: Collection[TopicPartition] | None = None) -> dict[TopicPartition, int]:
        """The offset after the last delivered record, or of a later seek; partitions with neither are left out.

        Args:
            of: partitions that are read; None for all.
        """
        if self._before.interrupted:
            self.redeliver_left()
        found = self._taken(self._begun if of is None else of)
        for key, at in self.in_hand.first_offsets().items():
            if key in (self._begun if of is None else of):
                found[key] = min(at, found.get(key, at))
        return found

    def positions_with_epochs(self, of: Collection[TopicPartition] | None = None) -> dict[TopicPartition, Offset]:
        """As `positions`, with the epoch of the record before it where that was the last one that librdkafka returned.

        The epoch of a later record may be newer, and would hide that the log was truncated (KIP-320).
        """
        asked = [KafkaPartition(*key) for key in (self._begun if of is None else of)]
        known: dict[tuple[str, int, int], int] = {
            (one.topic, one.partition, one.offset): epoch
            for one in (self._consumer.position(asked) if asked else [])
            if (epoch := one.leader_epoch) is not None
        }
        return {
            key: OffsetWithMetadata(at, "", known[*key, at]) if (*key, at) in known else at
            for key, at in self.positions(of).items()
        }

    def reached_offsets(self) -> dict[TopicPartition, Offset]:
        """As `positions_with_epochs`, for partitions with a record delivered since they began or were sought.

        As in librdkafka: the sought offset may not be in the log, or may not be reached yet.
        """
        return {key: at for key, at in self.positions_with_epochs().items() if not self._stored.waits(key, at)}

    def stored_offsets(self) -> dict[TopicPartition, Offset]:
        """Like `positions_with_epochs`, but after the last delivered record even if a seek has followed."""
        return self._stored.among(self.positions_with_epochs())

    def _watermarks(self, key: TopicPartition) -> tuple[int, int]:
        found: tuple[int, int] = self._consumer.get_watermark_offsets(KafkaPartition(*key), cached=True)
        return found

    def _returned(self, key: TopicPartition) -> int:
        return int(self._consumer.position([KafkaPartition(*key)])[0].offset)

    def _taken(self, of: Collection[TopicPartition]) -> dict[TopicPartition, int]:
        """The offset after the last record of each of these that left `ahead`."""
        asked = [KafkaPartition(*key) for key in of]
        positions = self._consumer.position(asked) if asked else []
        # After `_restart` librdkafka has no position until the next record.
        found = {key: self._sought[key] for key in of if key in self._sought}
        found |= {(one.topic, one.partition): one.offset for one in positions if one.offset >= 0}
        found |= {key: at for key, at in self.ahead.next_offsets().items() if key in of}
        return {key: at for key, at in found.items() if at >= 0}

    def seek(self, key: TopicPartition, offset: int, reset: int | None = None) -> None:
        """Continue a partition at this offset.

        Args:
            key: the partition.
            offset: a number or one of librdkafka's constants.
            reset: the logical offset of auto.offset.reset, which OFFSET_INVALID means in a seek; None if it is unknown.

        Raises:
            ConsumerError: the partition is not read, or no record can have this offset.
        """
        if key not in self._begun:
            said = f"{key[0]!r} partition {key[1]} is not assigned: seek() when it is"
            raise ConsumerError(said, code_of_unread(key, self._begun))
        check_start(key, offset)
        self.redeliver_left()
        # Of this partition alone: a program may seek in thousands, one after another.
        stored = self._stored.of(key, self.positions_with_epochs([key]).get(key))
        self._stored.start(key, offset, stored)
        # `_restart` assigns, and an assignment at OFFSET_INVALID begins at the group's offset.
        self._restart({key: offset if offset != OFFSET_INVALID or reset is None else reset})
        self.in_hand.drop([key])

    def _restart(self, offsets: Mapping[TopicPartition, int], *then: tuple[Any, ...]) -> None:
        """Continue partitions at these offsets, and make the calls `then` without an interruption before them."""
        for key, at in offsets.items():
            self._starts.continues(self._consumer, key, at)
        dropped = self.in_hand.leave_ahead(offsets.keys()) if offsets else []
        # A seek fails before the first fetch is ready; removing and adding the partition does not.
        again: tuple[tuple[Any, ...], ...] = (
            (self._consumer.incremental_unassign, [KafkaPartition(*key) for key in offsets]),
            (self._consumer.incremental_assign, [KafkaPartition(*key, at) for key, at in offsets.items()]),
            (self._consumer.pause, [KafkaPartition(*key) for key in offsets if key in self._paused]),
            (self._sought.update, offsets),
        )
        at_once(*(again if offsets else ()), (setattr, self._before, "noted", None), (dropped.clear,), *then)

    def pause(self, partitions: Collection[TopicPartition]) -> None:
        """Deliver no records of these partitions until `resume`."""
        self.redeliver_left()
        these = self._begun.keys() & partitions
        self._restart({key: at for key, at in self.ahead.next_offsets().items() if key in these})
        self._paused.update(these)
        self._consumer.pause([KafkaPartition(*key) for key in these])

    def resume(self, partitions: Collection[TopicPartition]) -> None:
        """Deliver records of these partitions again."""
        these = [key for key in partitions if key in self._begun]
        self._paused.difference_update(these)
        self._consumer.resume([KafkaPartition(*key) for key in these])

    def close(self) -> None:
        """Close the client."""
        self.in_hand.drop(self._begun)
        self._before.interrupted = False
        self._begun.clear()
        self.ahead.clear()
        if not self._closed:
            at_once((self._consumer.close,), (self._closed.append, True))

    def _replace_client(self, error: KafkaError) -> None:
        log.warning("fetching ended (%s): beginning again with %d partitions", error, len(self._begun))
        sought = self._sought | self._taken(self._begun)
        ended, begun = self._consumer, Consumer(self._config)
        begins = self._starts.begin_again(begun, self._begun | sought)
        self._before.forget()
        # Together: the positions of the ended client are after the records read ahead, those of the new one are not.
        at_once(
            (begun.incremental_assign, [KafkaPartition(*key, at) for key, at in begins.items()]),
            (begun.pause, [KafkaPartition(*key) for key in self._paused]),
            (setattr, self.ahead, "records", iter(())),
            (setattr, self.ahead, "batches", iter(())),
            (setattr, self, "_sought", sought),
            (setattr, self, "_consumer", begun),
        )
        ended.close()
