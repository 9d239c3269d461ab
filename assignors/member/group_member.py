# ruff: noqa: SLF001 -- kafka-python's coordinator is inside its consumer
"""Membership of a consumer group without fetching: a separate thread keeps the membership."""

import re
import threading
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from types import TracebackType
from typing import Any, Final, Self

from kafka import KafkaConsumer
from kafka.coordinator.assignors.abstract import AbstractPartitionAssignor
from kafka.errors import FencedInstanceIdError, KafkaError, KafkaTimeoutError

from assignors.clients.kafka_python_creation import connected
from assignors.clients.log_offsets import Offset, OffsetWithMetadata
from assignors.errors import NO_PATTERN, FencedError, MembershipError
from assignors.member.callback_thread import Callback
from assignors.member.fatal_errors import FATAL, OnRefused, way_out
from assignors.member.kafka_python_corrections import correct_joins
from assignors.member.member_commits import FencedCommits
from assignors.member.membership_thread import MemberThread, OnTopics
from assignors.member.own_process import OwnProcess
from assignors.member.ownership import Ownership, OwnershipCell
from assignors.member.rebalance_listener import RebalanceListener
from assignors.planner.topics_and_members import TopicPartition

_DEFAULTS: Final[Mapping[str, object]] = {
    "allow_auto_create_topics": False,  # a metadata request must not create a topic
    "metrics_enabled": False,
    # librdkafka's pauses between connections. kafka-python's grow to 30 s, so after an outage of all brokers a member
    # stayed away from its group for that long.
    "reconnect_backoff_ms": 100,
    "reconnect_backoff_max_ms": 10_000,
}


