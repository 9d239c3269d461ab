"""A consumer with kafka-python's membership, and so with any assignor, and with librdkafka's fetching."""

import contextlib
import itertools
import logging
import math
import operator
import time
import weakref
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import partial
from types import TracebackType
from typing import Any, Never, Self

from confluent_kafka import KafkaError, Message
from confluent_kafka import TopicPartition as KafkaPartition
from kafka.coordinator.assignors.abstract import AbstractPartitionAssignor

from assignors.clients.received_traffic import ReceivedTraffic
from assignors.consumer import configuration
from assignors.consumer.awaited_take import AwaitedTake
from assignors.consumer.broker_queries import BrokerQueries
from assignors.consumer.call_gate import CallGate
from assignors.consumer.consumed_offsets import Progress, kafka_partitions
from assignors.consumer.consumer_errors import ArgumentError, ConsumerError
from assignors.consumer.fetching import Fetching
from assignors.consumer.lifetime import leave_when_dropped, refuse_after_fork
from assignors.consumer.offset_commits import CommitQueue, CommitTimeout, Offsets
from assignors.consumer.partition_calls import PartitionCalls
from assignors.consumer.rebalance_events import Kind
from assignors.consumer.rebalance_handling import Membership
from assignors.consumer.received_bytes import ReceivedBytes
from assignors.consumer.subscription import Subscription
from assignors.consumer.topic_errors import TopicErrors
from assignors.planner.topics_and_members import TopicPartition
from assignors.protocol.kafka_python_assignors import HRWAssignor, ShuffledRoundRobinAssignor

log = logging.getLogger(__name__)

OnChange = Callable[["GroupConsumer", list[KafkaPartition]], object]
# Longest wait for records in one step. A rebalance waits for the end of the step, so only an idle program takes longer
# ones.
_STEP_S = 0.05
_IDLE_STEP_S = 0.2
_IDLE_AFTER_S = 2.0
_FOREVER_S = 1e9
_READ_AHEAD = 500
_READ_AHEAD_BATCHES = 2_000  # more than for `poll`, whose records are used soon, from the processor's cache
_NO_WAIT = (0.0,)
_MOST_MESSAGES = 1_000_000


