"""Plans of kafka-python's own assignors, computed without a broker, for comparison."""

from collections.abc import Iterable, Mapping
from types import SimpleNamespace
from typing import Any, Final

from kafka.coordinator.assignors.range import RangePartitionAssignor
from kafka.coordinator.assignors.roundrobin import RoundRobinPartitionAssignor
from kafka.coordinator.assignors.sticky.sticky_assignor import StickyPartitionAssignor
from kafka.protocol.consumer.metadata import ConsumerProtocolSubscription
from kafka.structs import TopicPartition as KafkaPartition

from assignors.clients.kafka_python_internals import sticky_subscription
from assignors.planner.topics_and_members import Member, Topic, TopicPartition

_ASSIGNORS: Final[Mapping[str, Any]] = {
    "range": RangePartitionAssignor,
    "round robin": RoundRobinPartitionAssignor,
    "sticky": StickyPartitionAssignor,
}
STOCK: Final = tuple(_ASSIGNORS)


def stock_plan(
    strategy: str, topics: Iterable[Topic], members: Iterable[Member]
) -> dict[str, frozenset[TopicPartition]]:
    """Plan with one of kafka-python's assignors.

    Args:
        strategy: one of `STOCK`; only `sticky` uses what members own.
        topics: the topics that the group could read.
        members: of the group, with what they own.

    Returns:
        The partitions of each member.

    Raises:
        Exception: any that the assignor raises; round robin raises if subscriptions differ (3.0.12).
    """
    counts = {topic.name: set(range(topic.partitions)) for topic in topics}
    cluster = SimpleNamespace(partitions_for_topic=counts.get, topics=lambda: set(counts))
    joined = [_joined(strategy, member) for member in members]
    given = _ASSIGNORS[strategy]().assign(cluster, joined)
    return {
        member: frozenset((topic, p) for topic, numbers in assignment.assigned_partitions for p in numbers)
        for member, assignment in given.items()
    }


def _joined(strategy: str, member: Member) -> SimpleNamespace:
    if strategy == "sticky":
        owned = [KafkaPartition(topic, number) for topic, number in sorted(member.owned)]
        metadata = sticky_subscription(sorted(member.topics), owned, 1)
    else:
        metadata = ConsumerProtocolSubscription(version=0, topics=sorted(member.topics), user_data=b"")
    return SimpleNamespace(member_id=member.id, group_instance_id=member.instance, metadata=metadata)
