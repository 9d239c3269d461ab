"""The thread of a KIP-848 member: polls librdkafka, and passes its assignments on."""

import logging
import struct
import threading
import time
from collections.abc import Callable, Iterable, Mapping
from typing import Any, Final, TypeVar

from confluent_kafka import Consumer, KafkaError, KafkaException, Message
from confluent_kafka import TopicPartition as KafkaPartition

from assignors.clients.librdkafka_values import text, whole_number
from assignors.errors import MembershipError
from assignors.member.broker_assigned_callbacks import ServedCallbacks
from assignors.member.broker_assigned_errors import (
    broker_error,
    is_fatal,
    is_missing_right,
    is_of_group,
    is_taken_id,
    taken_id_message,
)
from assignors.member.callback_thread import Callback, CallbackThread
from assignors.member.first_answer import wait_for_broker
from assignors.member.on_assigned_once import AnnouncedPartitions
from assignors.member.ownership import OwnershipCell
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
STEP_S: Final = 0.1
"""Longest time in which the thread answers no call, seconds."""
_CLOSING_S: Final = 20.0  # as a commit in the classic protocol
_LEAVING_S: Final = 6.0  # librdkafka waits 5 s for the answer to its last heartbeat
_SETTLED_S: Final = 1.0  # the broker sends an assignment with the first heartbeat's answer, or has none for now
_REFUSED_S: Final = 1.0  # a new member is also refused until the previous member's session has expired
_METADATA_HEAD: Final = struct.Struct("<7si")  # "CGMDv2:" and the generation, which is the member epoch here


