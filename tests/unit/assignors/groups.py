"""Members and leaders of a group as kafka-python makes them, through the wire."""

from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

from kafka.protocol.consumer.metadata import ConsumerProtocolAssignment, ConsumerProtocolSubscription

Given = dict[str, set[tuple[str, int]]]


class Cluster:
    """The part of kafka-python's cluster metadata that an assignor reads."""

    def __init__(self, topics: dict[str, int], racks: dict[int, str] | None = None) -> None:
        """Create topics whose partition p has its leader and only replica on broker p modulo the brokers."""
        self._racks = racks or {}
        self._listeners: set[object] = set()
        count = max(1, len(self._racks))
        self._partitions = {
            t: {p: SimpleNamespace(leader_id=p % count, replica_nodes=[p % count]) for p in range(n)}
            for t, n in topics.items()
        }

    def partitions_for_topic(self, topic: str) -> set[int] | None:
        """As kafka-python."""
        return set(self._partitions[topic]) if topic in self._partitions else None

    def brokers(self) -> list[SimpleNamespace]:
        """As kafka-python."""
        return [SimpleNamespace(node_id=n, rack=r) for n, r in self._racks.items()]


def joined(assignor: Any, member_id: str, topics: set[str], instance: str | None = None) -> SimpleNamespace:
    """Join through the wire format: the leader reads the member's encoded metadata."""
    raw = assignor.metadata(topics).encode()
    return SimpleNamespace(
        member_id=member_id, group_instance_id=instance, metadata=ConsumerProtocolSubscription.decode(raw)
    )


def read(answer: dict[str, ConsumerProtocolAssignment]) -> Given:
    """Read the leader's answer through the wire."""
    decoded = {m: ConsumerProtocolAssignment.decode(a.encode()).partitions() for m, a in answer.items()}
    return {m: {(tp.topic, tp.partition) for tp in mine} for m, mine in decoded.items()}


class Group:
    """A group whose members are assignors: in each round they join, the first leads, and all get their assignment."""

    def __init__(self, make: Callable[[str], Any], cluster: Cluster, topics: set[str]) -> None:
        """Make a group without members."""
        self.make, self.cluster, self.topics = make, cluster, topics
        self.members: dict[str, Any] = {}
        self.generation = 0
        self.holds: Given = {}

    def join(self, *names: str) -> None:
        """Let members in."""
        self.members |= {name: self.make(name) for name in names}

    def rebalance(self) -> Given:
        """Run one generation."""
        self.generation += 1
        people = [joined(a, name, self.topics) for name, a in self.members.items()]
        leader = next(iter(self.members.values()))
        answer = leader.assign(self.cluster, people)
        for name, assignor in self.members.items():
            raw = answer[name].encode()
            assignor.on_assignment(ConsumerProtocolAssignment.decode(raw), self.generation)
        self.holds = read(answer)
        return self.holds
