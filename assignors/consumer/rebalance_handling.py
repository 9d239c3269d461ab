"""A consumer's membership: the member, and its rebalances, handled in the program's poll."""

import logging
import time
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Final, NamedTuple

from kafka.coordinator.assignors.abstract import AbstractPartitionAssignor

from assignors.consumer.background_calls import call_apart
from assignors.consumer.commit_queue import CommitQueue
from assignors.consumer.consumed_offsets import Progress
from assignors.consumer.consumer_errors import ClosedConsumerError, ConsumerError, consumer_error
from assignors.consumer.error_messages import TopicErrors
from assignors.consumer.fetch_start_and_last_commit import AssignedPartitions, Member, without_offset
from assignors.consumer.fetching import Fetching
from assignors.consumer.interruptions import Once, PendingSteps
from assignors.consumer.leaving import Leaving
from assignors.consumer.manual_assignment import ManualAssignment
from assignors.consumer.new_members import NewMembers
from assignors.consumer.one_process import OneProcess
from assignors.consumer.poll_interval import ProgramAwake, quiet_s
from assignors.consumer.program_callbacks import CallProgram, RunningCallback
from assignors.consumer.rebalance_events import Kind, Rebalance, Rebalances
from assignors.consumer.split_configuration import Configuration
from assignors.consumer.subscription import Subscription
from assignors.errors import MembershipError
from assignors.member.group_member import GroupMember
from assignors.member.ownership import Ownership
from assignors.planner.topics_and_members import TopicPartition

log = logging.getLogger(__name__)

_NOTHING: Final = Ownership()


class Handled(NamedTuple):
    """How many assignments and revocations the program has handled, and when the last one, by time.monotonic."""

    number: int
    at: float


