"""The reader's membership of the consumer group, and its requests for offsets."""

from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Any

import structlog

from assignors import MembershipError
from spark_sink.errors import JoinError
from spark_sink.kafka.client_property_names import (
    broker_assigned_config,
    kafka_python_config,
    librdkafka_config,
    why_unreachable,
)
from spark_sink.kafka.partition_offsets import PartitionOffsets
from spark_sink.options.source_options import SourceOptions
from spark_sink.ranges.assigned_positions import Assignment
from spark_sink.ranges.batch_offset import TopicPartition
from spark_sink.source.name_fence import name_fence

if TYPE_CHECKING:
    from kafka.coordinator.assignors.abstract import AbstractPartitionAssignor

    from assignors import BrokerAssignedMember, GroupMember
    from assignors.protocol import WorkersSetting

_log = structlog.get_logger("azimuth.source")
_COMMIT_S = 5.0
_LOOK_S = 2.0


class KafkaMembership(PartitionOffsets):
    """A member that joins at the first request of its assignment, and does not fetch."""

    def __init__(self, options: SourceOptions) -> None:
        super().__init__(options)
        self._member: GroupMember | BrokerAssignedMember | None = None
        self._last = Assignment()
        self._fence = name_fence(options)
        self._requests = ThreadPoolExecutor(1, "group-requests")

    def begin(self) -> None:
        """Begin to join, without a wait for the assignment.

        Raises:
            JoinError: the brokers refuse a topic to this user.
            MembershipError: the member cannot start.
        """
        self._joined()

    def assignment(self, timeout_s: float) -> Assignment:
        """Return the assignment; during a join, wait and then return the last one.

        Raises:
            JoinError: no broker answered, the group refuses this member for good, or an agent of its name is running.
        """
        try:
            member = self._joined()
            now = member.wait_joined(timeout_s)
        except MembershipError as error:
            if self._ended_for_now():
                _log.warning("the membership ended, joining again at the next trigger", reason=str(error))
                self._member, self._last = None, Assignment()
                return self._last
            if self._member is None or self._member.failed is not None:
                reason = why_unreachable(self._options.kafka)
                raise JoinError(f"{error}; {reason}" if reason else str(error)) from error
            _log.warning("the group is still rebalancing", seconds=timeout_s)
            return self._last
        self._refuse_second_of_its_name(now.member_id)
        held = frozenset(TopicPartition(*one) for one in now.partitions)
        self._last = Assignment(generation=now.generation, partitions=held)
        return self._last

    def commit(self, positions: Mapping[TopicPartition, int]) -> bool:
        """Commit offsets to the group, fenced by this member's generation."""
        if self._member is None:
            return False
        try:
            self._member.commit(dict(positions.items()), timeout_s=_COMMIT_S)
        except MembershipError as error:
            _log.info("offsets were not committed, the next trigger does it", reason=str(error))
            return False
        return True

    def begin_commit(self, positions: Mapping[TopicPartition, int]) -> Callable[[], bool]:
        """Commit in a thread, because the ends of the logs may be requested at the same time."""
        return self._requests.submit(self.commit, positions).result

    def leave(self) -> None:
        """Leave the group immediately."""
        if self._member is not None:
            self._member.close()
        if self._fence is not None:
            self._fence.leave()
        self._member, self._last, self._fence = None, Assignment(), name_fence(self._options)

    def _ended_for_now(self) -> bool:
        """Whether the broker may take a new member, as when the session of one with the same instance id has ended."""
        member = self._member
        if member is None or broker_assigned_config(self._options.kafka) is None:
            return False
        return member.failed is not None and not member.fatal

    def _refuse_second_of_its_name(self, own: str) -> None:
        if self._fence is None:
            return
        self._fence.joined(own)
        if self._fence.refusal is not None:
            raise JoinError(self._fence.refusal)

    def _joined(self) -> "GroupMember | BrokerAssignedMember":
        if self._member is None:
            options = self._options
            config = broker_assigned_config(options.kafka)
            if config is None:
                self._member = self._started_when_allowed()
            else:
                self.check_rights(options.topics)
                self._member = _member_of_broker(config, options).start()
            self.connect_ahead()
        return self._member

    def _started_when_allowed(self) -> "GroupMember":
        """Return a member that joins as soon as it is known that no topic is refused; it connects meanwhile."""
        rights = self._requests.submit(self.check_rights, self._options.topics)
        member = self._member_of_classic(awake=lambda: rights.exception() is None).start()
        try:
            rights.result()
        except BaseException:  # Ctrl-C, too
            member.close()
            raise
        return member

    def _member_of_classic(self, awake: Callable[[], bool]) -> "GroupMember":
        # Imported here, because it loads kafka-python's coordinator, which tasks do not need.
        from assignors import GroupMember

        options = self._options
        return GroupMember(
            self._config(),
            topics=options.topics,
            pattern=options.pattern,
            assignors=[self._assignor()],
            awake=awake,
        )

    def _config(self) -> dict[str, Any]:
        return kafka_python_config(self._options.kafka)

    def _assignor(self) -> "AbstractPartitionAssignor":
        from assignors import HRWAssignor, ShuffledRoundRobinAssignor

        options = self._options
        if options.assignor == "shuffled":
            return ShuffledRoundRobinAssignor(rack=options.rack, agent=options.agent)
        return HRWAssignor(
            workers=self._workers(),
            watch_interval_s=_LOOK_S,
            epsilon=options.epsilon,
            rack=options.rack,
            agent=options.agent,
        )

    def _workers(self) -> "WorkersSetting":
        options = self._options
        if options.workers_topic is None:
            return options.workers
        from spark_sink.source.autoscaled_workers import FollowedWorkers

        config = librdkafka_config(options.kafka)
        return FollowedWorkers(config, options.workers_topic, options.group, options.workers)


def _member_of_broker(config: Mapping[str, Any], options: SourceOptions) -> "BrokerAssignedMember":
    from assignors import BrokerAssignedMember

    topics = options.topics or [f"^({options.pattern})$"]
    return BrokerAssignedMember(config, topics=topics)
