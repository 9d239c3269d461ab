"""A consumer with kafka-python's membership, and so with any assignor, and with librdkafka's fetching."""

import itertools
import logging
import operator
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from types import TracebackType
from typing import Any, Never, Self

from confluent_kafka import Message
from kafka.coordinator.assignors.abstract import AbstractPartitionAssignor

from assignors.clients.received_traffic import ReceivedTraffic
from assignors.consumer import split_configuration
from assignors.consumer.broker_queries import BrokerQueries
from assignors.consumer.cancelled_reads import AwaitedTake
from assignors.consumer.chosen_assignors import assignors_with_rack
from assignors.consumer.client_callbacks import OwnedCallbacks
from assignors.consumer.commit_queue import CommitQueue, CommitTimeout
from assignors.consumer.consumed_offsets import Progress, kafka_partitions
from assignors.consumer.consumer_errors import ArgumentError, ClosedConsumerError, ConsumerError
from assignors.consumer.dropped_or_forked import leave_when_dropped, lifetime, refuse_after_fork
from assignors.consumer.error_messages import TopicErrors
from assignors.consumer.fetching import Fetching
from assignors.consumer.group_statistics import GroupStatistics
from assignors.consumer.interruptions import PendingSteps
from assignors.consumer.one_thread_at_a_time import CallGate
from assignors.consumer.partition_calls import PartitionCalls
from assignors.consumer.program_callbacks import OnChange, ProgramCallbacks, check_callbacks
from assignors.consumer.rebalance_handling import Membership
from assignors.consumer.received_bytes import ReceivedBytes
from assignors.consumer.record_steps import RecordSteps
from assignors.consumer.subscription import Subscription
from assignors.settings.mistyped_names import proposal

_FOREVER_S = 1e9
_MOST_MESSAGES = 1_000_000
_ARGUMENTS = ("assignors", "config", "logger", "member")


