"""A consumer with kafka-python's membership, and so with any assignor, and with librdkafka's fetching."""

import itertools
import logging
import time
from collections.abc import Iterable, Mapping, Sequence
from types import TracebackType
from typing import Any, Final, Never, Self

from confluent_kafka import Message
from kafka.coordinator.assignors.abstract import AbstractPartitionAssignor

from assignors.clients.received_traffic import ReceivedTraffic
from assignors.consumer import split_configuration
from assignors.consumer.broker_queries import BrokerQueries
from assignors.consumer.consumer_errors import ArgumentError, ClosedConsumerError
from assignors.consumer.consumer_parts import ConsumerParts
from assignors.consumer.partition_calls import PartitionCalls
from assignors.consumer.program_callbacks import OnChange, check_callbacks
from assignors.consumer.subscription import Subscription
from assignors.settings.mistyped_names import proposal

_PARTS: Final = "_kafka_azimuth"
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
        if _is_initialized(self):  # else the first member would stay in the group, without a program
            raise RuntimeError("this consumer is initialized already")
        _refuse_misspelt(more)
        given = config if more and config is None else split_configuration.checked(config)
        of_client = {} if logger is None else {"logger": logger}
        parts = ConsumerParts(self, {**(given or {}), **more, **of_client}, assignors=assignors, member=member or {})
        object.__setattr__(self, _PARTS, parts)  # a subclass may have a `__setattr__` for its own attributes

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
        parts = self._kafka_azimuth
        parts.check_usable()
        subscription = Subscription.of(topics, str(parts.config.fetching.get("topic.blacklist") or ""))
        check_callbacks(on_assign=on_assign, on_revoke=on_revoke, on_lost=on_lost)
        with parts.gate.turn():
            parts.check_usable()
            parts.program.refuse("subscribe()")
            # The broker gives a static member that returns its old assignment, whatever it subscribes to now.
            parts.membership.leave(also_static=subscription != parts.membership.subscription)
            parts.program.set(on_assign, on_revoke, on_lost)
            parts.membership.join(subscription)

    def unsubscribe(self) -> None:
        """Release all partitions (`on_revoke` is called), and leave the group."""
        parts = self._kafka_azimuth
        parts.check_usable()
        with parts.gate.turn():
            parts.check_usable()
            parts.program.refuse("unsubscribe()")
            parts.membership.leave(also_static=True)
            parts.program.set(None, None, None)

    def poll(self, timeout: float = -1) -> Message | None:
        """Return one record, or an error as a message; None if there is none in time (-1: no limit)."""
        parts = self._kafka_azimuth
        ahead = parts.ahead
        if not ahead.interrupted:
            for message in ahead.records:
                return message
        until = parts.until("poll()", timeout, time.monotonic())
        while not parts.steps.poll(until):
            pass
        # Between taking a record and returning it there is no interpreter step that a signal could interrupt.
        for message in ahead.records:
            return message
        return None

    def consume(self, num_messages: int = 1, timeout: float = -1) -> list[Message]:
        """Return at most `num_messages` records; fewer if the time is up, or if partitions change."""
        parts = self._kafka_azimuth
        ahead = parts.ahead
        found: list[Message] = []
        lists: list[list[Message]] = []
        now = 0.0
        try:
            # The type, because 15.0 == 15 and only a whole number is accepted. It is asked first: a handler of a signal
            # may consume another number at a call, and there is none between the comparison and the loop.
            if type(num_messages) is int and ahead.batch_size == num_messages and not ahead.interrupted:
                for found in ahead.batches:  # noqa: B007 -- one list, as in `poll`
                    break
                if len(found) != num_messages:
                    now = time.monotonic()
                    (found,) = map(parts.quick, (found,), (num_messages,), (timeout,), (now,))  # as in `poll`
                if len(found) == num_messages:
                    return found
            parts.check_count(num_messages)
            if not ahead.interrupted and not found:
                found.extend(itertools.islice(ahead.records, num_messages))  # one call, as in Fetching.take
                if len(found) == num_messages > 0:
                    return found
            until = parts.until("consume()", timeout, now or time.monotonic())
            had, done = len(found), False
            while not done:
                had, done = parts.steps.consume(lists.append, had, num_messages, until)
            found = _joined(found, lists)
        except BaseException:
            # If Ctrl-C comes after records were taken, the program never gets them, and close() would commit them.
            ahead.interrupted = True
            parts.left.extend((found, *lists) if found or lists else ())
            parts.redeliver_left()
            raise
        return found

    def traffic(self) -> ReceivedTraffic:
        """Return what was received so far, by topic and zone of the broker, and its price.

        It needs `statistics.interval.ms` in the configuration, and counts at each report while the program polls. It
        may wait 6 s for the racks of brokers that were not known before.

        Raises:
            ConsumerError: librdkafka reports no statistics.
        """
        return self._kafka_azimuth.received.traffic()

    def __getattr__(self, name: str) -> Never:
        """Refuse the calls of a subclass whose `__init__` does not call this class's: it counts as closed."""
        if name == _PARTS:
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
        if not _is_initialized(self) or self._kafka_azimuth.gate.forked or self._kafka_azimuth.closed:
            return
        self._kafka_azimuth.close(self)

    def __reduce__(self) -> Never:
        raise TypeError("a GroupConsumer cannot be copied or pickled: a member of a group is one object in one process")

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        GroupConsumer.close(self)  # as in a bare consumer, whose block does not call a subclass's `close`


def _is_initialized(consumer: GroupConsumer) -> bool:
    return _PARTS in consumer.__dict__


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