class Membership:
    """One member at a time, and the effects of its rebalances on fetching and commits.

    Contract:
    * Used by one thread at a time. The member's own threads only queue changes; `rebalance` and `leave` handle them,
      and `records.interrupted` signals that there is a change to handle.
    * Revoked partitions are owned, and may be committed, until the callback has returned and all commits are answered.
      This also holds if a callback raises; its error is raised here.
    * While the program does not poll, the member joins no rebalance, and leaves after max.poll.interval.ms.
    * An interruption at any step skips nothing: the next `rebalance`, `leave` or `close` does the rest. Each change
      stays in the queue with the steps that it still needs, and the program is called once for it.

    Args:
        config: configuration of the consumer.
        assignors: the assignors that each member offers.
        fetching: assigned partitions are added to it, revoked ones removed.
        progress: the offsets to commit for revoked partitions, if the program commits automatically.
        commits: all are answered before a partition is released.
        topic_errors: gets the existing topics.
        call_program: calls the program's callback.
        running: the callback that runs.

    Attributes:
        partitions: the partitions of the member.
        member: None outside of a group, and of a manual assignment.
        closed: whether later joins are refused.
        handled: the rebalances so far.
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
        running: RunningCallback,
    ) -> None:
        self._config = config
        self._members = NewMembers(config, assignors=assignors, fetching=fetching, topic_errors=topic_errors)
        self._fetching = fetching
        self._progress = progress
        self._commits = commits
        self._topic_errors = topic_errors
        self._call_program = call_program
        self._running = running
        self.subscription = Subscription((), ())
        self._rebalances = Rebalances(config.max_poll_s, fetching.ahead.interrupt, topic_errors.loses)
        self.partitions = AssignedPartitions(
            config, fetching=fetching, progress=progress, commits=commits, running=running
        )
        self.member: Member | None = None
        self._leaving: Leaving | None = None
        self._reported_end = ""
        self.closed = False
        self.handled = Handled(0, 0.0)

    @property
    def giving_up(self) -> bool:
        """Whether on_revoke or on_lost runs."""
        return self._running.kind in {Kind.REVOKED, Kind.LOST}

    def join(self, subscription: Subscription) -> None:
        """Join for these topics.

        Raises:
            ConsumerError: no broker answered.
        """
        if subscription is not self.subscription:  # else a new member takes the place of one that ended
            self.subscription = subscription
            self._topic_errors.subscribe(subscription)
        self._fetching.ahead.polled()
        self._abandon_changes()  # those of a member whose start was interrupted
        rebalances = self._rebalances
        try:
            start = partial(self._members.start, subscription, rebalances)
            self.member = call_apart(start, undo=lambda member: self._members.end(member, rebalances))
        except MembershipError as error:
            raise consumer_error(error) from error

    def leave(self, *, also_static: bool = False) -> None:
        """Release all partitions and leave the group; raise the first error of a callback at the end.

        Args:
            also_static: leave also with a group.instance.id, which otherwise reserves the partitions.
        """
        member = self.member
        if member is None:
            return
        if self._leaving is None or self._leaving.member is not member:
            self._leaving = Leaving(member, _closing(member, also_static=also_static))
        self._fetching.ahead.interrupt()  # after an interruption of this call the next `poll` continues
        try:
            self._leaving.finish(partial(self._rebalance, member))
        finally:
            if self._leaving.ended:
                self.member = None

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
            self.closed = self.member is None

    def call_program_with(self, call_program: CallProgram) -> None:
        """Call the program by this function from now on, which may keep it alive."""
        self._call_program = call_program

    def abandon(self) -> None:
        """Leave without callbacks: the consumer was dropped without close()."""
        self._rebalances.abandon()
        member, self.member, self.closed = self.member, None, True
        if member is not None:
            member.close()

    def set_sasl_credentials(self, username: str, password: str) -> None:
        """Use these credentials for this member and later ones."""
        self._members.set_sasl_credentials(username, password)
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
        """Handle all waiting changes; finish a `leave` that was interrupted."""
        member = self.joined()
        if self._leaving is not None and self._leaving.member is member:
            self.leave()
        else:
            self._rebalance(member)

    def rejoin_if_ended(self) -> None:
        """Join again if the membership has ended.

        Raises:
            ConsumerError: a new member would end for the same reason.
        """
        member = self.member
        if member is None or member.failed is None:
            return
        if held := self.partitions.held:
            self._abandon_changes()
            self._rebalances.add(Rebalance(Kind.LOST, held))
            self._rebalance(member)
        call_apart(member.close)
        self.raise_final()
        # While another member has its group.instance.id, each new member ends in the same way after a second.
        end = repr(member.failed)
        again, self._reported_end = end == self._reported_end, end
        log.log(logging.DEBUG if again else logging.WARNING, "the membership ended with %s: joining again", end)
        if again:  # a new member does not help: an assignor of the program raises in each join
            self._topic_errors.add_end(end)
        self.join(self.subscription)

    def raise_final(self) -> None:
        """Raise the error of a membership that ended for a reason for which a new member would end, too.

        Raises:
            ConsumerError: this error.
        """
        member = self.member
        if member is not None and member.failed is not None and member.fatal:
            try:
                call_apart(partial(member.wait_joined, 0))
            except MembershipError as error:
                raise consumer_error(error) from error

    def _abandon_changes(self) -> None:
        self._rebalances.abandon()
        self._rebalances = Rebalances(self._config.max_poll_s, self._fetching.ahead.interrupt, self._topic_errors.loses)

    def commit_progress(self) -> None:
        """Commit without waiting. As in librdkafka, an idle consumer repeats no commit."""
        member, changed = self.member, self._commits.ahead(self._commits.uncommitted(self._progress.done()))
        if not changed:
            return
        if isinstance(member, ManualAssignment):
            self._commits.note_sent(member.commit_later(changed))
        elif member is not None:
            self._commits.commit_later(member, changed)

    @property
    def by_hand(self) -> bool:
        """Whether the program assigns partitions itself."""
        return isinstance(self.member, ManualAssignment)

    @property
    def without_group(self) -> bool:
        """Whether there is no membership."""
        return self.member is None or self.by_hand

    def assign_by_hand(self, begins: Mapping[TopicPartition, int], *, instead: bool) -> None:
        """Read these partitions without a group, instead of the current ones or in addition.

        Call it only if `without_group`: the partitions of a group's member change by `read`.
        """
        if self.member is None:
            self._topic_errors.subscribe(Subscription((), ()))
            self.member = ManualAssignment(
                self._fetching,
                self._rebalances.revoked,
                tick=ProgramAwake(self._fetching, self._config),
                tick_s=quiet_s(self._config) if self._needs_clock() else None,
            )
        if instead:
            self.release_by_hand(self._fetching.partitions)
        self._commits.begin(without_offset(begins), {})  # librdkafka asks the group for these
        self._fetching.add(begins)
        self._update_by_hand()

    def _needs_clock(self) -> bool:
        return self._config.auto_commit_s is not None or self._fetching.callbacks.listens

    def release_by_hand(self, partitions: frozenset[TopicPartition]) -> None:
        """Stop reading these partitions; their progress is committed first if the program commits automatically."""
        if self.member is not None and partitions:
            self._handle(self.member, Rebalance(Kind.REVOKED, partitions))
        self._update_by_hand()

    def read(self, begins: Mapping[TopicPartition, int], *, instead: bool) -> None:
        """Read these partitions of the member, instead of the current ones or in addition.

        Raises:
            ConsumerError: one of them is not assigned to this member.
        """
        self.partitions.read(self.joined(), begins, instead=instead)

    def stop_reading(self, partitions: frozenset[TopicPartition]) -> None:
        """Stop reading these; the member keeps them."""
        if self.member is not None:
            self.partitions.stop_reading(self.member, partitions)

    def _update_by_hand(self) -> None:
        if isinstance(self.member, ManualAssignment):
            self.member.update()

    def _rebalance(self, member: Member) -> bool:
        changed = False
        while (change := self._rebalances.first()) is not None:
            changed = True
            self._handle(member, change)
            self.handled = Handled(self.handled.number + 1, time.monotonic())
            if self._rebalances.first() is change:  # else a call in one of the steps has removed it
                self._rebalances.remove_first()
            self._fetching.ahead.polled()
            if change.raised:
                raise change.raised.pop()
        return changed

    def _handle(self, member: Member, change: Rebalance) -> None:
        if change.steps is None:
            change.steps = PendingSteps([*self._steps_of(member, change), change.end])
        change.steps.run()

    def _steps_of(self, member: Member, change: Rebalance) -> list[Callable[[], object]]:
        in_time, once = change.begin(), Once()
        if change.kind is Kind.ASSIGNED:
            self._topic_errors.accepted()
            self._reported_end = ""
            tell = partial(self._tell, change, change.kind, once)
            return self.partitions.begin(member, change.partitions, tell)
        kind = change.kind if in_time else Kind.LOST
        return self.partitions.end(member, change.partitions, kind, partial(self._tell, change, kind, once))

    def _tell(self, change: Rebalance, kind: Kind, once: Once) -> None:
        """Call the program. Its error is kept: the partitions are read or released before it is raised."""
        if self.by_hand:
            return
        process = OneProcess()
        try:
            self._call_program(kind, change.partitions, once)
        except BaseException as error:
            if not once.made or process.forked:  # an interruption before the call, or a child
                raise
            change.raised.append(error)
        process.check()


def _closing(member: Member, *, also_static: bool) -> Callable[[], None]:
    # With KIP-848 librdkafka decides whether a static member leaves.
    return partial(member.close, also_static=also_static) if isinstance(member, GroupMember) else member.close
