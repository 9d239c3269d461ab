"""A consumer whose group is kept by kafka-python, with any assignor, and whose records come through librdkafka."""

import contextlib
import logging
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import partial
from types import TracebackType
from typing import Any, Self

from confluent_kafka import Message
from confluent_kafka import TopicPartition as KafkaPartition
from kafka.coordinator.assignors.abstract import AbstractPartitionAssignor

from assignors.consumer import configuration
from assignors.consumer.broker_queries import Questions
from assignors.consumer.consumed_offsets import Progress, kafka_partitions, key_of
from assignors.consumer.fetching import Fetching
from assignors.consumer.ordered_commits import Commits, Offsets
from assignors.consumer.rebalance_events import Kind
from assignors.consumer.rebalance_handling import COMMIT_S, Membership
from assignors.errors import MembershipError
from assignors.planner.topics_and_members import TopicPartition
from assignors.protocol.kafka_python_assignors import HRWAssignor

log = logging.getLogger(__name__)

OnChange = Callable[["GroupConsumer", list[KafkaPartition]], object]
# So long at most a rebalance waits for a program that polls.
_STEP_S = 0.05
_FOREVER_S = 1e9


class GroupConsumer(Questions):
    """A consumer with confluent-kafka's interface and speed, and with assignors of one's own.

        with GroupConsumer({"bootstrap.servers": ..., "group.id": "ingest"}, assignors=[HRWAssignor()]) as consumer:
            consumer.subscribe(["^flights"], on_revoke=lambda one, partitions: one.commit(asynchronous=False))
            messages = consumer.consume(10_000, timeout=1.0)

    Contract:
    * As in confluent_kafka.Consumer: one thread uses it; `on_assign`, `on_revoke` and `on_lost` are called in `poll`
      and `consume`, with this consumer and a list of partitions; a program that asks for nothing for
      max.poll.interval.ms loses its partitions; on_revoke stands in for a missing on_lost. A second thread is refused.
    * What a callback raises comes out of `poll` or `consume`, and of `close` when that is done; the callback counts as
      returned: partitions gained are read, partitions given up are not.
    * A partition is given up in the group only when `on_revoke` has returned. What it commits is accepted, and what
      was fetched and not delivered by then never is: the next owner reads it.
    * Fetching of a partition begins when its `on_assign` has returned: at the offset it was given there (`assign`,
      `incremental_assign` or `seek`), else at the group's, else where auto.offset.reset says.
    * Commits carry the group's generation: a member that the group went on without commits nothing.
    * enable.auto.commit commits what earlier calls of `poll` and `consume` delivered, never what this one does. With
      enable.auto.offset.store=False it, and a plain `commit()`, commit what `store_offsets` was given.
    * Ctrl-C in `poll` or `consume` loses nothing: records in hand are delivered by the next call, and not committed.
    * A failure of one client leaves the other at work: while no coordinator answers records are delivered, and when
      librdkafka ends, it is started again where it was. Errors of partitions come as messages with an `error()`.
    * Not offered: `consumer_group_metadata` (librdkafka is in no group, and only it can make one, so offsets cannot be
      committed in a producer's transaction) and reading without a group by `assign`.

    Args:
        config: librdkafka's properties, as for confluent_kafka.Consumer.
        assignors: what this member offers, the preferred one first; `hrw-cooperative` by default.
        member: settings of kafka-python's consumer for what cannot be said in librdkafka's properties.

    Raises:
        MembershipError: no servers, no group, or a property that is said differently here.
    """

    def __init__(
        self,
        config: Mapping[str, Any],
        *,
        assignors: Sequence[AbstractPartitionAssignor] | None = None,
        member: Mapping[str, Any] | None = None,
    ) -> None:
        self._config = configuration.read(config, member or {})
        rack = self._config.member.get("client_rack")
        self._callbacks: dict[Kind, OnChange | None] = {}
        self._fetching = Fetching(self._config.fetching)
        self._progress = Progress(self._fetching, auto_store=self._config.auto_store)
        self._commits = Commits(None if self._config.on_commit is None else self._tell)
        self._membership = Membership(
            self._config,
            assignors=list(assignors or [HRWAssignor(rack=rack, cooperative=True)]),
            fetching=self._fetching,
            progress=self._progress,
            commits=self._commits,
            tell=self._call,
        )
        self._committed_at = time.monotonic()
        self._using = threading.RLock()
        self._calling = False

    def subscribe(
        self,
        topics: Iterable[str],
        on_assign: OnChange | None = None,
        on_revoke: OnChange | None = None,
        on_lost: OnChange | None = None,
    ) -> None:
        """Join the group for these topics; a name that begins with ^ is a pattern. Replaces an earlier subscription.

        Raises:
            MembershipError: no broker answered, the consumer is closed, or these are no names and patterns.
        """
        self._membership.check_open()
        pattern = configuration.pattern_of(topics)
        with self._alone("subscribe()"):
            self._membership.leave()
            self._callbacks = {Kind.ASSIGNED: on_assign, Kind.REVOKED: on_revoke, Kind.LOST: on_lost or on_revoke}
            self._membership.join(pattern)

    def unsubscribe(self) -> None:
        """Give everything up (`on_revoke` is called) and leave the group."""
        with self._alone("unsubscribe()"):
            self._membership.leave()

    def poll(self, timeout: float = -1) -> Message | None:
        """One record, or an error of a partition as a message; None when there is none in time (-1: no limit)."""
        found = self._take(1, timeout)
        return found[0] if found else None

    def consume(self, num_messages: int = 1, timeout: float = -1) -> list[Message]:
        """So many records at most; fewer when the time is up, or when partitions come or go."""
        return self._take(num_messages, timeout)

    def commit(
        self,
        message: Message | None = None,
        offsets: Iterable[KafkaPartition] | None = None,
        asynchronous: bool = True,  # noqa: FBT001, FBT002 - as confluent-kafka has it
    ) -> list[KafkaPartition] | None:
        """Commit the offset after a record, these offsets, or what was delivered of all partitions.

        Returns:
            What was committed; None where asynchronous, `on_commit` of the configuration is then told.

        Raises:
            NotOwnedError: a partition is not this member's; nothing was committed (synchronous only).
            FencedError: the group went on without this member (synchronous only).
            MembershipError: the coordinator did not answer in time, there is no subscription, or the message is an
                error.
        """
        how = partial(self._membership.joined().commit, timeout_s=COMMIT_S)
        wanted = self._progress.named(message, offsets)
        if not asynchronous:
            if wanted:
                self._commits.commit(how, wanted)
            return kafka_partitions(wanted)
        if wanted:
            self._commits.start(how, wanted)
        return None

    def store_offsets(self, message: Message | None = None, offsets: Iterable[KafkaPartition] | None = None) -> None:
        """Say what is done: the next automatic commit, or `commit()` without arguments, commits it.

        Raises:
            NotOwnedError: a partition is not assigned; nothing was stored.
            MembershipError: enable.auto.offset.store is not False, or neither or both arguments are given.
        """
        self._progress.store(message, offsets)

    def assign(self, partitions: Iterable[KafkaPartition]) -> None:
        """In `on_assign`: begin there. Elsewhere the group decides who reads what, and this is an error.

        Raises:
            MembershipError: called outside of on_assign.
        """
        for one in partitions:
            if not self._membership.begin_at(key_of(one), one.offset):
                raise MembershipError(
                    f"{one.topic!r} partition {one.partition}: the group assigns; in on_assign give the offsets to "
                    "begin at, and elsewhere use seek()"
                )

    incremental_assign = assign

    def unassign(self) -> None:
        """In `on_revoke` (and `on_lost`): nothing is left to do, what is given up is read no more when it returns.

        Raises:
            MembershipError: called elsewhere, where the group decides.
        """
        if not self._membership.giving_up:
            raise MembershipError("the group assigns: unassign() belongs in on_revoke, and elsewhere use pause()")

    def incremental_unassign(self, partitions: Iterable[KafkaPartition]) -> None:  # noqa: ARG002 - as confluent-kafka
        """As `unassign`."""
        self.unassign()

    def seek(self, partition: KafkaPartition) -> None:
        """Go on with this partition at its offset; in `on_assign`: begin there.

        Raises:
            MembershipError: the partition is not assigned.
        """
        if not self._membership.begin_at(key_of(partition), partition.offset):
            self._fetching.seek(key_of(partition), partition.offset)

    def pause(self, partitions: Iterable[KafkaPartition]) -> None:
        """Deliver nothing of these until `resume`, or until they are given up; in `on_assign` too."""
        self._membership.pause([key_of(one) for one in partitions])

    def resume(self, partitions: Iterable[KafkaPartition]) -> None:
        """Deliver them again."""
        self._membership.resume([key_of(one) for one in partitions])

    def close(self) -> None:
        """Give everything up (`on_revoke` is called), leave the group, end. A second call does nothing."""
        if self._membership.closed:
            return
        with self._alone("close()"), contextlib.ExitStack() as rest:
            rest.callback(self._fetching.close)
            rest.callback(self._report)
            rest.callback(self._commits.close)
            self._membership.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def _take(self, most: int, timeout_s: float) -> list[Message]:
        found: list[Message] = []
        with self._alone("poll() and consume()"):
            try:
                self._fill(found, most, time.monotonic() + (_FOREVER_S if timeout_s < 0 else timeout_s))
            except BaseException:
                # Ctrl-C with records in hand, which nobody gets now: close() would commit them as delivered.
                self._fetching.put_back(found)
                raise
        return found

    def _fill(self, found: list[Message], most: int, until: float) -> None:
        while True:
            member = self._membership.joined()
            self._membership.polled()
            now = time.monotonic()
            if not found:
                self._serve(now)
            step_s = 0.0 if self._membership.changes else max(0.0, min(_STEP_S, until - now))
            found += self._fetching.take(most - len(found), step_s, member.ownership)
            # Changes are looked at only with empty hands: a record taken here is delivered before its revocation.
            if len(found) >= most or (found and self._membership.changes) or time.monotonic() >= until:
                return

    def _serve(self, now: float) -> None:
        if self._config.auto_commit_s is not None and now - self._committed_at >= self._config.auto_commit_s:
            self._committed_at = now
            self.commit()
        self._membership.rebalance()
        self._report()
        self._membership.mend()

    def _call(self, kind: Kind, partitions: frozenset[TopicPartition]) -> None:
        callback = self._callbacks.get(kind)
        if callback is None:
            return
        self._calling = True
        try:
            callback(self, [KafkaPartition(*key) for key in sorted(partitions)])
        finally:
            self._calling = False

    @contextlib.contextmanager
    def _alone(self, call: str) -> Iterator[None]:
        if not self._using.acquire(blocking=False):
            raise MembershipError(f"{call} while another thread uses this consumer: let one thread do both")
        try:
            if self._calling:
                raise MembershipError(f"{call} in a callback: its return is waited for, call it after that")
            yield
        finally:
            self._using.release()

    def _tell(self, error: Exception | None, offsets: Offsets) -> None:
        assert self._config.on_commit is not None  # noqa: S101 - else nobody is told
        self._config.on_commit(error, kafka_partitions(offsets))

    def _report(self) -> None:
        for error, offsets in self._commits.tell():
            log.warning("%d offsets were not committed: %s", len(offsets), error)
