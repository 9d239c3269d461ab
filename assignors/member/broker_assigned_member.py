"""Membership in a KIP-848 group, whose broker assigns the partitions: through librdkafka, without fetching."""

import logging
import struct
import threading
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Final, Self, TypeVar

from confluent_kafka import Consumer, KafkaError, KafkaException, Message
from confluent_kafka import TopicPartition as KafkaPartition

from assignors.clients.log_offsets import Offset, OffsetWithMetadata
from assignors.errors import MembershipError
from assignors.member.broker_assigned_callbacks import ServedCallbacks
from assignors.member.broker_assigned_errors import (
    broker_error,
    is_fatal,
    is_missing_right,
    is_of_group,
    is_taken_id,
    membership_error,
    taken_id_message,
)
from assignors.member.broker_assigned_offsets import BrokerAssignedOffsets, with_metadata
from assignors.member.callback_thread import Callback, CallbackThread
from assignors.member.first_answer import wait_for_broker
from assignors.member.librdkafka_numbers import milliseconds
from assignors.member.on_assigned_once import AnnouncedPartitions
from assignors.member.ownership import Ownership, OwnershipCell
from assignors.member.thread_calls import ThreadCalls
from assignors.planner.topics_and_members import TopicPartition

log = logging.getLogger(__name__)
T = TypeVar("T")

# No record is wanted: partitions are paused as soon as they are assigned, and the queue has the smallest size.
_NO_FETCHING: Final[Mapping[str, object]] = {
    "enable.auto.commit": False,
    "enable.auto.offset.store": False,
    "auto.offset.reset": "latest",
    "enable.partition.eof": False,
    "queued.max.messages.kbytes": 1,
    "queued.min.messages": 1,
}
_MAX_POLL_MS: Final = 300_000  # librdkafka's default
_STEP_S: Final = 0.1
_CLOSING_S: Final = 20.0  # as a commit in the classic protocol
_LEAVING_S: Final = 6.0  # librdkafka waits 5 s for the answer to its last heartbeat
_SETTLED_S: Final = 1.0  # the broker sends an assignment with the first heartbeat's answer, or has none for now
_REFUSED_S: Final = 1.0  # a new member is also refused until the previous member's session has expired
_METADATA_HEAD: Final = struct.Struct("<7si")  # "CGMDv2:" and the generation, which is the member epoch here


