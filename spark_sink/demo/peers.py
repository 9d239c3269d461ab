"""What kafka-python's own assignors would do, asked of them without a broker."""

from collections.abc import Mapping, Sequence
from types import SimpleNamespace
from typing import Any

from kafka.coordinator.assignors.range import RangePartitionAssignor
from kafka.coordinator.assignors.roundrobin import RoundRobinPartitionAssignor

_STRATEGIES: dict[str, Any] = {"range": RangePartitionAssignor, "round_robin": RoundRobinPartitionAssignor}


def assign(strategy: str, topics: Mapping[str, int], agents: Sequence[str]) -> dict[str, set[tuple[str, int]]]:
    """The partitions of each agent, all subscribed to all topics.

    Args:
        strategy: `range` or `round_robin`.
        topics: partitions of each topic.
        agents: member ids.
    """
    cluster = SimpleNamespace(partitions_for_topic=lambda topic: set(range(topics[topic])))
    members = [
        SimpleNamespace(member_id=a, group_instance_id=None, metadata=SimpleNamespace(topics=sorted(topics)))
        for a in agents
    ]
    plan = _STRATEGIES[strategy].assign(cluster, members)
    return {
        agent: {(topic, p) for topic, partitions in plan[agent].assigned_partitions for p in partitions}
        for agent in agents
    }
