"""A consumer's membership: the member, and its rebalances, handled in the program's poll."""

import contextlib
import logging
import math
import threading
from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any, Final

from kafka.coordinator.assignors.abstract import AbstractPartitionAssignor

from assignors.consumer.assign_choice import AssignChoice, check_assigned
from assignors.consumer.configuration import Configuration
from assignors.consumer.consumed_offsets import Progress
from assignors.consumer.consumer_errors import ClosedConsumerError, ConsumerError, consumer_error
from assignors.consumer.fetching import Fetching
from assignors.consumer.manual_assignment import ManualAssignment
from assignors.consumer.offset_commits import CommitQueue
from assignors.consumer.program_awake import ProgramAwake
from assignors.consumer.rebalance_events import Kind, Rebalance, Rebalances
from assignors.consumer.subscription import Subscription
from assignors.consumer.topic_errors import TopicErrors
from assignors.errors import MembershipError
from assignors.member.broker_assigned_member import BrokerAssignedMember
from assignors.member.group_member import GroupMember
from assignors.member.ownership import Ownership
from assignors.planner.topics_and_members import TopicPartition

log = logging.getLogger(__name__)

_COMMITTED_S: Final = 5.0
_CLOSING_STEP_S: Final = 0.005
_QUIET_S: Final = 3.0
_LEAST_QUIET_S: Final = 0.2  # a shorter commit interval would keep an idle member busy
_NOTHING: Final = Ownership()

Member = GroupMember | BrokerAssignedMember | ManualAssignment
CallProgram = Callable[[Kind, frozenset[TopicPartition]], object]


