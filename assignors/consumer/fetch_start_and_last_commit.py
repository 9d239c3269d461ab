"""The assignment and the revocation of partitions: which are read, and the last commit before one is given up."""

import logging
from collections.abc import Callable, Collection, Mapping, Sequence
from functools import partial
from typing import Final

from assignors.clients.log_offsets import Offset
from assignors.consumer.background_calls import call_apart
from assignors.consumer.commit_queue import CommitQueue
from assignors.consumer.consumed_offsets import Progress
from assignors.consumer.fetching import Fetching
from assignors.consumer.manual_assignment import ManualAssignment
from assignors.consumer.on_assign_choice import AssignChoice, check_assigned
from assignors.consumer.program_callbacks import RunningCallback
from assignors.consumer.rebalance_events import Kind
from assignors.consumer.split_configuration import Configuration
from assignors.errors import MembershipError
from assignors.member.broker_assigned_member import BrokerAssignedMember
from assignors.member.group_member import GroupMember
from assignors.planner.topics_and_members import TopicPartition

log = logging.getLogger(__name__)

_COMMITTED_S: Final = 1.0  # longest wait of poll; after that the fetching client asks by itself

Member = GroupMember | BrokerAssignedMember | ManualAssignment


class AssignedPartitions:
    """The partitions that a member owns, those of them that are read, and their last commit.

    Contract:
    * Used by one thread at a time.
    * When the program's callback has returned, fetching begins of the partitions that it chose there, by default of
      all assigned ones. The member keeps the others, and the program may read them later.
    * Revoked partitions are fetched until the callback has returned. This also holds if it raises.
    * A begin and an end consist of steps that may be interrupted anywhere, and repeated.

    Args:
        config: configuration of the consumer.
        fetching: partitions are added to it and removed.
        progress: the offsets to commit last, if the program commits automatically.
        commits: used for the last commit.
        running: the callback that runs.
    """

    def __init__(
        self,
        config: Configuration,
        *,
        fetching: Fetching,
        progress: Progress,
        commits: CommitQueue,
        running: RunningCallback,
    ) -> None:
        self._config = config
        self._fetching = fetching
        self._progress = progress
        self._commits = commits
        self._held: dict[TopicPartition, int] = {}  # passed to on_assign and not released, with the offset given there
        self._running = running
        self._choice: AssignChoice | None = None

    @property
    def held(self) -> frozenset[TopicPartition]:
        """The partitions that were passed to on_assign and not released."""
        return frozenset(self._held)

    @property
    def choice(self) -> AssignChoice | None:
        """The choice of the running on_assign callback; None outside of one."""
        return self._choice if self._running.kind is Kind.ASSIGNED else None

    def begin(
        self, member: Member, partitions: frozenset[TopicPartition], call_program: Callable[[], object]
    ) -> list[Callable[[], object]]:
        """Return the steps of a begin: call the program, and read the assigned partitions that it chose."""
        choice = AssignChoice(partitions)
        known: dict[TopicPartition, int] = {}

        def ask() -> None:
            self._choice = choice
            self._fetching.ahead.interrupt()  # else a `poll` in the callback would take a record, not be refused
            call_program()

        def ask_for_offsets() -> None:
            known.update(self._committed(member, without_offset(choice.begins)))

        def begin_to_read() -> None:
            self._held.update(dict.fromkeys(partitions, Fetching.COMMITTED) | choice.chosen())
            self._fetching.add({**choice.begins, **known})
            self._fetching.pause(choice.begins.keys() & choice.paused)

        return [ask, ask_for_offsets, begin_to_read]

    def end(
        self, member: Member, partitions: frozenset[TopicPartition], kind: Kind, call_program: Callable[[], object]
    ) -> list[Callable[[], object]]:
        """Return the steps of an end: commit the progress if that is automatic, call the program, and read no more.

        What the program stores in the callback is committed after that.
        """
        steps: list[Callable[[], object]] = [partial(self._stop_delivery, partitions), call_program]
        if kind is Kind.REVOKED and self._config.auto_commit_s is not None:
            steps.insert(1, partial(self._commit_last, member, partitions))
            steps.append(partial(self._commit_stored, member, partitions, self._progress.stored(partitions)))
        return [*steps, self._commits.wait_until_answered, partial(self._forget, partitions)]

    def _stop_delivery(self, partitions: frozenset[TopicPartition]) -> None:
        # Another thread's `poll` must take no record now: the offsets that are committed later would be before it.
        self._fetching.ahead.interrupt()
        self._fetching.refetch_in_hand(partitions)

    def begin_at(self, key: TopicPartition, offset: int) -> bool:
        """Begin at this offset, within the on_assign callback of this partition; else return False."""
        return (choice := self.choice) is not None and choice.begin_at(key, offset)

    def assigned(self, *, by_hand: bool) -> dict[TopicPartition, int]:
        """Return the partitions that the program reads, with the offsets that it gave."""
        begins = self._fetching.begins()
        if not by_hand:
            begins = {key: self._held.get(key, Fetching.COMMITTED) for key in begins}
        return begins if (choice := self.choice) is None else begins | choice.chosen()

    def read(self, member: Member, begins: Mapping[TopicPartition, int], *, instead: bool) -> None:
        """Read these partitions of the member, instead of the current ones or in addition.

        Raises:
            ConsumerError: one of them is not assigned to this member.
        """
        check_assigned(begins, self._held)
        if instead:
            self.stop_reading(member, self._fetching.partitions)
        self._held.update(begins)
        self._fetching.add({**begins, **self._committed(member, without_offset(begins))})

    def stop_reading(self, member: Member, partitions: frozenset[TopicPartition]) -> None:
        """Stop reading these; the member keeps them. Their progress is committed first, as in a revocation."""
        if partitions:
            self._stop_delivery(partitions)
            if self._config.auto_commit_s is not None:
                self._commit_last(member, partitions)
            self._commits.wait_until_answered()  # else a later `read` would begin before the program's last commit
            self._progress.forget(partitions)
            self._fetching.remove(partitions)

    def pause(self, partitions: Collection[TopicPartition]) -> None:
        """Deliver no records of these, which are read, or assigned in the running callback."""
        if (choice := self.choice) is not None:
            choice.paused.update(partitions)
        self._fetching.pause(partitions)

    def resume(self, partitions: Collection[TopicPartition]) -> None:
        """Deliver records of these partitions again."""
        if (choice := self.choice) is not None:
            choice.paused.difference_update(partitions)
        self._fetching.resume(partitions)

    def _committed(self, member: Member, partitions: Sequence[TopicPartition]) -> Mapping[TopicPartition, int]:
        """Return the committed offsets. The member requests them, because it knows its coordinator.

        librdkafka is in no group here: it would first search for the coordinator, once a second.
        """
        reset = self._config.reset
        try:
            found = (
                {}
                if isinstance(member, ManualAssignment) or not partitions
                else call_apart(partial(member.committed_with_metadata, partitions, _COMMITTED_S))
            )
        except MembershipError as error:
            log.warning("%s; the fetching client asks again", error)
            self._commits.begin(partitions, {})
            return {}
        self._commits.begin(partitions, found)
        known = {key: at.offset for key, at in found.items()}
        return known if reset is None else {key: known.get(key, reset) for key in partitions}

    def _forget(self, partitions: frozenset[TopicPartition]) -> None:
        self._progress.forget(partitions)
        self._commits.forget(partitions)
        self._fetching.remove(partitions)
        for key in partitions:
            self._held.pop(key, None)

    def _commit_last(self, member: Member, partitions: frozenset[TopicPartition]) -> None:
        self._commits.wait_until_answered()  # an older commit in flight may name other offsets than these
        last = {key: at for key, at in self._progress.done().items() if key in partitions}
        self._commit(member, self._commits.uncommitted(last))

    def _commit_stored(
        self, member: Member, partitions: frozenset[TopicPartition], before: Mapping[TopicPartition, Offset]
    ) -> None:
        stored = self._progress.stored(partitions)
        self._commit(member, {key: at for key, at in stored.items() if before.get(key) != at})

    def _commit(self, member: Member, last: Mapping[TopicPartition, Offset]) -> None:
        if last:
            self._commits.commit_later(member, last)  # `on_commit` gets the answer, as to each automatic commit
            self._commits.wait_until_answered()


def without_offset(begins: Mapping[TopicPartition, int]) -> list[TopicPartition]:
    """Return the partitions that begin at the group's offset."""
    return [key for key, at in begins.items() if at == Fetching.COMMITTED]