class BrokerAssignedThread:
    """Polls librdkafka, which keeps the membership, and writes the state of the member to the cell.

    Only this thread uses the client after the start; `ask` lets others make calls through it.

    Args:
        config: librdkafka's properties.
        cell: written to after each step.
        on_assigned: this and all that follow: as in `BrokerAssignedMember`.
        on_revoked: called with revoked partitions.
        on_lost: called with lost partitions.
        awake: called before each step.
        on_error: called with errors of a topic or of the group.
        waits_for_rights: whether a missing right for the group does not end the membership.
        reports_empty: call `on_assigned` with no partitions, too.

    Attributes:
        consumer: librdkafka's client.
        metadata: the argument of `Producer.send_offsets_to_transaction`, with the current epoch and member id.

    Raises:
        KafkaException: librdkafka refuses a property.
        TypeError: as KafkaException.
        ValueError: as KafkaException.
    """

    def __init__(  # noqa: PLR0913 - the arguments of the member, passed on
        self,
        config: Mapping[str, Any],
        cell: OwnershipCell,
        *,
        on_assigned: Callback | None,
        on_revoked: Callback | None,
        on_lost: Callback | None,
        awake: Callable[[], bool],
        on_error: Callable[[Message], object],
        waits_for_rights: bool,
        reports_empty: bool,
    ) -> None:
        self._group = text(config["group.id"])
        self._max_poll_s = whole_number(config.get("max.poll.interval.ms"), _MAX_POLL_MS) / 1000
        self._cell = cell
        self._on_revoked = on_revoked
        self._on_lost = on_lost or on_revoked
        self._awake = awake
        self._on_error = on_error
        self._waits_for_rights = waits_for_rights
        self._ended = threading.Event()
        self._calls = ThreadCalls()
        self._joined_at: float | None = None
        self.consumer = Consumer({**config, **_NO_FETCHING, "error_cb": self._see_error})
        self.metadata: bytes = self.consumer.consumer_group_metadata()  # also before the first heartbeat
        self._callbacks = CallbackThread(f"group-callbacks-{self._group}")
        self._served = ServedCallbacks(self._callbacks, self._calls)
        self._announced = AnnouncedPartitions(
            self._callbacks, on_assigned=on_assigned, on_lost=self._on_lost, reports_empty=reports_empty
        )
        self._thread = threading.Thread(target=self._run, name=f"group-member-{self._group}", daemon=True)

    @property
    def started(self) -> bool:
        """Whether it was started."""
        return self._thread.ident is not None

    @property
    def ends(self) -> bool:
        """Whether it has ended, or will after its step."""
        return self._ended.is_set()

    def start(self, topics: list[str], timeout_s: float) -> None:
        """Wait for a broker, then join in the background.

        Raises:
            KafkaException: no broker answered in time, or the subscription is invalid; the client is closed.
        """
        try:
            wait_for_broker(self.consumer, timeout_s)
            self.consumer.subscribe(topics, on_assign=self._assigned, on_revoke=self._revoked, on_lost=self._lost)
        except KafkaException:
            self._release()
            raise
        self._thread.start()

    def end(self) -> None:
        """Leave the group, and wait for it, as `BrokerAssignedMember.close` says.

        Raises:
            MembershipError: called in a callback or in this thread; or a callback does not return.
        """
        if self._callbacks.here() or threading.current_thread() is self._thread:
            raise MembershipError("close() was called in a callback, whose return it waits for: call it elsewhere")
        self._ended.set()
        if self._thread.is_alive():
            self._join()
        elif not self.started:
            self._release()

    def ask(self, call: Callable[[], T], timeout_s: float) -> T:
        """Return the result of a call that the thread makes, or raise its error.

        Raises:
            MembershipError: the call has no result in time, or the client is closed.
        """

        def checked() -> T:
            try:
                return call()
            except RuntimeError as error:
                raise MembershipError(f"no member of group {self._group!r}: it is closed") from error

        return self._calls.ask(checked, timeout_s)

    def _release(self) -> None:
        self.consumer.close()
        self._callbacks.end()

    def _join(self) -> None:
        """Wait until the thread has ended.

        Without brokers librdkafka can keep it for minutes, in a commit or in its close(). It is then left alone, and
        ends when librdkafka returns.
        """
        until = time.monotonic() + _CLOSING_S
        while self._thread.is_alive():
            self._thread.join(STEP_S)
            if time.monotonic() > until and self._served.idle_s > _LEAVING_S:
                log.warning("group %r: the coordinator does not answer; not waiting for the member's end", self._group)
                self._cell.change(lambda now: now.outside())
                returned = threading.Event()
                self._announced.abandon(returned.set)
                limit_s = self._max_poll_s + _LEAVING_S  # the group does not wait longer for a callback
                if not returned.wait(limit_s):
                    raise MembershipError(
                        f"group {self._group!r}: a callback has not returned for {limit_s:g} s, and close() does not "
                        "wait longer: the member has left the group, or its session expires"
                    )
                return

    def _run(self) -> None:
        try:
            self._steps()
        except Exception as error:
            log.exception("group %r: the membership ends", self._group)
            self._cell.fail(error)
        finally:
            try:
                self.consumer.close()  # calls on_revoked
            except (KafkaException, RuntimeError) as error:
                log.warning("group %r: the member left with an error: %s", self._group, error)
            self._cell.change(lambda now: now.outside())
            self._calls.end()
            self._announced.end()  # librdkafka's close() may not have revoked all

    def _steps(self) -> None:
        polled_at = time.monotonic()
        while not self._ended.is_set():
            self._calls.serve()
            if self._awake():
                late = time.monotonic() - polled_at > self._max_poll_s
                left = self._step()
                polled_at = time.monotonic()
                if late and not left and (kept := _keys(self.consumer.assignment())):
                    self._announce(kept)
                continue
            self._ended.wait(STEP_S)
            if time.monotonic() - polled_at > self._max_poll_s:
                self._oversleep()

    def _oversleep(self) -> None:
        """Give up all partitions: librdkafka is leaving the group, and reports it in the next poll at the latest.

        If that poll came before librdkafka left, it still has them, and they are announced again.
        """
        self._cell.change(lambda now: now.outside())
        self._announced.lose()

    def _announce(self, keys: frozenset[TopicPartition]) -> None:
        epoch = self._epoch()
        self._announced.add(keys, lambda new: self._cell.change(lambda now: now.plus(new, epoch)))

    def _step(self) -> bool:
        """Poll once; return whether librdkafka has left the group, because the last poll was too long ago."""
        try:
            message = self.consumer.poll(STEP_S)
        except KafkaException as refused:
            self._fail(refused)
            return False
        except Exception:  # a callback of the program: it counts as returned
            log.exception("group %r: a callback failed", self._group)
            return False
        error = None if message is None else message.error()
        if message is not None and error is not None:
            self._see_error(error)
            if message.topic() is not None or is_of_group(error):
                self._on_error(message)
        if self._cell.failed is None:
            self._see_epoch()
        return error is not None and error.code() == KafkaError._MAX_POLL_EXCEEDED  # noqa: SLF001 -- librdkafka's own code

    def _see_error(self, error: KafkaError) -> None:
        log.debug("group %r: %s", self._group, error)
        if self._waits_for_rights and is_missing_right(error):
            return
        cause = broker_error(error)
        if error.fatal() or is_fatal(error) or is_fatal(cause):
            self._fail(KafkaException(cause))

    def _see_epoch(self) -> None:
        """Take over the epoch and the member id, which change without a callback."""
        epoch = self._epoch()
        if epoch <= 0:  # epoch 0 is a request to join
            self._joined_at = None
            return
        now = time.monotonic()
        self._joined_at = self._joined_at or now
        owned = self._cell.value
        joined = bool(owned.joined or owned.partitions or now - self._joined_at > _SETTLED_S)
        if (owned.generation, owned.joined) != (epoch, joined):
            member_id = str(self.consumer.memberid() or "")
            self._cell.change(lambda was: was.standing(generation=epoch, member_id=member_id, joined=joined))

    def _epoch(self) -> int:
        self.metadata = self.consumer.consumer_group_metadata()
        _, epoch = _METADATA_HEAD.unpack_from(self.metadata)
        return int(epoch)

    def _assigned(self, consumer: Consumer, partitions: list[KafkaPartition]) -> None:
        keys = _keys(partitions)
        # A number as the offset, so that librdkafka asks for none.
        consumer.incremental_assign([KafkaPartition(*key, 0) for key in keys])
        consumer.pause([KafkaPartition(*key) for key in keys])
        self._see_epoch()  # the program may ask for the member's id in on_assigned
        self._announce(keys)

    def _revoked(self, consumer: Consumer, partitions: list[KafkaPartition]) -> None:
        keys = self._announced.take(_keys(partitions))
        self._call(self._on_revoked, keys)
        # Unlike in the classic protocol, no join follows: the other partitions stay as they are.
        self._cell.change(
            lambda now: now.minus(keys).standing(generation=now.generation, member_id=now.member_id, joined=now.joined)
        )
        consumer.incremental_unassign(partitions)

    def _lost(self, consumer: Consumer, partitions: list[KafkaPartition]) -> None:
        keys = self._announced.take(_keys(partitions))
        self._joined_at = None
        self._cell.change(lambda now: now.outside())
        self._call(self._on_lost, keys)
        consumer.incremental_unassign(partitions)

    def _call(self, callback: Callback | None, keys: frozenset[TopicPartition]) -> None:
        """Call a callback, and serve requests while it runs: the program may commit the partitions that it loses."""
        if callback is not None and keys:
            self._served.call(callback, keys)

    def _fail(self, error: KafkaException) -> None:
        if self._cell.failed is not None:
            return
        if is_taken_id(error.args[0]):
            self._on_error(taken_id_message())
            self._ended.wait(_REFUSED_S)
        self._cell.fail(error)
        self._ended.set()
        self._announced.lose()


def _keys(partitions: Iterable[KafkaPartition]) -> frozenset[TopicPartition]:
    return frozenset((one.topic, one.partition) for one in partitions)
