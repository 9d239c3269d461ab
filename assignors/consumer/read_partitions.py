"""The partitions that librdkafka's consumer reads, and the place in each at which the program is."""

import logging
from collections.abc import Collection, Iterable, Mapping
from typing import Any, Final

from confluent_kafka import OFFSET_INVALID, OFFSET_STORED, Consumer, KafkaError, Message
from confluent_kafka import TopicPartition as KafkaPartition

from assignors.clients.log_offsets import Offset, OffsetWithMetadata
from assignors.consumer.client_callbacks import ClientCallbacks
from assignors.consumer.consumer_errors import ConsumerError, code_of_unread
from assignors.consumer.interruptions import at_once
from assignors.consumer.logical_offsets import check_start
from assignors.consumer.positions_before_call import PositionsBefore
from assignors.consumer.read_ahead import ReadAhead, first_offsets, key_of_message
from assignors.consumer.records_in_hand import RecordsInHand, least_offsets
from assignors.consumer.resolved_starts import ResolvedStarts
from assignors.consumer.stored_offsets import StoredOffsets
from assignors.member.ownership import Ownership
from assignors.planner.topics_and_members import TopicPartition

log = logging.getLogger(__name__)


class ReadPartitions:
    """Librdkafka's consumer, and the partitions that it reads.

    Contract:
    * Not safe for threads.
    * After `remove`, records of these partitions that were fetched before are not delivered. librdkafka itself drops
      queued records: each partition has a version, which grows with each removal, and older records are dropped.
    * After a fatal error a new client replaces the old one, and continues after the last delivered record.
    * Records `in_hand` have left `ahead`, but the program may not get them: `positions` is before them,
      and `remove`, `seek` and `close` drop them.
    * Records that left librdkafka in an interrupted call are delivered again, by the next step or change of the
      partitions.

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
