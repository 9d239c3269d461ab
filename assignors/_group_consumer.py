"""A consumer whose group is kept by kafka-python, with any assignor, and whose records come through librdkafka."""

import contextlib
import logging
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from types import TracebackType
from typing import Any, Self

from confluent_kafka import OFFSET_INVALID, Message
from confluent_kafka import TopicPartition as KafkaPartition
from kafka.coordinator.assignors.abstract import AbstractPartitionAssignor

from assignors import _group_consumer_config as configuration
from assignors._errors import MembershipError, NotOwnedError
from assignors._group_consumer_commits import Commits, Offsets
from assignors._group_consumer_events import Kind, Rebalance, Rebalances
from assignors._group_consumer_fetching import Fetching
from assignors._group_consumer_questions import Questions
from assignors._group_member import GroupMember
from assignors._group_member_ownership import Ownership
from assignors._kafka_python import HRWAssignor
from assignors._model import TopicPartition

log = logging.getLogger(__name__)

OnChange = Callable[["GroupConsumer", list[KafkaPartition]], object]
# So long at most a rebalance waits for a program that polls.
_STEP_S = 0.05
_CLOSING_S = 0.005
_FOREVER_S = 1e9
_COMMIT_S = 20.0
_AWAKE_PART = 10


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
        self._assignors = list(assignors or [HRWAssignor(rack=rack, cooperative=True)])
        self._callbacks: dict[Kind, OnChange | None] = {}
        self._pattern = ""
        self._member: GroupMember | None = None
        self._rebalances = Rebalances(self._config.max_poll_s)
        self._fetching = Fetching(self._config.fetching)
        self._commits = Commits(None if self._config.on_commit is None else self._tell)
        self._begins: dict[TopicPartition, int] | None = None
        self._asked_at = time.monotonic()
        self._committed_at = self._asked_at
        self._stored: dict[TopicPartition, int] = {}
        self._using = threading.RLock()
        self._calling = False
        self._giving_up = False
        self._closed = False

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
        self._check_open()
        pattern = configuration.pattern_of(topics)
        with self._alone("subscribe()"):
            self._leave()
            self._callbacks = {Kind.ASSIGNED: on_assign, Kind.REVOKED: on_revoke, Kind.LOST: on_lost or on_revoke}
            self._pattern = pattern
            self._join()

    def unsubscribe(self) -> None:
        """Give everything up (`on_revoke` is called) and leave the group."""
        with self._alone("unsubscribe()"):
            self._leave()

    def _leave(self) -> None:
        member, self._member = self._member, None
        if member is None:
            return
        # Its end waits for on_revoke, which is called here.
        closing = threading.Thread(target=member.close, name="group-consumer-close", daemon=True)
        closing.start()
        # Another revocation may follow one whose callback raised, and would wait for it in vain.
        raised: list[BaseException] = []
        alive = True
        while alive:
            alive = closing.is_alive()
            try:
                self._rebalance(member)
                closing.join(_CLOSING_S)
            except BaseException as error:  # noqa: BLE001 - Ctrl-C too: raised below, when all is given up
                raised.append(error)
        if raised:
            raise raised[0]

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
        member = self._joined()
        wanted = self._wanted(message, offsets)
        if not asynchronous:
            if wanted:
                self._commits.commit(lambda these: member.commit(these, _COMMIT_S), wanted)
            return _kafka_partitions(wanted)
        if wanted:
            self._commits.start(lambda these: member.commit(these, _COMMIT_S), wanted)
        return None

    def store_offsets(self, message: Message | None = None, offsets: Iterable[KafkaPartition] | None = None) -> None:
        """Say what is done: the next automatic commit, or `commit()` without arguments, commits it.

        Raises:
            NotOwnedError: a partition is not assigned; nothing was stored.
            MembershipError: enable.auto.offset.store is not False, or neither or both arguments are given.
        """
        if self._config.auto_store:
            raise MembershipError("store_offsets() needs enable.auto.offset.store=False: what is delivered is stored")
        if message is None and offsets is None:
            raise MembershipError("store_offsets(): give a message or offsets")
        wanted = self._wanted(message, offsets)
        for topic, partition in wanted.keys() - self._fetching.partitions:
            raise NotOwnedError(f"{topic!r} partition {partition} is not assigned: nothing was stored")
        self._stored |= wanted

    def committed(self, partitions: Iterable[KafkaPartition], timeout: float = -1) -> list[KafkaPartition]:
        """What the group has committed; OFFSET_INVALID where nothing.

        Raises:
            MembershipError: the coordinator did not answer in time (-1: 20 s), or there is no subscription.
        """
        keys = [_key(one) for one in partitions]
        found = self._joined().committed(keys, _COMMIT_S if timeout < 0 else timeout)
        return _kafka_partitions({key: found.get(key, OFFSET_INVALID) for key in keys})

    def position(self, partitions: Iterable[KafkaPartition]) -> list[KafkaPartition]:
        """The offset after the last record delivered; OFFSET_INVALID where none was."""
        keys = [_key(one) for one in partitions]
        found = self._fetching.positions()
        return _kafka_partitions({key: found.get(key, OFFSET_INVALID) for key in keys})

    def assignment(self) -> list[KafkaPartition]:
        """The partitions that records are delivered of."""
        return [KafkaPartition(*key) for key in sorted(self._fetching.partitions)]

    def assign(self, partitions: Iterable[KafkaPartition]) -> None:
        """In `on_assign`: begin there. Elsewhere the group decides who reads what, and this is an error.

        Raises:
            MembershipError: called outside of on_assign.
        """
        for one in partitions:
            if self._begins is None or _key(one) not in self._begins:
                raise MembershipError(
                    f"{one.topic!r} partition {one.partition}: the group assigns; in on_assign give the offsets to "
                    "begin at, and elsewhere use seek()"
                )
            self._begins[_key(one)] = one.offset

    incremental_assign = assign

    def unassign(self) -> None:
        """In `on_revoke` (and `on_lost`): nothing is left to do, what is given up is read no more when it returns.

        Raises:
            MembershipError: called elsewhere, where the group decides.
        """
        if not self._giving_up:
            raise MembershipError("the group assigns: unassign() belongs in on_revoke, and elsewhere use pause()")

    def incremental_unassign(self, partitions: Iterable[KafkaPartition]) -> None:  # noqa: ARG002 - as confluent-kafka
        """As `unassign`."""
        self.unassign()

    def seek(self, partition: KafkaPartition) -> None:
        """Go on with this partition at its offset; in `on_assign`: begin there.

        Raises:
            MembershipError: the partition is not assigned.
        """
        if self._begins is not None and _key(partition) in self._begins:
            self._begins[_key(partition)] = partition.offset
        else:
            self._fetching.seek(_key(partition), partition.offset)

    def pause(self, partitions: Iterable[KafkaPartition]) -> None:
        """Deliver nothing of these until `resume`, or until they are given up."""
        self._fetching.pause([_key(one) for one in partitions])

    def resume(self, partitions: Iterable[KafkaPartition]) -> None:
        """Deliver them again."""
        self._fetching.resume([_key(one) for one in partitions])

    def ownership(self) -> Ownership:
        """Partitions and generation as the group has them now."""
        return Ownership() if self._member is None else self._member.ownership()

    def memberid(self) -> str:
        """The id that the broker gave; empty outside of a group."""
        return self.ownership().member_id

    def close(self) -> None:
        """Give everything up (`on_revoke` is called), leave the group, end. A second call does nothing."""
        if self._closed:
            return
        with self._alone("close()"), contextlib.ExitStack() as rest:
            rest.callback(self._fetching.close)
            rest.callback(self._report)
            rest.callback(self._commits.close)
            rest.callback(setattr, self, "_closed", True)  # noqa: FBT003
            self._leave()

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
            member = self._joined()
            self._asked_at = now = time.monotonic()
            if not found:
                self._serve(member, now)
            step_s = 0.0 if self._rebalances else max(0.0, min(_STEP_S, until - now))
            found += self._fetching.take(most - len(found), step_s, member.ownership)
            # Changes are looked at only with empty hands: a record taken here is delivered before its revocation.
            if len(found) >= most or (found and self._rebalances) or time.monotonic() >= until:
                return

    def _serve(self, member: GroupMember, now: float) -> None:
        if self._config.auto_commit_s is not None and now - self._committed_at >= self._config.auto_commit_s:
            self._committed_at = now
            self.commit()
        self._rebalance(member)
        self._report()
        if member.failed is not None:
            self._mend(member)

    def _rebalance(self, member: GroupMember) -> None:
        while (change := self._rebalances.take()) is not None:
            in_time = change.begin()
            try:
                if change.kind is Kind.ASSIGNED:
                    self._gain(change)
                else:
                    self._give_up(member, change, Kind.LOST if not in_time else change.kind)
            finally:
                change.end()
            self._asked_at = time.monotonic()

    def _gain(self, change: Rebalance) -> None:
        self._begins = begins = dict.fromkeys(change.partitions, Fetching.GROUPS)
        try:
            self._call(Kind.ASSIGNED, change.partitions)
        finally:
            # Also when it raised: the group counts them as read by this member, and nobody else would.
            self._begins = None
            self._fetching.add(begins)

    def _give_up(self, member: GroupMember, change: Rebalance, kind: Kind) -> None:
        try:
            if kind is Kind.REVOKED and self._config.auto_commit_s is not None:
                self._commit_last(member, change.partitions)
            # unsubscribe() has let go of the member, but in on_revoke the program may still commit with it.
            self._member, kept = member, self._member
            self._giving_up = True
            try:
                self._call(kind, change.partitions)
            finally:
                self._member, self._giving_up = kept, False
                self._commits.settle()
        finally:
            for key in change.partitions:
                self._stored.pop(key, None)
            self._fetching.remove(change.partitions)

    def _commit_last(self, member: GroupMember, partitions: frozenset[TopicPartition]) -> None:
        last = {key: at for key, at in self._done().items() if key in partitions}
        try:
            if last:
                self._commits.commit(lambda these: member.commit(these, _COMMIT_S), last)
        except MembershipError as error:
            log.warning("the last offsets of %d partitions were not committed: %s", len(last), error)

    def _call(self, kind: Kind, partitions: frozenset[TopicPartition]) -> None:
        callback = self._callbacks.get(kind)
        if callback is None:
            return
        self._calling = True
        try:
            callback(self, [KafkaPartition(*key) for key in sorted(partitions)])
        finally:
            self._calling = False

    def _wanted(self, message: Message | None, offsets: Iterable[KafkaPartition] | None) -> dict[TopicPartition, int]:
        if message is not None and offsets is not None:
            raise MembershipError("commit(message=..., offsets=...): give the one or the other")
        if message is not None and message.error() is not None:
            raise MembershipError(f"a message that is an error has no offset to commit: {message.error()}")
        if message is not None:
            return {(str(message.topic()), int(message.partition() or 0)): int(message.offset() or 0) + 1}
        if offsets is not None:
            return {_key(one): one.offset for one in offsets if one.offset >= 0}
        return self._done()

    def _done(self) -> dict[TopicPartition, int]:
        return self._fetching.positions() if self._config.auto_store else dict(self._stored)

    def _join(self) -> None:
        self._asked_at = time.monotonic()
        self._member = GroupMember(
            self._config.member,
            pattern=self._pattern,
            assignors=self._assignors,
            on_assigned=self._rebalances.assigned,
            on_revoked=self._rebalances.revoked,
            on_lost=self._rebalances.lost,
            callback_timeout_s=self._config.max_poll_s,
            awake=self._awake,
        ).start()

    def _awake(self) -> bool:
        return time.monotonic() - self._asked_at < self._config.max_poll_s / _AWAKE_PART

    def _mend(self, member: GroupMember) -> None:
        """Join anew where that can help."""
        self._rebalances.abandon()
        self._rebalances = Rebalances(self._config.max_poll_s)
        if self._fetching.partitions:
            self._give_up(member, Rebalance(Kind.LOST, self._fetching.partitions), Kind.LOST)
        member.close()
        if member.fatal:
            member.wait_joined(0)  # raises
        log.warning("the membership ended with %r: joining anew", member.failed)
        self._join()

    def _joined(self) -> GroupMember:
        self._check_open()
        if self._member is None:
            raise MembershipError("there is no subscription: call subscribe() first")
        return self._member

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

    def _check_open(self) -> None:
        if self._closed:
            raise MembershipError("this consumer is closed")

    def _tell(self, error: Exception | None, offsets: Offsets) -> None:
        assert self._config.on_commit is not None  # noqa: S101 - else nobody is told
        self._config.on_commit(error, _kafka_partitions(offsets))

    def _report(self) -> None:
        for error, offsets in self._commits.tell():
            log.warning("%d offsets were not committed: %s", len(offsets), error)


def _key(partition: KafkaPartition) -> TopicPartition:
    return partition.topic, partition.partition


def _kafka_partitions(offsets: Offsets) -> list[KafkaPartition]:
    return [KafkaPartition(*key, at) for key, at in offsets.items()]