class GroupMember:
    """A member of a consumer group that fetches nothing.

    Contract:
    * Between `start` and `close` a separate thread joins, keeps the membership and rejoins: brokers may die, the
      coordinator may move, the session may expire, topics may be created and deleted. Only an error that a retry cannot
      fix ends it; `failed` then has it, and every later call raises it.
    * Callbacks run one after another in another thread while heartbeats continue. They get the changed partitions, and
      may commit and request offsets, but not close. A callback that raises, or calls sys.exit(), is logged and counts
      as returned.
    * `on_revoked` is called before the partitions can go to another member. The group waits for its return, at most
      `callback_timeout_s`. `on_lost` is called when other members may own them already: commits would be refused.
      Without `on_lost`, `on_revoked` is called for both (KIP-429).
    * All other methods may be called from any thread, `close` also in a handler of a signal. An error of `awake`,
      `on_topics` or `on_refused` ends the membership; one of `on_change` is logged.
    * A member belongs to the process that started it. In a forked child it owns nothing, `close` has no effect, and
      other calls raise a MembershipError. A member that is not started yet may be started there.

    Args:
        config: settings of kafka-python's KafkaConsumer: bootstrap_servers, group_id, group_instance_id, client_rack,
            session_timeout_ms, heartbeat_interval_ms, metadata_max_age_ms (delay until new topics are seen), security.
        topics: subscribed names; a topic that does not exist yet is assigned after its creation.
        pattern: instead of names, a regular expression that whole names must match; it may match nothing yet.
        assignors: instances, the preferred one first; all members of a group need one in common.
        on_assigned: called with assigned partitions.
        on_revoked: called with revoked partitions.
        on_lost: called with lost partitions.
        callback_timeout_s: longest time that the group waits for a callback, below max_poll_interval_ms.
        awake: called before each step; while it returns False, the member joins no rebalance, and after
            max_poll_interval_ms it leaves the group until it is awake again.
        on_change: called after each change of the ownership or of `failed`, in any thread; it must not wait.
        on_topics: called in the member's thread when the brokers have listed topics. It gets the existing topics (of
            the subscribed ones, or of all under a pattern), and the topics that this client may not read.
        on_refused: called with each distinct error with which a broker refuses the member (kafka-python's), once until
            it has joined, and whether the broker was asked for the coordinator. Missing rights, a full group, other
            assignors and wrong passwords then do not end the membership: it tries again. None: they end it.
        quiet_s: seconds between two calls of `awake` if nothing else happens.
        ends_with_session: if the coordinator does not answer for a session, call `on_lost` and own nothing until it
            answers again, as librdkafka does. Without it the member keeps its partitions until a coordinator answers
            that the group has continued without this member, as Java's client does.
        reports_empty: call `on_assigned` also at the end of a rebalance that brings no partition, with an empty set, as
            librdkafka does.

    Raises:
        MembershipError: no group id, no assignor, neither or both of topics and pattern, a pattern that is not a
            regular expression, or a setting unknown to kafka-python.
    """

    def __init__(  # noqa: PLR0913 - each is named at the call
        self,
        config: Mapping[str, Any],
        *,
        topics: Collection[str] = (),
        pattern: str | None = None,
        assignors: Sequence[AbstractPartitionAssignor],
        on_assigned: Callback | None = None,
        on_revoked: Callback | None = None,
        on_lost: Callback | None = None,
        callback_timeout_s: float = 60.0,
        awake: Callable[[], bool] = lambda: True,
        on_change: Callable[[], object] = lambda: None,
        on_topics: OnTopics = lambda _known, _unauthorized: None,
        on_refused: OnRefused | None = None,
        quiet_s: float = 1.0,
        ends_with_session: bool = False,
        reports_empty: bool = False,
    ) -> None:
        self.__config = {**_DEFAULTS, **config}
        self.__config |= {"enable_auto_commit": False, "partition_assignment_strategy": list(assignors)}
        _check(self.__config, topics, pattern)
        self.__topics = sorted(topics)
        # kafka-python matches the beginning of a name, so the end is added to the pattern.
        self.__pattern = None if pattern is None else f"^(?:{pattern})$"
        self.__cell = OwnershipCell(on_change)
        self.__callbacks = (on_assigned, on_revoked, on_lost)
        self.__callback_timeout_s = callback_timeout_s
        self.__awake = awake
        self.__on_topics = on_topics
        self.__on_refused = on_refused
        self.__quiet_s = quiet_s
        self.__ends_with_session = ends_with_session
        self.__reports_empty = reports_empty
        self.__closed = False
        # close() during start() waits for start(), then ends the member; a handler of a signal does not wait.
        self.__starting = threading.RLock()
        self.__process = OwnProcess()
        self.__consumer: Any = None
        self.__listener: RebalanceListener | None = None
        self.__offsets: FencedCommits | None = None
        self.__thread: MemberThread | None = None

    def start(self) -> Self:
        """Connect, and join in the background. A second call has no effect.

        Raises:
            MembershipError: no broker answered (within bootstrap_timeout_ms), a setting is invalid, or it is closed.
        """
        self.__process.check()
        with self.__starting:
            self.__check_open()
            if self.__thread is None:
                self.__process.begin()
                try:
                    self.__begin()
                except BaseException:
                    self.__process.end()
                    raise
            if self.__closed:  # by a handler of a signal, meanwhile
                self.__end(leave=True, also_static=False)
            self.__check_open()
        return self

    def __check_open(self) -> None:
        if self.__closed:
            raise MembershipError("this member is closed: make a new one")

    def __begin(self) -> None:
        consumer = self.__connect()
        listener = None
        try:
            listener = self.__new_listener()
            listener.attach(consumer._manager, consumer._coordinator)
            correct_joins(consumer._coordinator, listener.on_joined)
            consumer.subscribe(topics=self.__topics, pattern=self.__pattern, listener=listener)
            thread = self.__new_thread(consumer, listener)
        except BaseException as error:
            if listener is not None:
                listener.thread.end()
            consumer.close(autocommit=False)
            if isinstance(error, (KafkaError, ValueError, TypeError)):
                raise self.__cannot_join(error) from error
            raise
        self.__consumer, self.__listener, self.__thread = consumer, listener, thread
        self.__offsets = FencedCommits(consumer, self.__cell, listener.fail)
        thread.start()

    def __new_listener(self) -> RebalanceListener:
        on_assigned, on_revoked, on_lost = self.__callbacks
        return RebalanceListener(
            self.__cell,
            on_assigned=on_assigned,
            on_revoked=on_revoked,
            on_lost=on_lost,
            timeout_s=self.__callback_timeout_s,
            name=f"group-callbacks-{self.__config['group_id']}",
            reports_empty=self.__reports_empty,
        )

    def __new_thread(self, consumer: Any, listener: RebalanceListener) -> MemberThread:  # noqa: ANN401 -- untyped
        return MemberThread(
            consumer,
            listener,
            self.__cell,
            self.__awake,
            self.__on_topics,
            on_refused=self.__on_refused,
            quiet_s=self.__quiet_s,
            ends_with_session=self.__ends_with_session,
        )

    def close(self, leave: bool = True, *, also_static: bool = False) -> None:  # noqa: FBT001, FBT002 - public
        """Release all partitions (`on_revoked` is called), and end.

        A second call has no effect, except that it waits for the end. After Ctrl-C the end goes on in the background.

        Args:
            leave: send LeaveGroup, so that others take over immediately. Without it, the partitions are reserved for
                this member until its session expires.
            also_static: with `leave`, even if there is a group_instance_id (KIP-345), which by default reserves the
                partitions.

        Raises:
            MembershipError: called in a callback, for which it would wait.
        """
        if self.__process.forked:
            return
        if (self.__listener is not None and self.__listener.thread.here()) or (
            self.__thread is not None and self.__thread.here()
        ):
            raise MembershipError("close() was called in a callback, whose return it waits for: call it elsewhere")
        with self.__starting:
            self.__closed = True
        self.__end(leave=leave, also_static=also_static)

    def __end(self, *, leave: bool, also_static: bool) -> None:
        if self.__thread is not None:
            self.__thread.end(leave=leave, also_static=also_static)

    def __enter__(self) -> Self:
        return self.start()

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    @property
    def fatal(self) -> bool:
        """Whether a new member would end for the same reason: rights, settings, a newer member of the same id."""
        return isinstance(self.__cell.failed, FATAL)

    @property
    def ends(self) -> bool:
        """Whether it closes or has failed: it need not answer requests for offsets any more."""
        return self.__closed or self.__process.forked or self.__cell.failed is not None

    @property
    def failed(self) -> BaseException | None:
        """The error that ended the membership, None while it continues."""
        return self.__process.error() if self.__process.forked else self.__cell.failed

    @property
    def answered_s(self) -> float:
        """When the coordinator answered last, or the wait for it began, in seconds of `time.monotonic`.

        Raises:
            MembershipError: not started.
        """
        if self.__consumer is None:
            raise MembershipError("this member is not started: ask after start()")
        heartbeat = self.__consumer._coordinator.heartbeat
        return float(max(heartbeat.last_receive, heartbeat.last_reset))

    def ownership(self) -> Ownership:
        """The current ownership; never waits."""
        return self.__cell.value.outside() if self.__process.forked else self.__cell.value

    def wait_joined(self, timeout_s: float) -> Ownership:
        """Wait until no rebalance is in progress.

        Raises:
            MembershipError: the rebalance did not end in time, or the membership ended.
        """
        return self.wait_for(lambda now: now.joined, timeout_s)

    def wait_for(self, fits: Callable[[Ownership], bool], timeout_s: float) -> Ownership:
        """Wait until the ownership fits.

        Raises:
            MembershipError: the ownership did not fit in time, or the membership ended.
        """
        self.__process.check()
        found = self.__cell.wait(fits, timeout_s)
        if found is None:
            self.__raise_failed()
            raise MembershipError(f"group {self.__config['group_id']!r}: not as awaited after {timeout_s:g} s")
        return found

    def commit(self, offsets: Mapping[TopicPartition, Offset], timeout_s: float = 10.0) -> None:
        """Commit the next offset of each partition, with generation and member id, and wait for the answer.

        An offset is a number, or `OffsetWithMetadata`: the number with a metadata text.

        Raises:
            NotOwnedError: a partition is not owned; nothing was committed.
            FencedError: the group continued without this member.
            MembershipError: the coordinator did not answer in time, or refused.
        """
        self.__started().commit(offsets, timeout_s)

    def committed(self, partitions: Iterable[TopicPartition], timeout_s: float = 10.0) -> dict[TopicPartition, int]:
        """Return the group's committed offsets, without partitions that have none. One request.

        Raises:
            MembershipError: the coordinator did not answer in time, or refused.
        """
        return self.__started().committed(partitions, timeout_s)

    def committed_with_metadata(
        self, partitions: Iterable[TopicPartition], timeout_s: float = 10.0
    ) -> dict[TopicPartition, OffsetWithMetadata]:
        """As `committed`, with the metadata of each offset."""
        return self.__started().committed_with_metadata(partitions, timeout_s)

    def set_sasl_credentials(self, username: str, password: str) -> None:
        """Use these credentials from the next connection on."""
        credentials = {"sasl_plain_username": username, "sasl_plain_password": password}
        self.__config |= credentials
        if self.__consumer is not None:
            self.__consumer._manager.config.update(credentials)

    def beginning_offsets(
        self, partitions: Iterable[TopicPartition], timeout_s: float = 10.0
    ) -> dict[TopicPartition, int]:
        """Return the first offset of each log, without partitions that have no leader. One request per broker."""
        return self.__started().beginnings(partitions, timeout_s)

    def end_offsets(self, partitions: Iterable[TopicPartition], timeout_s: float = 10.0) -> dict[TopicPartition, int]:
        """Return the exclusive end of each log (with read_committed, before any open transaction).

        Without partitions that have no leader. One request per broker.
        """
        return self.__started().ends(partitions, timeout_s)

    def offsets_for_times(
        self, times_ms: Mapping[TopicPartition, int], timeout_s: float = 10.0
    ) -> dict[TopicPartition, int]:
        """Return the first offset at or after a time, or none if all records are earlier. One request per broker."""
        found = self.__started().at_times(times_ms, timeout_s)
        return {key: at for key, at in found.items() if at is not None}

    def rejoin(self) -> None:
        """Request a rebalance; during a rebalance, request another one after it."""
        self.__started()
        assert self.__thread is not None  # noqa: S101 -- as checked
        self.__thread.rejoin()

    def __connect(self) -> Any:  # noqa: ANN401 - kafka-python is untyped
        try:
            return connected(KafkaConsumer, self.__config)
        except (KafkaError, ValueError, TypeError) as error:
            raise self.__cannot_join(error) from error

    def __cannot_join(self, error: BaseException) -> MembershipError:
        servers = self.__config.get("bootstrap_servers")
        hint = ""
        if isinstance(error, KafkaTimeoutError):
            hint = "; check that a broker listens there, with the security.protocol of this configuration"
        return MembershipError(
            f"cannot join group {self.__config['group_id']!r} with bootstrap_servers={servers!r}: {error!r}{hint}"
        )

    def __started(self) -> FencedCommits:
        self.__raise_failed()
        if self.__offsets is None or self.__consumer._closed:
            raise MembershipError("this member is not started, or closed: ask between start() and close()")
        return self.__offsets

    def __raise_failed(self) -> None:
        self.__process.check()
        if (error := self.__cell.failed) is not None:
            kind = FencedError if isinstance(error, FencedInstanceIdError) else MembershipError
            group = self.__config["group_id"]
            raise kind(f"the membership of group {group!r} ended: {error!r}{way_out(error)}") from error


def _check(config: Mapping[str, Any], topics: Collection[str], pattern: str | None) -> None:
    if not config.get("group_id"):
        raise MembershipError("a member of a group needs its name: give group_id")
    if isinstance(topics, str):
        raise MembershipError(f"topics={topics!r}: need a list of names, as [{topics!r}]")
    if bool(topics) == (pattern is not None):
        raise MembershipError(f"topics={topics!r} and pattern={pattern!r}: give either topics or pattern")
    try:
        re.compile(pattern or "")
    except NO_PATTERN as error:
        raise MembershipError(f"pattern={pattern!r} is not a regular expression ({error})") from error
    if not config["partition_assignment_strategy"]:
        raise MembershipError("assignors=[]: a member offers one at least, as HRWAssignor()")
    unknown = config.keys() - KafkaConsumer.DEFAULT_CONFIG.keys()
    if unknown:
        raise MembershipError(
            f"kafka-python has no setting {', '.join(sorted(unknown))}: names are those of KafkaConsumer"
        )