class Membership:
    """One member at a time, and the effects of its rebalances on fetching and commits.

    Contract:
    * Used by one thread at a time. The member's own threads only queue changes; `rebalance` and `leave` handle them,
      and `records.interrupted` signals that there is a change to handle.
    * Fetching of assigned partitions begins when the program's callback has returned: of those that it chose there, by
      default of all. The member keeps the others, and the program may read them later.
    * Revoked partitions are fetched and owned, and may be committed, until the callback has returned and all commits
      are answered. This also holds if a callback raises; its error is raised here.
    * While the program does not poll, the member joins no rebalance, and leaves after max.poll.interval.ms.

    Args:
        config: configuration of the consumer.
        assignors: the assignors that each member offers.
        fetching: assigned partitions are added to it, revoked ones removed.
        progress: the offsets to commit for revoked partitions, if the program commits automatically.
        commits: all are answered before a partition is released.
        topic_errors: gets the existing topics.
        call_program: calls the program's callback.
    """

    def __init__(  # noqa: PLR0913 -- the parts of a consumer, each named at the call
        self,
        config: Configuration,
        *,
        assignors: Sequence[AbstractPartitionAssignor],
        fetching: Fetching,
        progress: Progress,
        commits: CommitQueue,
        topic_errors: TopicErrors,
        call_program: CallProgram,
    ) -> None:
        self._config = config
        self._assignors = assignors
        self._fetching = fetching
        self._progress = progress
        self._commits = commits
        self._topic_errors = topic_errors
        self._call_program = call_program
        self._subscription = Subscription((), ())
        self._rebalances = Rebalances(config.max_poll_s, fetching.ahead.interrupt)
        self._held: dict[TopicPartition, int] = {}  # passed to on_assign and not released, with the offset given there
        self.choice: AssignChoice | None = None
        self._paused: set[TopicPartition] = set()  # of the partitions that are about to begin
        self._credentials: dict[str, str] = {}
        self._librdkafka_credentials: dict[str, str] = {}
        self.member: Member | None = None
        self.giving_up = False
        self.closed = False

    def join(self, subscription: Subscription) -> None:
        """Join for these topics.

        Raises:
            ConsumerError: no broker answered.
        """
        self._subscription = subscription
        self._topic_errors.subscribe(subscription)
        self._fetching.ahead.polled()
        broker_assigned = self._config.broker_assigned
        try:
            member = self._member_of_classic() if broker_assigned is None else self._member_of_broker(broker_assigned)
            self.member = member.start()
        except MembershipError as error:
            raise consumer_error(error) from error

    def _member_of_classic(self) -> GroupMember:
        return GroupMember(
            {**self._config.member, **self._credentials},
            **self._subscription.for_member(),
            assignors=self._assignors,
            on_assigned=self._rebalances.assigned,
            on_revoked=self._rebalances.revoked,
            on_lost=self._rebalances.lost,
            callback_timeout_s=self._config.max_poll_s,
            awake=ProgramAwake(self._fetching, self._config),
            on_change=self._fetching.ahead.interrupt,
            on_topics=self._topic_errors.update,
            quiet_s=self._quiet_s(),
        )

    def _quiet_s(self) -> float:
        commit_s = self._config.auto_commit_s
        if not commit_s:
            return _QUIET_S
        return max(_LEAST_QUIET_S, commit_s / math.ceil(commit_s / _QUIET_S))  # ProgramAwake is the clock of commits

    def _member_of_broker(self, config: Mapping[str, Any]) -> BrokerAssignedMember:
        return BrokerAssignedMember(
            {**config, **self._librdkafka_credentials},
            topics=self._subscription.for_broker(),
            on_assigned=self._rebalances.assigned,
            on_revoked=self._rebalances.revoked,
            on_lost=self._rebalances.lost,
            awake=ProgramAwake(self._fetching, self._config),
            on_change=self._fetching.ahead.interrupt,
            on_error=self._topic_errors.add,
        )

    def leave(self) -> None:
        """Release all partitions and leave the group; raise the first error of a callback at the end."""
        member, self.member = self.member, None
        if member is None:
            return
        # The end of the member waits for on_revoke, which is called here.
        closing = threading.Thread(target=member.close, name="group-consumer-close", daemon=True)
        closing.start()
        # Another revocation may follow one whose callback raised, so all of them are handled.
        raised: list[BaseException] = []
        alive = True
        while alive:
            alive = closing.is_alive()
            try:
                self._rebalance(member)
                closing.join(_CLOSING_STEP_S)
            except BaseException as error:  # noqa: BLE001 -- Ctrl-C too: raised below, when all partitions are released
                raised.append(error)
        if raised:
            raise raised[0]

    def joined(self) -> Member:
        """Return the member.

        Raises:
            ConsumerError: there is none.
        """
        self.check_open()
        if self.member is None:
            raise ConsumerError("there is no subscription: call subscribe() first")
        return self.member

    def owned(self) -> Ownership:
        """Return the ownership of the member; empty without a member."""
        return _NOTHING if self.member is None else self.member.ownership()

    def close(self) -> None:
        """Leave, and refuse later joins."""
        try:
            self.leave()
        finally:
            self.closed = True

    def abandon(self) -> None:
        """Leave without callbacks: the consumer was dropped without close()."""
        self._rebalances.abandon()
        member, self.member, self.closed = self.member, None, True
        if member is not None:
            member.close()

    def set_sasl_credentials(self, username: str, password: str) -> None:
        """Use these credentials for this member and later ones."""
        self._credentials = {"sasl_plain_username": username, "sasl_plain_password": password}
        self._librdkafka_credentials = {"sasl.username": username, "sasl.password": password}
        if self.member is not None:
            self.member.set_sasl_credentials(username, password)

    def check_open(self) -> None:
        """Raise ClosedConsumerError if it is closed."""
        if self.closed:
            raise ClosedConsumerError("this consumer is closed")

    @property
    def changes(self) -> bool:
        """Whether a change waits for `rebalance`."""
        return bool(self._rebalances)

    def rebalance(self) -> None:
        """Handle all waiting changes."""
        self._rebalance(self.joined())

    def rejoin_if_ended(self) -> None:
        """Join again if the membership has ended.

        Raises:
            ConsumerError: a new member would end for the same reason.
        """
        member = self.member
        if member is None or member.failed is None:
            return
        self._rebalances.abandon()
        self._rebalances = Rebalances(self._config.max_poll_s, self._fetching.ahead.interrupt)
        if self._held:
            self._give_up(member, Rebalance(Kind.LOST, frozenset(self._held)), Kind.LOST)
        member.close()
        if member.fatal:
            try:
                member.wait_joined(0)
            except MembershipError as error:
                raise consumer_error(error) from error
        log.warning("the membership ended with %r: joining again", member.failed)
        self.join(self._subscription)

    def commit_progress(self) -> None:
        """Commit without waiting. As in librdkafka, an idle consumer repeats no commit."""
        done = self._progress.done()
        if isinstance(self.member, ManualAssignment):
            self.member.commit_later(done)
        elif self.member is not None and (changed := self._commits.uncommitted(done)):
            self._commits.commit_later(self.member, changed)

    @property
    def by_hand(self) -> bool:
        """Whether the program assigns partitions itself."""
        return isinstance(self.member, ManualAssignment)

    @property
    def without_group(self) -> bool:
        """Whether there is no membership."""
        return self.member is None or self.by_hand

    def assign_by_hand(self, begins: Mapping[TopicPartition, int], *, instead: bool) -> None:
        """Read these partitions without a group, instead of the present ones or in addition.

        Raises:
            ConsumerError: a member has joined, and its group assigns.
        """
        if self.member is None:
            self._topic_errors.subscribe(Subscription((), ()))
            self.member = ManualAssignment(
                self._fetching,
                self._rebalances.revoked,
                tick=ProgramAwake(self._fetching, self._config),
                tick_s=None if self._config.auto_commit_s is None else self._quiet_s(),
            )
        if instead:
            self.release_by_hand(self._fetching.partitions)
        self._fetching.add(begins)
        self._update_by_hand()

    def release_by_hand(self, partitions: frozenset[TopicPartition]) -> None:
        """Read these partitions no longer; their progress is committed first if the program commits automatically."""
        if self.member is not None and partitions:
            self._give_up(self.member, Rebalance(Kind.REVOKED, partitions), Kind.REVOKED)
        self._update_by_hand()

    def _update_by_hand(self) -> None:
        if isinstance(self.member, ManualAssignment):
            self.member.update()

    def begin_at(self, key: TopicPartition, offset: int) -> bool:
        """Begin at this offset, within the on_assign callback of this partition; else return False."""
        return self.choice is not None and self.choice.begin_at(key, offset)

    def assigned(self) -> dict[TopicPartition, int]:
        """Return the partitions that the program reads, with the offsets that it gave."""
        begins = self._fetching.begins()
        if not self.by_hand:
            begins = {key: self._held.get(key, Fetching.COMMITTED) for key in begins}
        return begins if self.choice is None else begins | self.choice.chosen()

    def read(self, begins: Mapping[TopicPartition, int], *, instead: bool) -> None:
        """Read these partitions of the member, instead of the present ones or in addition.

        Raises:
            ConsumerError: one of them is not assigned to this member.
        """
        check_assigned(begins, self._held)
        if instead:
            self.stop_reading(self._fetching.partitions)
        self._held |= begins
        if self.member is not None:
            self._fetching.add({**begins, **self._committed(self.member, _without_offset(begins))})

    def stop_reading(self, partitions: frozenset[TopicPartition]) -> None:
        """Read these no longer; the member keeps them. Their progress is committed first as in a revocation."""
        if self.member is not None and partitions:
            # For the reason that `_give_up` has.
            self._fetching.ahead.interrupt()
            self._fetching.reclaim(partitions)
            if self._config.auto_commit_s is not None:
                self._commit_last(self.member, partitions)
            self._progress.forget(partitions)
            self._fetching.remove(partitions)

    def pause(self, partitions: Collection[TopicPartition]) -> None:
        """Deliver no records of these, which are read, or assigned in the running callback."""
        self._paused.update(partitions)
        self._fetching.pause(partitions)

    def resume(self, partitions: Collection[TopicPartition]) -> None:
        """Deliver records of these partitions again."""
        self._paused.difference_update(partitions)
        self._fetching.resume(partitions)

    def _rebalance(self, member: Member) -> None:
        while (change := self._rebalances.take()) is not None:
            in_time = change.begin()
            try:
                if change.kind is Kind.ASSIGNED:
                    self._gain(member, change)
                else:
                    self._give_up(member, change, Kind.LOST if not in_time else change.kind)
            finally:
                change.end()
            self._fetching.ahead.polled()

    def _gain(self, member: Member, change: Rebalance) -> None:
        self.choice = choice = AssignChoice(change.partitions)
        self._paused.clear()
        known: Mapping[TopicPartition, int] = {}
        try:
            self._call_program(Kind.ASSIGNED, change.partitions)
            known = self._committed(member, _without_offset(choice.begins))
        finally:
            # Also after an error: in the group this member owns them, and no other member reads them.
            self.choice = None
            self._held |= dict.fromkeys(change.partitions, Fetching.COMMITTED) | choice.chosen()
            self._fetching.add({**choice.begins, **known})
            self._fetching.pause(choice.begins.keys() & self._paused)

    def _committed(self, member: Member, partitions: Sequence[TopicPartition]) -> Mapping[TopicPartition, int]:
        """Return the committed offsets. The member requests them, because it knows its coordinator.

        librdkafka is in no group here: it would first search for the coordinator, once a second.
        """
        reset = self._config.reset
        try:
            known = (
                {}
                if isinstance(member, ManualAssignment) or not partitions
                else member.committed(partitions, _COMMITTED_S)
            )
        except MembershipError as error:
            log.warning("%s; the fetching client asks again", error)
            return {}
        return known if reset is None else {key: known.get(key, reset) for key in partitions}

    def _give_up(self, member: Member, change: Rebalance, kind: Kind) -> None:
        # Another thread's `poll` must take no record now: the offsets that are committed here would be before it.
        self._fetching.ahead.interrupt()
        with contextlib.ExitStack() as rest:  # Ctrl-C during the commit, which may take seconds, skips nothing else
            rest.callback(self._forget, change.partitions)
            rest.callback(self._call_on_revoke, member, change, kind)
            self._fetching.reclaim(change.partitions)
            if kind is Kind.REVOKED and self._config.auto_commit_s is not None:
                self._commit_last(member, change.partitions)

    def _call_on_revoke(self, member: Member, change: Rebalance, kind: Kind) -> None:
        # leave() has already dropped the member, but in on_revoke the program may still commit with it.
        self.member, kept = member, self.member
        self.giving_up = True
        try:
            self._call_program(kind, change.partitions)
        finally:
            self.member, self.giving_up = kept, False
            self._commits.wait_until_answered()

    def _forget(self, partitions: frozenset[TopicPartition]) -> None:
        self._progress.forget(partitions)
        self._commits.forget(partitions)
        self._fetching.remove(partitions)
        for key in partitions:
            self._held.pop(key, None)

    def _commit_last(self, member: Member, partitions: frozenset[TopicPartition]) -> None:
        last = {key: at for key, at in self._progress.done().items() if key in partitions}
        try:
            if last:
                self._commits.commit(member, last)
        except MembershipError as error:
            log.warning("the last offsets of %d partitions were not committed: %s", len(last), error)


def _without_offset(begins: Mapping[TopicPartition, int]) -> list[TopicPartition]:
    return [key for key, at in begins.items() if at == Fetching.COMMITTED]
