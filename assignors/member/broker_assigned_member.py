"""Membership in a KIP-848 group, whose broker assigns the partitions: through librdkafka, without fetching."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Final, Self

from confluent_kafka import KafkaException, Message
from confluent_kafka import TopicPartition as KafkaPartition

from assignors.clients.librdkafka_values import text
from assignors.clients.log_offsets import Offset, OffsetWithMetadata
from assignors.errors import MembershipError
from assignors.member.broker_assigned_errors import is_fatal, membership_error
from assignors.member.broker_assigned_offsets import BrokerAssignedOffsets, with_metadata
from assignors.member.broker_assigned_thread import STEP_S, BrokerAssignedThread
from assignors.member.callback_thread import Callback
from assignors.member.own_process import OwnProcess
from assignors.member.ownership import Ownership, OwnershipCell
from assignors.planner.topics_and_members import TopicPartition

_CREDENTIALS_S: Final = 1.0


class BrokerAssignedMember:
    """A member of a KIP-848 group that fetches nothing.

    Contract: that of `GroupMember`, with these differences.
    * The broker's assignor decides, so no assignor is passed.
    * The generation of an ownership is this member's epoch.
    * Partitions are assigned and revoked step by step, and the group never stops as a whole, so `joined` stays true in
      a rebalance.
    * A child that is forked after the constructor may not start it either.

    Args:
        config: librdkafka's properties, with `group.protocol` `consumer`.
        topics: names, and patterns that begin with ^; a pattern is a regular expression of RE2 for whole names.
        on_assigned: called with assigned partitions; it must not wait.
        on_revoked: called with revoked partitions; the group waits for its return, at most max.poll.interval.ms.
        on_lost: called when other members may own the partitions already.
        awake: called before each step. While it returns False, no rebalance is handled; after max.poll.interval.ms
            librdkafka leaves the group, and joins again when it returns True.
        on_change: called after each change of the ownership or of `failed`, in any thread; it must not wait.
        on_error: called with each error of a topic or of the group that librdkafka reports, as a message.
        waits_for_rights: whether the member tries again while it may not know the group's coordinator, as librdkafka
            does; librdkafka ends each member that knows it and may not join.
        reports_empty: call `on_assigned` with no partitions, too, whenever librdkafka does.

    Raises:
        MembershipError: no group, or librdkafka refuses a property.
    """

    def __init__(  # noqa: PLR0913 - each is named at the call
        self,
        config: Mapping[str, Any],
        *,
        topics: Sequence[str],
        on_assigned: Callback | None = None,
        on_revoked: Callback | None = None,
        on_lost: Callback | None = None,
        awake: Callable[[], bool] = lambda: True,
        on_change: Callable[[], object] = lambda: None,
        on_error: Callable[[Message], object] = lambda _: None,
        waits_for_rights: bool = False,
        reports_empty: bool = False,
    ) -> None:
        self.__group = text(config.get("group.id"))
        if not self.__group:  # librdkafka's client would end the process
            raise MembershipError("group.id is missing: a member of a group needs it")
        self.__topics = list(topics)
        self.__assignor = config.get("group.remote.assignor")
        self.__cell = OwnershipCell(on_change)
        self.__process = OwnProcess()
        self.__process.begin()  # librdkafka's threads begin here, and do not run in a child
        try:
            self.__thread = BrokerAssignedThread(
                config,
                self.__cell,
                on_assigned=on_assigned,
                on_revoked=on_revoked,
                on_lost=on_lost,
                awake=awake,
                on_error=on_error,
                waits_for_rights=waits_for_rights,
                reports_empty=reports_empty,
            )
        except (KafkaException, TypeError, ValueError) as error:
            raise membership_error(error, self.__group, self.__topics, self.__assignor) from error
        self.__offsets = BrokerAssignedOffsets(self.__thread.consumer, self.__cell, self.__group)

    def start(self, timeout_s: float = 30.0) -> Self:
        """Connect, and join in the background. A second call has no effect.

        Raises:
            MembershipError: no broker answered in time, or the subscription is invalid.
        """
        self.__process.check()
        if not self.__thread.started:
            try:
                self.__thread.start(self.__topics, timeout_s)
            except KafkaException as error:
                raise membership_error(error, self.__group, self.__topics, self.__assignor) from error
        return self

    def close(self) -> None:
        """Release all partitions (`on_revoked` is called), leave the group, and end. A second call has no effect.

        Without an answer of the coordinator it ends after 20 s, or 6 s after a callback that took longer. Partitions
        that are not revoked by then are lost (`on_lost` is called).

        Raises:
            MembershipError: called in a callback, for which it would wait; or the coordinator does not answer, and a
                callback has not returned for max.poll.interval.ms.
        """
        if not self.__process.forked:
            self.__thread.end()

    def __enter__(self) -> Self:
        return self.start()

    def __exit__(self, *_: object) -> None:
        self.close()

    @property
    def ends(self) -> bool:
        """Whether it closes or has failed: it need not answer requests for offsets any more."""
        return self.__thread.ends or self.__process.forked or self.__cell.failed is not None

    @property
    def fatal(self) -> bool:
        """Whether a new member would fail, too: missing rights, wrong settings, or a newer member with its id."""
        error = self.__cell.failed
        return isinstance(error, KafkaException) and is_fatal(error.args[0])

    @property
    def failed(self) -> BaseException | None:
        """The error that ended the membership, None while it continues."""
        return self.__process.error() if self.__process.forked else self.__cell.failed

    def ownership(self) -> Ownership:
        """Return the current ownership; never waits."""
        return self.__cell.value.outside() if self.__process.forked else self.__cell.value

    def wait_joined(self, timeout_s: float) -> Ownership:
        """Wait until the broker has assigned partitions, or has none for this member.

        Raises:
            MembershipError: the broker has not answered in time, or the membership ended.
        """
        self.__process.check()
        found = self.__cell.wait(lambda now: now.joined, timeout_s)
        if found is None:
            self.__raise_failed()
            raise MembershipError(f"group {self.__group!r}: not joined after {timeout_s:g} s")
        return found

    def commit(self, offsets: Mapping[TopicPartition, Offset], timeout_s: float = 10.0) -> None:
        """Commit the next offset of each partition under this member's epoch, and wait for the answer.

        Raises:
            NotOwnedError: a partition is not owned; nothing was committed.
            FencedError: the group continued without this member.
            MembershipError: the coordinator did not answer in time, or refused.
        """
        self.__raise_failed()
        if offsets:
            self.__thread.ask(lambda: self.__offsets.commit(offsets), timeout_s)

    def committed(self, partitions: Iterable[TopicPartition], timeout_s: float = 10.0) -> dict[TopicPartition, int]:
        """Return the group's committed offsets, without partitions that have none.

        Raises:
            MembershipError: the coordinator did not answer in time, or refused.
        """
        return {key: at.offset for key, at in self.committed_with_metadata(partitions, timeout_s).items()}

    def committed_with_metadata(
        self, partitions: Iterable[TopicPartition], timeout_s: float = 10.0
    ) -> dict[TopicPartition, OffsetWithMetadata]:
        """Like `committed`, with the metadata of each offset; raises the same errors."""
        return with_metadata(self.committed_by_partition(partitions, timeout_s))

    def committed_by_partition(
        self, partitions: Iterable[TopicPartition], timeout_s: float = 10.0
    ) -> list[KafkaPartition]:
        """Like `committed`, in the order of the partitions, each with its own error."""
        self.__raise_failed()
        asked = list(partitions)
        if self.__thread.ends:  # while it closes, librdkafka lets each request for offsets time out
            raise MembershipError(f"no offsets of group {self.__group!r}: its member closes") from TimeoutError()
        return self.__thread.ask(lambda: self.__offsets.committed(asked, timeout_s), timeout_s + STEP_S)

    def group_metadata(self) -> bytes:
        """Return the argument of `Producer.send_offsets_to_transaction`, with the current epoch and member id."""
        self.__raise_failed()
        return self.__thread.metadata

    def set_sasl_credentials(self, username: str, password: str) -> None:
        """Use these credentials for all later connections."""
        self.__thread.ask(lambda: self.__thread.consumer.set_sasl_credentials(username, password), _CREDENTIALS_S)

    def __raise_failed(self) -> None:
        self.__process.check()
        if (error := self.__cell.failed) is not None:
            raise membership_error(error, self.__group, self.__topics, self.__assignor) from error