class GroupConsumer(BrokerQueries, PartitionCalls):
    """A consumer with confluent-kafka's interface and speed, and with custom assignors.

        with GroupConsumer({"bootstrap.servers": ..., "group.id": "ingest"}, assignors=[HRWAssignor()]) as consumer:
            consumer.subscribe(["^flights"], on_revoke=lambda one, partitions: one.commit(asynchronous=False))
            messages = consumer.consume(10_000, timeout=1.0)

    Contract:
    * As in confluent_kafka.Consumer: `poll` and `consume` call `on_assign`, `on_revoke` and `on_lost` with this
      consumer and a list of partitions; a program that does not poll for max.poll.interval.ms loses its
      partitions, and gets a message with the error _MAX_POLL_EXCEEDED; without on_lost, on_revoke is called instead.
      Other threads may call: they wait for the current step of `poll`, at most 0.2 s, and for a running callback.
    * An exception of a callback is raised by `poll` or `consume`, or by `close` at its end. The callback counts as
      returned: assigned partitions are read, revoked partitions are released.
    * The group can reassign a partition only after `on_revoke` has returned. Its commits are accepted. Records that
      were fetched and not delivered by then are dropped: the next owner reads them.
    * Fetching of a partition begins after its `on_assign` has returned: at the offset given there (`assign`,
      `incremental_assign` or `seek`), else at the group's offset, else as auto.offset.reset says.
    * Commits carry the group's generation: a member that is no longer in the group cannot commit. Asynchronous commits
      are merged while a request is in flight; `on_commit` is called for each of them.
    * enable.auto.commit commits the records that earlier calls of `poll` and `consume` delivered, never those of the
      call that commits. With enable.auto.offset.store=False, it and `commit()` without arguments commit the offsets
      passed to `store_offsets`.
    * Ctrl-C in `poll` or `consume` loses no record: the next call delivers the records already taken, and they are not
      committed before.
    * A failure of one client does not stop the other: without a coordinator, records are still delivered; after a fatal
      error of librdkafka, a new client continues at the same position. Errors of topics and partitions arrive as
      messages with an `error()`; all errors of the group are `KafkaException` and `MembershipError`.
    * After a fork the child's calls are refused. A consumer that is dropped without `close` leaves its group.
    * With group.protocol=consumer (KIP-848) the broker assigns, by group.remote.assignor: there are no `assignors`, and
      librdkafka keeps the membership. Everything else stays the same.
    * Without a subscription the program may `assign` partitions, and reads them in no group. With one only the group
      assigns, and `assign` outside of `on_assign` is an error.
    * Unlike in confluent_kafka.Consumer, an empty commit is not an error, and a commit for another member's partition
      is an error. Any iterable of partitions or names is accepted, and None as a callback. A name that is not a text,
      and a negative offset in `seek`, are errors.

    Args:
        config: librdkafka's properties, as for confluent_kafka.Consumer.
        assignors: the assignors of this member, the preferred one first; `hrw-cooperative` by default. None if the
            broker assigns.
        member: settings of kafka-python's consumer that have no equivalent in librdkafka's properties.
        logger: for librdkafka's log, as for confluent_kafka.Consumer.
        more: further properties, which replace those of `config`.

    Raises:
        ConsumerError: no servers, no group, or a property that is set in another way here.
    """

    def __init__(
        self,
        config: Mapping[str, Any] | None = None,
        *,
        assignors: Sequence[AbstractPartitionAssignor] | None = None,
        member: Mapping[str, Any] | None = None,
        logger: logging.Logger | None = None,
        **more: Any,  # noqa: ANN401 -- settings
    ) -> None:
        given = config if more and config is None else configuration.checked(config)
        self._config = configuration.read({**(given or {}), **more}, member or {})
        if self._config.broker_assigned is not None and assignors:
            raise ArgumentError("assignors=[...]: with group.protocol=consumer the broker assigns, leave them out")
        self._callbacks: dict[Kind, OnChange | None] = {}
        self._gate = CallGate()
        self._received = ReceivedBytes(self._config.fetching)
        self._fetching = Fetching(self._received.with_callback(), logger)
        self._ahead = self._fetching.ahead
        self._progress = Progress(self._fetching, auto_store=self._config.auto_store)
        self._topic_errors = TopicErrors(self._ahead.interrupt)
        self._commit_timeout = CommitTimeout()
        self._commits = CommitQueue(
            None if self._config.on_commit is None else partial(_call_on_commit, self._config.on_commit),
            self._commit_timeout,
            self._ahead.interrupt,
        )
        self._membership = Membership(
            self._config,
            assignors=_with_rack(assignors, self._config.member.get("client_rack")),
            fetching=self._fetching,
            progress=self._progress,
            commits=self._commits,
            topic_errors=self._topic_errors,
            call_program=partial(_call_program, weakref.ref(self)),
        )
        self._committed_at = self._delivered_at = time.monotonic()
        self._calling = False
        self._dropped = leave_when_dropped(self, self._membership, self._commits, self._fetching)
        refuse_after_fork(self._fetching)

    def subscribe(
        self,
        topics: Iterable[str],
        on_assign: OnChange | None = None,
        on_revoke: OnChange | None = None,
        on_lost: OnChange | None = None,
    ) -> None:
        """Join the group for these topics; a name that begins with ^ is a pattern. Replaces an earlier subscription.

        Raises:
            ConsumerError: no broker answered, the consumer is closed, or these are not names and patterns.
        """
        self._check_usable()
        subscription = Subscription.of(topics, str(self._config.fetching.get("topic.blacklist", "")))
        for name, callback in (("on_assign", on_assign), ("on_revoke", on_revoke), ("on_lost", on_lost)):
            if callback is not None and not callable(callback):
                raise ArgumentError(f"subscribe({name}={callback!r}): need a function of a consumer and partitions")
        with self._gate.turn():
            self._refuse_in_callback("subscribe()")
            self._membership.leave()
            self._callbacks = {Kind.ASSIGNED: on_assign, Kind.REVOKED: on_revoke, Kind.LOST: on_lost or on_revoke}
            self._membership.join(subscription)

    def unsubscribe(self) -> None:
        """Release all partitions (`on_revoke` is called), and leave the group."""
        self._check_usable()
        with self._gate.turn():
            self._refuse_in_callback("unsubscribe()")
            self._membership.leave()
            self._callbacks = {}

    def poll(self, timeout: float = -1) -> Message | None:
        """Return one record, or an error as a message; None if there is none in time (-1: no limit)."""
        ahead = self._ahead
        if not ahead.interrupted:
            for message in ahead.records:
                return message
        return self._poll(timeout)

    def consume(self, num_messages: int = 1, timeout: float = -1) -> list[Message]:
        """Return at most `num_messages` records; fewer if the time is up, or if partitions change."""
        ahead = self._ahead
        found: list[Message] = []
        parts: list[list[Message]] = []
        try:
            if ahead.batch_size == num_messages and not ahead.interrupted:
                for found in ahead.batches:  # as in `poll`
                    if len(found) == num_messages:
                        return found
                    break
            self._check_count(num_messages)
            if not ahead.interrupted and not found:
                found.extend(itertools.islice(ahead.records, num_messages))  # one call, as in Fetching.take
                if len(found) == num_messages > 0:
                    return found
            until = self._until("consume()", timeout)
            had, done = len(found), False
            while not done:
                had, done = self._consume_step(parts.append, had, num_messages, until)
            # A list of the client's own is returned as it is, because each access to 10,000 records costs time.
            return parts[0] if len(parts) == 1 and not found else [*found, *itertools.chain.from_iterable(parts)]
        except BaseException:
            # Ctrl-C after records were taken: the program never gets them, and close() would commit them as delivered.
            self._fetching.put_back(itertools.chain(found, *parts))
            raise

    def traffic(self) -> ReceivedTraffic:
        """Return what was received so far, by topic and zone of the broker, and its price.

        It needs `statistics.interval.ms` in the configuration, and counts at each report while the program polls. It
        may wait 6 s for the racks of brokers that were not known before.

        Raises:
            ConsumerError: librdkafka reports no statistics.
        """
        return self._received.traffic()

    def close(self) -> None:
        """Release all partitions (`on_revoke` is called), leave the group, and end. A second call has no effect.

        Without brokers it takes at most about twenty seconds: it does not wait longer for answers to commits.
        """
        if self._membership.closed or self._gate.forked:
            return
        self._commit_timeout.begin_closing()
        with self._gate.turn(), contextlib.ExitStack() as rest:
            self._refuse_in_callback("close()")
            self._ahead.interrupt()
            rest.callback(self._dropped.detach)
            rest.callback(self._fetching.raise_caught)
            rest.callback(self._fetching.close)
            rest.callback(self._report_commits)
            rest.callback(self._commits.close)
            self._membership.close()

    def __reduce__(self) -> Never:
        raise TypeError("a GroupConsumer cannot be copied or pickled: a member of a group is one object in one process")

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def _awaited_take(self, most: int, timeout: float) -> AwaitedTake:
        """Return a call of `consume` whose task may be cancelled, for `AIOGroupConsumer`.

        Raises:
            ArgumentError: `most` is not from 0 to 1,000,000.
        """
        self._check_usable()
        self._check_count(most)

        def take(found: list[Message], given_up: Callable[[], bool]) -> None:
            until, done = self._until("consume()", timeout), False
            while not done and not given_up():
                _, done = self._consume_step(found.extend, len(found), most, until)

        return AwaitedTake(self._fetching, self._gate, take)

    def _poll(self, timeout: float) -> Message | None:
        until = self._until("poll()", timeout)
        while not self._poll_step(until):
            pass
        # Between taking a record and returning it there is no interpreter step that a signal could interrupt.
        for message in self._ahead.records:
            return message
        return None

    def _poll_step(self, until: float) -> bool:
        with self._gate.turn():
            self._refuse_in_callback("poll()")
            now = time.monotonic()
            self._serve(now)
            self._ahead.join_batches()
            self._read_ahead(now)
            if not self._ahead.left():
                self._fetching.read_ahead(1, self._waits_s(now, until), self._membership.owned)
            if self._ahead.left():
                self._delivered_at = now
                return True
            self._fetching.raise_caught()
            return time.monotonic() >= until

    def _consume_step(
        self, add: Callable[[list[Message]], object], had: int, most: int, until: float
    ) -> tuple[int, bool]:
        """Add a list of records to the `had` ones of the call; return how many it has, and whether it is complete.

        The list is added in the step itself: a signal at its end would lose what it returns.
        """
        with self._gate.turn():
            self._refuse_in_callback("consume()")
            if had and self._membership.closed:  # close() in another thread committed these as delivered
                return had, True
            now = time.monotonic()
            # Rebalances are handled only before records are taken: a record is delivered before its revocation.
            if not had:
                self._serve(now)
            self._read_ahead(now, most, had)
            found = self._ahead.next_batch() if not had and self._ahead.batch_size == most else []
            if found or (found := self._fetching.take(most - had, self._waits_s(now, until), self._membership.owned)):
                add(found)
                self._delivered_at = now
            had += len(found)
            if not had:
                self._fetching.raise_caught()
            other_work = bool(had) and (self._membership.changes or self._fetching.caught)
            return had, had >= most or other_work or time.monotonic() >= until

    def _read_ahead(self, now: float, most: int = 1, had: int = 0) -> None:
        """Fetch many available records at once, for this call and later ones that need the same number."""
        if self._idle(now) or self._ahead.left():
            return
        count = _READ_AHEAD_BATCHES // most if most > 1 and not had else 0
        if count > 1:  # one batch is no more than the call itself fetches
            self._fetching.read_batches(most, count, self._membership.owned)
        elif most - had < _READ_AHEAD:
            self._fetching.read_ahead(_READ_AHEAD, _NO_WAIT, self._membership.owned)

    def _waits_s(self, now: float, until: float) -> Iterator[float]:
        """Yield the waits of the steps, until the time is up, or this or another thread has work.

        An idle program runs only these steps, so they wake up only 5 times a second.
        """
        self._ahead.polled()
        if self._config.auto_commit_s is not None and self._committed_at + self._config.auto_commit_s > now:
            until = min(until, self._committed_at + self._config.auto_commit_s)
        yield 0.0 if self._membership.changes else self._step_s(now, until)
        while (now := time.monotonic()) < until and not (self._ahead.interrupted or self._gate.waited_for):
            self._ahead.polled()
            yield self._step_s(now, until)

    def _step_s(self, now: float, until: float) -> float:
        longest_s = _IDLE_STEP_S if self._idle(now) else _STEP_S
        # librdkafka drops a part of a millisecond: the last one would pass in hundreds of waits of no time.
        return math.ceil(1000 * max(0.0, min(longest_s, until - now))) / 1000

    def _idle(self, now: float) -> bool:
        return now - self._delivered_at > _IDLE_AFTER_S

    def _serve(self, now: float) -> None:
        self._membership.check_open()
        if self._membership.member is None:
            return
        late_s = self._ahead.idle_s() - self._config.max_poll_s
        if late_s > 0 and not self._membership.by_hand:
            self._topic_errors.add(_poll_exceeded(self._config.max_poll_s, late_s))
        self._ahead.polled()
        if self._config.auto_commit_s is not None and now - self._committed_at >= self._config.auto_commit_s:
            self._committed_at = now
            self._membership.commit_progress()
        if self._ahead.interrupted:
            self._serve_interruption()

    def _serve_interruption(self) -> None:
        """Handle all requests of other threads, then raise the error of a callback if there is one."""
        self._ahead.interrupted = False  # cleared before the reasons are checked, so a later reason sets it again
        try:
            self._membership.rebalance()
            self._report_commits()
            self._membership.rejoin_if_ended()
        except BaseException:
            self._ahead.interrupt()  # the next call does the rest
            raise
        self._fetching.check_ahead(self._membership.owned())
        if errors := self._topic_errors.take():
            self._ahead.put_first(errors)
        self._fetching.raise_caught()

    def _call_program(self, kind: Kind, partitions: frozenset[TopicPartition]) -> None:
        callback = self._callbacks.get(kind)
        if callback is None:
            return
        self._calling = True
        try:
            callback(self, [KafkaPartition(*key) for key in sorted(partitions)])
        finally:
            self._calling = False

    def _refuse_in_callback(self, call: str) -> None:
        if self._calling:
            raise ConsumerError(f"{call} in a callback, whose return it would wait for: call it after that")

    def _report_commits(self) -> None:
        for error, offsets in self._commits.report():
            log.warning("%d offsets were not committed: %s", len(offsets), error)

    def _until(self, call: str, timeout: float) -> float:
        if timeout >= 0:
            return time.monotonic() + timeout
        self._check_usable()
        if self._membership.member is None:
            raise ConsumerError(f"{call} without a timeout would wait forever: call subscribe() first")
        return time.monotonic() + _FOREVER_S

    def _check_count(self, num_messages: int) -> None:
        if not 0 <= operator.index(num_messages) <= _MOST_MESSAGES:
            self._check_usable()  # a closed consumer is the first error to report
            raise ArgumentError(f"consume({num_messages!r}): need 0 to 1000000 messages")

    def _check_usable(self) -> None:
        self._gate.check_process()
        self._membership.check_open()