class BrokerAssignedMember:
    """A member of a KIP-848 group that fetches nothing.

    Contract: that of `GroupMember`, with these differences.
    * The broker's assignor decides, so no assignor is passed.
    * The generation of an ownership is this member's epoch.
    * Partitions are assigned and revoked step by step, and the group never stops as a whole, so `joined` stays true in
      a rebalance.

    Args:
        config: librdkafka's properties, with `group.protocol` `consumer`.
        topics: names, and patterns that begin with ^; a pattern is a regular expression of RE2 for whole names.
        on_assigned: called with assigned partitions; it must not wait.
        on_revoked: called with revoked partitions; the group waits for its return, at most max.poll.interval.ms.
        on_lost: called when other members may own the partitions already.
        awake: called before each step. While it returns False, no rebalance is handled; after max.poll.interval.ms
            librdkafka leaves the group, and joins again when it returns True.
        on_change: called after each change of the ownership or of `failed`, in any thread; it must not wait.
        on_error: called with each error of a topic or of the group that librdkafka reports, as a message.
        waits_for_rights: whether the member tries again while it may not know the group's coordinator, as librdkafka
            does; librdkafka ends each member that knows it and may not join.
        reports_empty: call `on_assigned` with no partitions, too, whenever librdkafka does.

    Raises:
        MembershipError: librdkafka refuses a property.
    """

    def __init__(  # noqa: PLR0913 - each is named at the call
        self,
        config: Mapping[str, Any],
        *,
        topics: Sequence[str],
        on_assigned: Callback | None = None,
        on_revoked: Callback | None = None,
        on_lost: Callback | None = None,
        awake: Callable[[], bool] = lambda: True,
        on_change: Callable[[], object] = lambda: None,
        on_error: Callable[[Message], object] = lambda _: None,
        waits_for_rights: bool = False,
        reports_empty: bool = False,
    ) -> None:
        self.__group = str(config["group.id"])
        self.__topics = list(topics)
        self.__assignor = config.get("group.remote.assignor")
        self.__max_poll_s = milliseconds(config.get("max.poll.interval.ms"), _MAX_POLL_MS) / 1000
        self.__on_revoked = on_revoked
        self.__on_lost = on_lost or on_revoked
        self.__awake = awake
        self.__on_error = on_error
        self.__waits_for_rights = waits_for_rights
        self.__cell = OwnershipCell(on_change)
        self.__ended = threading.Event()
        self.__calls = ThreadCalls()
        self.__joined_at: float | None = None
        try:
            self.__consumer = Consumer({**config, **_NO_FETCHING, "error_cb": self.__see_error})
        except (KafkaException, TypeError, ValueError) as error:
            raise membership_error(error, self.__group, self.__topics, self.__assignor) from error
        self.__metadata: bytes = self.__consumer.consumer_group_metadata()  # also before the first heartbeat
        self.__offsets = BrokerAssignedOffsets(self.__consumer, self.__cell, self.__group)
        self.__callbacks = CallbackThread(f"group-callbacks-{self.__group}")
        self.__served = ServedCallbacks(self.__callbacks, self.__calls)
        self.__announced = AnnouncedPartitions(
            self.__callbacks, on_assigned=on_assigned, on_lost=self.__on_lost, reports_empty=reports_empty
        )
        self.__thread = threading.Thread(target=self.__run, name=f"group-member-{self.__group}", daemon=True)

    def start(self, timeout_s: float = 30.0) -> Self:
        """Connect, and join in the background. A second call has no effect.

        Raises:
            MembershipError: no broker answered in time, or the subscription is invalid.
        """
        if self.__thread.ident is not None:
            return self
        try:
            wait_for_broker(self.__consumer, timeout_s)
            self.__consumer.subscribe(
                self.__topics, on_assign=self.__assigned, on_revoke=self.__revoked, on_lost=self.__lost
            )
        except KafkaException as error:
            self.__consumer.close()
            self.__callbacks.end()
            raise membership_error(error, self.__group, self.__topics, self.__assignor) from error
        self.__thread.start()
        return self

    def close(self) -> None:
        """Release all partitions (`on_revoked` is called), leave the group, and end. A second call has no effect.

        Without an answer of the coordinator it ends after 20 s, or 6 s after a callback that took longer. Partitions
        that are not revoked by then are lost (`on_lost` is called).

        Raises:
            MembershipError: called in a callback, for which it would wait; or the coordinator does not answer, and a
                callback has not returned for max.poll.interval.ms.
        """
        if self.__callbacks.here() or threading.current_thread() is self.__thread:
            raise MembershipError("close() was called in a callback, whose return it waits for: call it elsewhere")
        self.__ended.set()
        if self.__thread.is_alive():
            self.__join_thread()
        elif self.__thread.ident is None:  # not started
            self.__consumer.close()
            self.__callbacks.end()

    def __join_thread(self) -> None:
        """Wait for the thread's end; without brokers librdkafka can keep it for minutes, in a commit or in its close().

        The thread is then left alone, and ends when librdkafka returns.
        """
        until = time.monotonic() + _CLOSING_S
        while self.__thread.is_alive():
            self.__thread.join(_STEP_S)
            if time.monotonic() > until and self.__served.idle_s > _LEAVING_S:
                log.warning("group %r: the coordinator does not answer; not waiting for the member's end", self.__group)
                self.__cell.change(lambda now: now.outside())
                returned = threading.Event()
                self.__announced.abandon(returned.set)
                limit_s = self.__max_poll_s + _LEAVING_S  # the group does not wait longer for a callback
                if not returned.wait(limit_s):
                    raise MembershipError(
                        f"group {self.__group!r}: a callback has not returned for {limit_s:g} s, and close() does not "
                        "wait longer: the member has left the group, or its session expires"
                    )
                return

    def __enter__(self) -> Self:
        return self.start()

    def __exit__(self, *_: object) -> None:
        self.close()

    @property
    def ends(self) -> bool:
        """Whether it closes or has failed: it need not answer requests for offsets any more."""
        return self.__ended.is_set() or self.__cell.failed is not None

    @property
    def fatal(self) -> bool:
        """Whether a new member would fail, too: missing rights, wrong settings, or a newer member with its id."""
        error = self.__cell.failed
        return isinstance(error, KafkaException) and is_fatal(error.args[0])

    @property
    def failed(self) -> BaseException | None:
        """The error that ended the membership, None while it continues."""
        return self.__cell.failed

    def ownership(self) -> Ownership:
        """Return the current ownership; never waits."""
        return self.__cell.value

    def wait_joined(self, timeout_s: float) -> Ownership:
        """Wait until the broker has assigned partitions, or has none for this member.

        Raises:
            MembershipError: the broker has not answered in time, or the membership ended.
        """
        found = self.__cell.wait(lambda now: now.joined, timeout_s)
        if found is None:
            self.__raise_failed()
            raise MembershipError(f"group {self.__group!r}: not joined after {timeout_s:g} s")
        return found

    def commit(self, offsets: Mapping[TopicPartition, Offset], timeout_s: float = 10.0) -> None:
        """Commit the next offset of each partition under this member's epoch, and wait for the answer.

        Raises:
            NotOwnedError: a partition is not owned; nothing was committed.
            FencedError: the group continued without this member.
            MembershipError: the coordinator did not answer in time, or refused.
        """
        self.__raise_failed()
        if offsets:
            self.__ask(lambda: self.__offsets.commit(offsets), timeout_s)

    def committed(self, partitions: Iterable[TopicPartition], timeout_s: float = 10.0) -> dict[TopicPartition, int]:
        """Return the group's committed offsets, without partitions that have none.

        Raises:
            MembershipError: the coordinator did not answer in time, or refused.
        """
        return {key: at.offset for key, at in self.committed_with_metadata(partitions, timeout_s).items()}

    def committed_with_metadata(
        self, partitions: Iterable[TopicPartition], timeout_s: float = 10.0
    ) -> dict[TopicPartition, OffsetWithMetadata]:
        """Like `committed`, with the metadata of each offset; raises the same errors."""
        return with_metadata(self.committed_by_partition(partitions, timeout_s))

    def committed_by_partition(
        self, partitions: Iterable[TopicPartition], timeout_s: float = 10.0
    ) -> list[KafkaPartition]:
        """Like `committed`, in the order of the partitions, each with its own error."""
        self.__raise_failed()
        asked = list(partitions)
        if self.__ended.is_set():  # while it closes, librdkafka lets each request for offsets time out
            raise MembershipError(f"no offsets of group {self.__group!r}: its member closes") from TimeoutError()
        return self.__ask(lambda: self.__offsets.committed(asked, timeout_s), timeout_s + _STEP_S)

    def group_metadata(self) -> bytes:
        """Return the argument of `Producer.send_offsets_to_transaction`, with the current epoch and member id."""
        self.__raise_failed()
        return self.__metadata

    def set_sasl_credentials(self, username: str, password: str) -> None:
        """Use these credentials for all later connections."""
        self.__ask(lambda: self.__consumer.set_sasl_credentials(username, password), _STEP_S * 10)

    def __run(self) -> None:
        try:
            self.__steps()
        except Exception as error:
            log.exception("group %r: the membership ends", self.__group)
            self.__cell.fail(error)
        finally:
            try:
                self.__consumer.close()  # calls on_revoked
            except (KafkaException, RuntimeError) as error:
                log.warning("group %r: the member left with an error: %s", self.__group, error)
            self.__cell.change(lambda now: now.outside())
            self.__calls.end()
            self.__announced.end()  # librdkafka's close() may not have revoked all

    def __steps(self) -> None:
        polled_at = time.monotonic()
        while not self.__ended.is_set():
            self.__calls.serve()
            if self.__awake():
                late = time.monotonic() - polled_at > self.__max_poll_s
                left = self.__step()
                polled_at = time.monotonic()
                if late and not left and (kept := _keys(self.__consumer.assignment())):
                    self.__announce(kept)
                continue
            self.__ended.wait(_STEP_S)
            if time.monotonic() - polled_at > self.__max_poll_s:
                self.__oversleep()

    def __oversleep(self) -> None:
        """Give up all partitions: librdkafka is leaving the group, and reports it in the next poll at the latest.

        If that poll came before librdkafka left, it still has them, and they are announced again.
        """
        self.__cell.change(lambda now: now.outside())
        self.__announced.lose()

    def __announce(self, keys: frozenset[TopicPartition]) -> None:
        epoch = self.__epoch()
        self.__announced.add(keys, lambda new: self.__cell.change(lambda now: now.plus(new, epoch)))

    def __step(self) -> bool:
        """Poll once; return whether librdkafka has left the group, because the last poll was too long ago."""
        try:
            message = self.__consumer.poll(_STEP_S)
        except KafkaException as refused:
            self.__end(refused)
            return False
        except Exception:  # a callback of the program: it counts as returned
            log.exception("group %r: a callback failed", self.__group)
            return False
        error = None if message is None else message.error()
        if message is not None and error is not None:
            self.__see_error(error)
            if message.topic() is not None or is_of_group(error):
                self.__on_error(message)
        if self.__cell.failed is None:
            self.__see_epoch()
        return error is not None and error.code() == KafkaError._MAX_POLL_EXCEEDED  # noqa: SLF001 -- librdkafka's own code

    def __see_error(self, error: KafkaError) -> None:
        log.debug("group %r: %s", self.__group, error)
        if self.__waits_for_rights and is_missing_right(error):
            return
        cause = broker_error(error)
        if error.fatal() or is_fatal(error) or is_fatal(cause):
            self.__end(KafkaException(cause))

    def __see_epoch(self) -> None:
        """Take over the epoch and the member id, which change without a callback."""
        epoch = self.__epoch()
        if epoch <= 0:  # epoch 0 is a request to join
            self.__joined_at = None
            return
        now = time.monotonic()
        self.__joined_at = self.__joined_at or now
        owned = self.__cell.value
        joined = bool(owned.joined or owned.partitions or now - self.__joined_at > _SETTLED_S)
        if (owned.generation, owned.joined) != (epoch, joined):
            member_id = str(self.__consumer.memberid() or "")
            self.__cell.change(lambda was: was.standing(generation=epoch, member_id=member_id, joined=joined))

    def __epoch(self) -> int:
        self.__metadata = self.__consumer.consumer_group_metadata()
        _, epoch = _METADATA_HEAD.unpack_from(self.__metadata)
        return int(epoch)

    def __assigned(self, consumer: Consumer, partitions: list[KafkaPartition]) -> None:
        keys = _keys(partitions)
        # A number as the offset, so that librdkafka asks for none.
        consumer.incremental_assign([KafkaPartition(*key, 0) for key in keys])
        consumer.pause([KafkaPartition(*key) for key in keys])
        self.__see_epoch()  # the program may ask for the member's id in on_assigned
        self.__announce(keys)

    def __revoked(self, consumer: Consumer, partitions: list[KafkaPartition]) -> None:
        keys = self.__announced.take(_keys(partitions))
        self.__call(self.__on_revoked, keys)
        # Unlike in the classic protocol, no join follows: the other partitions stay as they are.
        self.__cell.change(
            lambda now: now.minus(keys).standing(generation=now.generation, member_id=now.member_id, joined=now.joined)
        )
        consumer.incremental_unassign(partitions)

    def __lost(self, consumer: Consumer, partitions: list[KafkaPartition]) -> None:
        keys = self.__announced.take(_keys(partitions))
        self.__joined_at = None
        self.__cell.change(lambda now: now.outside())
        self.__call(self.__on_lost, keys)
        consumer.incremental_unassign(partitions)

    def __call(self, callback: Callback | None, keys: frozenset[TopicPartition]) -> None:
        """Call a callback, and serve requests while it runs: the program may commit the partitions that it loses."""
        if callback is not None and keys:
            self.__served.call(callback, keys)

    def __ask(self, call: Callable[[], T], timeout_s: float) -> T:
        def checked() -> T:
            try:
                return call()
            except RuntimeError as error:
                raise MembershipError(f"no member of group {self.__group!r}: it is closed") from error

        return self.__calls.ask(checked, timeout_s)

    def __end(self, error: KafkaException) -> None:
        if self.__cell.failed is not None:
            return
        if is_taken_id(error.args[0]):
            self.__on_error(taken_id_message())
            self.__ended.wait(_REFUSED_S)
        self.__cell.fail(error)
        self.__ended.set()
        self.__announced.lose()

    def __raise_failed(self) -> None:
        if (error := self.__cell.failed) is not None:
            raise membership_error(error, self.__group, self.__topics, self.__assignor) from error


def _keys(partitions: Iterable[KafkaPartition]) -> frozenset[TopicPartition]:
    return frozenset((one.topic, one.partition) for one in partitions)
