"""A consumer's place in its group: the member, and its rebalances handled where the program polls."""

import logging
import threading
import time
from collections.abc import Callable, Collection, Mapping, Sequence
from functools import partial
from typing import Final

from kafka.coordinator.assignors.abstract import AbstractPartitionAssignor

from assignors.consumer.configuration import Configuration
from assignors.consumer.consumed_offsets import Progress
from assignors.consumer.fetching import Fetching
from assignors.consumer.ordered_commits import Commits
from assignors.consumer.rebalance_events import Kind, Rebalance, Rebalances
from assignors.errors import MembershipError
from assignors.member.group_member import GroupMember
from assignors.planner.topics_and_members import TopicPartition

log = logging.getLogger(__name__)

COMMIT_S: Final = 20.0
"""So long at most the coordinator is waited for."""
_COMMITTED_S: Final = 5.0
_CLOSING_S: Final = 0.005
_AWAKE_PART: Final = 10

Tell = Callable[[Kind, frozenset[TopicPartition]], object]


class Membership:
    """One member at a time, and what each of its rebalances does to fetching and commits.

    Contract:
    * Used by one thread, the program's. The member's own threads only note changes; `rebalance` and `leave` make them.
    * Gained partitions are fetched when the program was told. Those given up are fetched, owned and may be committed
      until the program was told and all commits are answered. Both also where the program raises, which comes out.
    * While the program does not poll (`polled`), the member joins no rebalance, and leaves after a time.

    Args:
        config: of the consumer.
        assignors: what each member offers.
        fetching: what gained partitions are added to, and others removed from.
        progress: what is committed of partitions given up, where the program commits automatically.
        commits: settled before a partition is given up.
        tell: calls the program.
    """

    def __init__(  # noqa: PLR0913 - the parts of a consumer, each named at the call
        self,
        config: Configuration,
        *,
        assignors: Sequence[AbstractPartitionAssignor],
        fetching: Fetching,
        progress: Progress,
        commits: Commits,
        tell: Tell,
    ) -> None:
        self._config = config
        self._assignors = assignors
        self._fetching = fetching
        self._progress = progress
        self._commits = commits
        self._tell = tell
        self._pattern = ""
        self._rebalances = Rebalances(config.max_poll_s)
        self._begins: dict[TopicPartition, int] | None = None
        self._paused: set[TopicPartition] = set()  # of those that begin
        self._polled_at = time.monotonic()
        self.member: GroupMember | None = None
        self.giving_up = False
        self.closed = False

    def join(self, pattern: str) -> None:
        """Join for the topics that fit.

        Raises:
            MembershipError: no broker answered.
        """
        self._pattern = pattern
        self.polled()
        self.member = GroupMember(
            self._config.member,
            pattern=pattern,
            assignors=self._assignors,
            on_assigned=self._rebalances.assigned,
            on_revoked=self._rebalances.revoked,
            on_lost=self._rebalances.lost,
            callback_timeout_s=self._config.max_poll_s,
            awake=self._awake,
        ).start()

    def leave(self) -> None:
        """Give everything up and leave the group; raises at the end what the program raised first."""
        member, self.member = self.member, None
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

    def joined(self) -> GroupMember:
        """The member.

        Raises:
            MembershipError: there is none.
        """
        self.check_open()
        if self.member is None:
            raise MembershipError("there is no subscription: call subscribe() first")
        return self.member

    def close(self) -> None:
        """Leave for good."""
        try:
            self.leave()
        finally:
            self.closed = True

    def check_open(self) -> None:
        """Raise MembershipError where it is closed."""
        if self.closed:
            raise MembershipError("this consumer is closed")

    @property
    def changes(self) -> bool:
        """Whether a change waits for `rebalance`."""
        return bool(self._rebalances)

    def polled(self) -> None:
        """The program polls now."""
        self._polled_at = time.monotonic()

    def rebalance(self) -> None:
        """Handle all changes that wait."""
        self._rebalance(self.joined())

    def mend(self) -> None:
        """Where the membership has ended: join anew.

        Raises:
            MembershipError: that cannot help.
        """
        member = self.member
        if member is None or member.failed is None:
            return
        self._rebalances.abandon()
        self._rebalances = Rebalances(self._config.max_poll_s)
        if self._fetching.partitions:
            self._give_up(member, Rebalance(Kind.LOST, self._fetching.partitions), Kind.LOST)
        member.close()
        if member.fatal:
            member.wait_joined(0)  # raises
        log.warning("the membership ended with %r: joining anew", member.failed)
        self.join(self._pattern)

    def begin_at(self, key: TopicPartition, offset: int) -> bool:
        """Begin there, where the program is being told that it gains this partition; else False."""
        if self._begins is None or key not in self._begins:
            return False
        self._begins[key] = offset
        return True

    def pause(self, partitions: Collection[TopicPartition]) -> None:
        """Deliver nothing of these, which are read, or which the program is being told that it gains."""
        self._paused.update(partitions)
        self._fetching.pause(partitions)

    def resume(self, partitions: Collection[TopicPartition]) -> None:
        """Deliver them again."""
        self._paused.difference_update(partitions)
        self._fetching.resume(partitions)

    def _rebalance(self, member: GroupMember) -> None:
        while (change := self._rebalances.take()) is not None:
            in_time = change.begin()
            try:
                if change.kind is Kind.ASSIGNED:
                    self._gain(member, change)
                else:
                    self._give_up(member, change, Kind.LOST if not in_time else change.kind)
            finally:
                change.end()
            self.polled()

    def _gain(self, member: GroupMember, change: Rebalance) -> None:
        self._begins = begins = dict.fromkeys(change.partitions, Fetching.GROUPS)
        self._paused.clear()
        try:
            self._tell(Kind.ASSIGNED, change.partitions)
            begins |= self._committed(member, [key for key, at in begins.items() if at == Fetching.GROUPS])
        finally:
            # Also when it raised: the group counts them as read by this member, and nobody else would.
            self._begins = None
            self._fetching.add(begins)
            self._fetching.pause(begins.keys() & self._paused)

    def _committed(self, member: GroupMember, partitions: Sequence[TopicPartition]) -> Mapping[TopicPartition, int]:
        """Where to begin, asked by the member, whose coordinator is known.

        librdkafka is in no group here: it would look for the coordinator first, once a second.
        """
        reset = self._config.reset
        try:
            known = member.committed(partitions, _COMMITTED_S) if partitions else {}
        except MembershipError as error:
            log.warning("%s; the fetching client asks again", error)
            return {}
        return known if reset is None else {key: known.get(key, reset) for key in partitions}

    def _give_up(self, member: GroupMember, change: Rebalance, kind: Kind) -> None:
        try:
            if kind is Kind.REVOKED and self._config.auto_commit_s is not None:
                self._commit_last(member, change.partitions)
            # leave() has let go of the member, but in on_revoke the program may still commit with it.
            self.member, kept = member, self.member
            self.giving_up = True
            try:
                self._tell(kind, change.partitions)
            finally:
                self.member, self.giving_up = kept, False
                self._commits.settle()
        finally:
            self._progress.forget(change.partitions)
            self._fetching.remove(change.partitions)

    def _commit_last(self, member: GroupMember, partitions: frozenset[TopicPartition]) -> None:
        last = {key: at for key, at in self._progress.done().items() if key in partitions}
        try:
            if last:
                self._commits.commit(partial(member.commit, timeout_s=COMMIT_S), last)
        except MembershipError as error:
            log.warning("the last offsets of %d partitions were not committed: %s", len(last), error)

    def _awake(self) -> bool:
        return time.monotonic() - self._polled_at < self._config.max_poll_s / _AWAKE_PART