def _poll_exceeded(limit_s: float, late_s: float) -> Message:
    text = f"Application maximum poll interval ({limit_s * 1000:.0f}ms) exceeded by {late_s * 1000:.0f}ms"
    code = KafkaError._MAX_POLL_EXCEEDED  # noqa: SLF001 -- librdkafka's own code
    return Message(value=text.encode(), error=KafkaError(code, text))


def _call_program(of: "weakref.ref[GroupConsumer]", kind: Kind, partitions: frozenset[TopicPartition]) -> None:
    if (consumer := of()) is not None:
        consumer._call_program(kind, partitions)  # noqa: SLF001 -- this module's own


def _call_on_commit(
    on_commit: Callable[[ConsumerError | None, list[KafkaPartition]], object],
    error: ConsumerError | None,
    offsets: Offsets,
) -> None:
    on_commit(error, kafka_partitions(offsets))


def _with_rack(assignors: Sequence[AbstractPartitionAssignor] | None, rack: Any) -> list[AbstractPartitionAssignor]:  # noqa: ANN401 -- a setting
    if assignors is not None and (isinstance(assignors, str) or not isinstance(assignors, Sequence)):
        raise ArgumentError(f"assignors={assignors!r}: need a list, as [HRWAssignor()]")
    found = list(assignors or [HRWAssignor(cooperative=True)])
    for one in found:
        if not (isinstance(one, AbstractPartitionAssignor) or callable(one)):  # kafka-python also takes classes
            raise ArgumentError(f"assignors=[{one!r}]: need assignors, as [HRWAssignor()]")
    if rack:
        for one in found:
            if isinstance(one, HRWAssignor | ShuffledRoundRobinAssignor):
                one.use_rack(str(rack))
    return found