class GroupConsumer(BrokerQueries, PartitionCalls):
    """A consumer with confluent-kafka's interface and speed, and with custom assignors.

        with GroupConsumer({"bootstrap.servers": ..., "group.id": "ingest"}, assignors=[HRWAssignor()]) as consumer:
            consumer.subscribe(["^flights"], on_revoke=lambda one, partitions: one.commit(asynchronous=False))
            messages = consumer.consume(10_000, timeout=1.0)

    docs/how-to/group-consumer.md describes the differences from confluent_kafka.Consumer, here called a bare consumer.

    Contract:
    * As in a bare consumer: `poll` and `consume` call `on_assign`, `on_revoke` and `on_lost` with this
      consumer and a list of partitions; a program that does not poll for max.poll.interval.ms loses its
      partitions, and gets a message with the error _MAX_POLL_EXCEEDED; without on_lost, on_revoke is called instead.
      Other threads may call: they wait for the current step of `poll`, at most 0.3 s, and for a running callback.
    * An exception of a callback is raised by `poll` or `consume`, or by `close` at its end. The callback counts as
      returned: assigned partitions are read, revoked partitions are released.
    * In `on_assign`, `on_revoke` and `on_lost`, calls that would wait for the callback's return are refused: `poll`,
      `consume`, `subscribe`, `unsubscribe` and `close`; so is `assign` in `on_revoke` and `on_lost`. In a bare
      consumer some of these calls run one callback inside another, and others hang, at once or in `close`.
    * error_cb, stats_cb, throttle_cb and the logger are called after librdkafka's call in which they came, and may make
      any call. While there are records that were fetched ahead, there is such a call about every 3 s. In a bare
      consumer a callback that calls `list_topics` or `poll` ends the process if another callback follows at once. A
      callback that raises loses a record there, and `close` may then not return.
    * The group can reassign a partition only after `on_revoke` has returned. Its commits are accepted. Records that
      were fetched and not delivered by then are dropped: the next owner reads them.
    * Fetching of a partition begins after its `on_assign` has returned: at the offset given there (`assign`,
      `incremental_assign` or `seek`), otherwise at the group's offset, or without one as auto.offset.reset says.
    * Commits carry the group's generation: a member that is no longer in the group cannot commit. Asynchronous commits
      are merged while a request is in flight; `on_commit` is called for each of them.
    * enable.auto.commit commits the records that earlier calls of `poll` and `consume` delivered, never those of the
      call that commits. With enable.auto.offset.store=False, it and `commit()` without arguments commit the offsets
      passed to `store_offsets`.
    * Ctrl-C in `poll` or `consume` loses no record: the next call delivers the records already taken, and they are not
      committed before. A partition that begins at its end has no position before its first record, and may lose
      records that arrive during this call.
    * Ctrl-C during a rebalance, `unsubscribe` or `close` skips nothing: the next call does the rest, and each callback
      is called once. Ctrl-C inside a callback ends the callback, which counts as returned.
    * A failure of one client does not stop the other: without a coordinator, records are still delivered; after a fatal
      error of librdkafka, a new client continues at the same position. Errors of topics and partitions arrive as
      messages with an `error()`.
    * Errors that this class raises are both a `KafkaException` and a `MembershipError`. Errors that confluent-kafka
      raises are not changed: in `list_topics`, `offsets_for_times`, `get_watermark_offsets` and `cluster_id`, without a
      subscription in `commit` and `committed`, for an unknown property, for a callback that is not a function.
    * After a fork the child's calls are refused. A consumer that is dropped without `close` leaves its group.
    * With group.protocol=consumer (KIP-848) the broker assigns, by group.remote.assignor: there are no `assignors`, and
      librdkafka keeps the membership. The logger is also called in that member's threads. The rest stays the same.
    * Without a subscription the program may `assign` partitions, and reads them in no group. With a subscription the
      group assigns partitions to this member. `assign`, `incremental_assign`, `unassign` and `incremental_unassign`
      choose which of these are read, in `on_assign` and later. In `on_assign` a refused call is a choice, too: if no
      accepted call follows, none of its partitions is read.
    * Unlike in a bare consumer, a synchronous commit of nothing is not an error, and a commit for another member's
      partition is an error, as is its `assign`. `assign` and `incremental_assign` are accepted in each protocol. Any
      iterable of partitions or names is accepted, and None as a callback. A name that is not a text, and a negative
      offset in `seek`, are errors.
    * `subscribe` and `unsubscribe` end an earlier subscription at once: they call `on_revoke`, and a new subscription
      begins at the committed offsets. If `on_revoke` raises, they raise its error, and nothing is subscribed.

    Args:
        config: librdkafka's properties, as for confluent_kafka.Consumer.
        assignors: the assignors of this member, the preferred one first; `hrw-cooperative` by default. None if the
            broker assigns.
        member: settings of kafka-python's consumer that have no equivalent in librdkafka's properties.
        logger: for librdkafka's log, as for confluent_kafka.Consumer.
        more: further properties, which replace those of `config`.

    Raises:
        ConsumerError: no servers, no group, a logger without `log`, an invalid value, or a property that is set in
            another way here.
        KafkaException, TypeError, ValueError: confluent-kafka refuses a property or a callback.
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
        if self._is_initialized:  # else the first member would stay in the group, without a program
            raise RuntimeError("this consumer is initialized already")
        _refuse_misspelt(more)
        given = config if more and config is None else split_configuration.checked(config)
        of_client = {} if logger is None else {"logger": logger}
        self._callbacks = OwnedCallbacks({**(given or {}), **more, **of_client})
        self._config = split_configuration.read(self._callbacks.weakly(), member or {})
        if self._config.broker_assigned is not None and assignors:
            raise ArgumentError("assignors=[...]: with group.protocol=consumer the broker assigns, leave them out")
        self._program = ProgramCallbacks(self)
        self._gate = CallGate()
        self._received = ReceivedBytes(self._config.fetching)
        self._fetching = Fetching(self._received.with_callback())
        self._ahead = self._fetching.ahead
        self._progress = Progress(self._fetching, auto_store=self._config.auto_store)
        topic_errors = TopicErrors(self._ahead.interrupt)
        self._commit_timeout = CommitTimeout()
        self._commits = CommitQueue(
            self._config.on_commit, self._commit_timeout, self._ahead.interrupt, kafka_partitions
        )
        self._membership = Membership(
            self._config,
            assignors=assignors_with_rack(assignors, self._config.member.get("client_rack")),
            fetching=self._fetching,
            progress=self._progress,
            commits=self._commits,
            topic_errors=topic_errors,
            call_program=self._program.weakly(),
            running=self._program.running,
        )
        self._received.complete = GroupStatistics(
            self._fetching,
            self._progress,
            self._commits,
            self._membership,
            str(self._config.fetching.get("isolation.level", "read_committed")),
        ).complete
        self._steps = RecordSteps(
            self._config,
            gate=self._gate,
            fetching=self._fetching,
            membership=self._membership,
            topic_errors=topic_errors,
            commits=self._commits,
            callbacks=self._program,
        )
        self._closing: PendingSteps | None = None
        self._quick = self._steps.quick.take
        self._lifetime = lifetime()
        self._dropped = leave_when_dropped(self._lifetime, self._membership, self._commits, self._fetching)
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
        check_callbacks(on_assign=on_assign, on_revoke=on_revoke, on_lost=on_lost)
        with self._gate.turn():
            self._program.refuse("subscribe()")
            self._membership.leave()
            self._program.set(on_assign, on_revoke, on_lost)
            self._membership.join(subscription)

    def unsubscribe(self) -> None:
        """Release all partitions (`on_revoke` is called), and leave the group."""
        self._check_usable()
        with self._gate.turn():
            self._program.refuse("unsubscribe()")
            self._membership.leave(also_static=True)
            self._program.set(None, None, None)

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
        now = 0.0
        try:
            # The type, because 15.0 == 15 and only a whole number is accepted.
            if ahead.batch_size == num_messages and type(num_messages) is int and not ahead.interrupted:
                for found in ahead.batches:  # as in `poll`
                    if len(found) == num_messages:
                        return found
                    break
                else:
                    now = time.monotonic()
                    for found in map(self._quick, (timeout,), (now,)):  # as in `poll`
                        if len(found) == num_messages:
                            return found
            self._check_count(num_messages)
            if not ahead.interrupted and not found:
                found.extend(itertools.islice(ahead.records, num_messages))  # one call, as in Fetching.take
                if len(found) == num_messages > 0:
                    return found
            until = self._until("consume()", timeout, now or time.monotonic())
            had, done = len(found), False
            while not done:
                had, done = self._steps.consume(parts.append, had, num_messages, until)
            found = _joined(found, parts)
        except BaseException:
            # If Ctrl-C comes after records were taken, the program never gets them, and close() would commit them.
            self._put_back([found, *parts])
            raise
        return found

    def traffic(self) -> ReceivedTraffic:
        """Return what was received so far, by topic and zone of the broker, and its price.

        It needs `statistics.interval.ms` in the configuration, and counts at each report while the program polls. It
        may wait 6 s for the racks of brokers that were not known before.

        Raises:
            ConsumerError: librdkafka reports no statistics.
        """
        return self._received.traffic()

    @property
    def _is_initialized(self) -> bool:
        return "_closing" in self.__dict__

    def __getattr__(self, name: str) -> Never:
        """Refuse the calls of a subclass whose `__init__` does not call this class's: it counts as closed."""
        if name.startswith("_") and not name.startswith("__") and not self._is_initialized:
            raise ClosedConsumerError("this consumer is not initialized: call super().__init__(config)")
        raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}", name=name, obj=self)

    def close(self) -> None:
        """Release all partitions (`on_revoke` is called), leave the group, and end. A second call has no effect.

        If no broker answers, it returns after about 20 s, or 30 s with group.protocol=consumer; the last offsets are
        then not committed. If Ctrl-C interrupts it, call it again: the second call does what is left.

        Raises:
            ConsumerError: called in `on_assign`, `on_revoke` or `on_lost`; or a client hangs: the member has not left
                within 90 s, or a commit has not ended within 40 s. `close` does all the rest before it raises this.
            Exception: the first error of a callback, when everything is closed.
        """
        if not self._is_initialized or self._gate.forked or (self._closing is not None and not self._closing):
            return
        with self._gate.turn():
            self._program.refuse("close()")
            self._ahead.interrupt()
            if self._closing is None:
                self._program.hold(self)
                self._membership.call_program_with(self._program.call)
                self._commit_timeout.begin_closing()
                self._closing = PendingSteps(
                    [
                        self._membership.close,
                        self._commits.close,
                        self._steps.report_last_commits,
                        self._fetching.close,
                        self._fetching.callbacks.raise_caught,
                        self._dropped.detach,
                        self._program.let_go,
                    ]
                )
            self._closing.finish()

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
            until, done = self._until("consume()", timeout, time.monotonic()), False
            while not done:
                _, done = self._steps.consume(found.extend, len(found), most, until, given_up)

        return AwaitedTake(self._fetching, self._gate, take)

    def _poll(self, timeout: float) -> Message | None:
        until = self._until("poll()", timeout, time.monotonic())
        while not self._steps.poll(until):
            pass
        # Between taking a record and returning it there is no interpreter step that a signal could interrupt.
        for message in self._ahead.records:
            return message
        return None

    def _put_back(self, parts: Iterable[list[Message]]) -> None:
        if records := list(itertools.chain(*parts)):
            self._fetching.in_hand.leave(records)  # the next step returns them if Ctrl-C comes again here
            with self._gate.turn():
                self._fetching.redeliver_left()

    def _until(self, call: str, timeout: float, now: float) -> float:
        if timeout >= 0:
            return now + float(timeout)  # of a Decimal, too
        self._check_usable()
        if self._membership.member is None:
            raise ConsumerError(f"{call} without a timeout would wait forever: call subscribe() first")
        return now + _FOREVER_S

    def _check_count(self, num_messages: int) -> None:
        if not 0 <= operator.index(num_messages) <= _MOST_MESSAGES:
            self._check_usable()  # a closed consumer is the first error to report
            raise ArgumentError(f"consume({num_messages!r}): need 0 to 1000000 messages")

    def _check_usable(self) -> None:
        self._gate.check_process()
        self._membership.check_open()


def _joined(found: list[Message], parts: list[list[Message]]) -> list[Message]:
    """Return all records in the first list itself, because each access to 10,000 records costs time."""
    first, *others = [found, *parts] if found or not parts else parts
    for part in others:
        first += part
    return first


def _refuse_misspelt(more: Mapping[str, Any]) -> None:
    """Refuse `assignor=[...]`, which would otherwise be a property that librdkafka does not know."""
    for name in more:
        if "." not in name and (proposed := proposal(name, _ARGUMENTS)) is not None:
            raise ArgumentError(f"{name}=...: GroupConsumer has no such argument; {proposed}")
