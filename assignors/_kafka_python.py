"""The assignors as kafka-python takes them: instances in `partition_assignment_strategy`."""

import logging
from collections.abc import Callable, Mapping
from typing import Any, ClassVar

from kafka.coordinator.assignors.abstract import AbstractPartitionAssignor, RebalanceProtocol
from kafka.protocol.consumer.metadata import ConsumerProtocolAssignment, ConsumerProtocolSubscription

from assignors._bound import check_epsilon
from assignors._model import Member, Topic, TopicPartition
from assignors._plan import Strategy, plan
from assignors._result import Plan
from assignors._subscription import UserData, decode_member, encode_subscription
from assignors._workers import Workers, check_workers

log = logging.getLogger(__name__)


class _Assignor(AbstractPartitionAssignor):
    """What both assignors share: the protocol. The subclass says how to plan."""

    strategy: ClassVar[Strategy]

    def __init__(self, *, rack: str | None, agent: str | None, weight: float, cooperative: bool) -> None:
        Member(id="", topics=frozenset(), weight=weight)
        self._name = f"{self.strategy}-cooperative" if cooperative else self.strategy
        self._rack = rack
        self._agent = agent
        self._weight = weight
        self._cooperative = cooperative
        self._owned: tuple[TopicPartition, ...] = ()
        self._generation = -1
        self._warned: set[str] = set()
        self.last_plan: Plan | None = None

    @property
    def name(self) -> str:
        """The name the group agrees on: all members must offer it."""
        return self._name

    def supported_protocols(self) -> list[RebalanceProtocol]:
        """One protocol an instance: kafka-python refuses to mix eager and cooperative (KIP-429)."""
        return [RebalanceProtocol.COOPERATIVE if self._cooperative else RebalanceProtocol.EAGER]

    def metadata(self, topics: set[str]) -> ConsumerProtocolSubscription:
        """Say what this member wants, owns and is."""
        owned = [(t, p) for t, p in self._owned if t in topics]
        data = UserData(agent=self._agent, weight=self._weight, plan=self._configuration())
        return encode_subscription(topics, owned, self._generation, self._rack, data.encode())

    def on_assignment(self, assignment: ConsumerProtocolAssignment, generation: int) -> None:
        """Remember what was given, to claim it at the next join (KIP-792)."""
        self._owned = tuple((t, p) for t, partitions in assignment.assigned_partitions for p in partitions)
        self._generation = generation

    def assign(self, cluster: Any, members: list[Any]) -> dict[str, ConsumerProtocolAssignment]:  # noqa: ANN401
        """Plan for the group. Called on the leader inside the event loop: no I/O, and it never raises."""
        read = [decode_member(m) for m in members]
        people = [m for m, _ in read]
        wanted = sorted({t for m in people for t in m.topics})
        made = self._plan([t for name in wanted if (t := _topic(cluster, name)) is not None], people)
        self.last_plan = made
        withheld = {pair for pairs in made.withheld.values() for pair in pairs} if self._cooperative else set()
        return {
            member: _assignment([pair for pair in mine if pair not in withheld])
            for member, mine in made.partitions.items()
        }

    def _plan(self, topics: list[Topic], members: list[Member]) -> Plan:
        raise NotImplementedError

    def _configuration(self) -> str:
        return ""


class HRWAssignor(_Assignor):
    """Sticky assignment whose prior is rendezvous hashing (highest random weight).

    Contract:
    * Runs on the group leader with heartbeats blocked: no I/O, no sleep.
    * The order of `members` means nothing; equal input gives an equal plan: without a change nothing moves.
    * Claims are hints. A stale, doubled or impossible one (KIP-792) is dropped, never believed and never fatal.
    * `members` is read only; the result is new and the caller may change it.
    """

    strategy = "hrw"

    def __init__(  # noqa: PLR0913, PLR0917 - the settings are the public surface
        self,
        workers: Workers | Callable[[], Workers] = None,
        epsilon: float = 0.05,
        weight: float = 1.0,
        rack: str | None = None,
        agent: str | None = None,
        seed: int = 0,
        cooperative: bool = False,  # noqa: FBT001, FBT002
    ) -> None:
        super().__init__(rack=rack, agent=agent, weight=weight, cooperative=cooperative)
        check_epsilon(epsilon)
        if workers is None or isinstance(workers, int | Mapping):
            check_workers(workers)
        self._workers = workers
        self._epsilon = epsilon
        self._seed = seed

    def _plan(self, topics: list[Topic], members: list[Member]) -> Plan:
        workers = self._workers() if callable(self._workers) else self._workers
        return plan(topics, members, workers=workers, epsilon=self._epsilon, seed=self._seed)


class ShuffledRoundRobinAssignor(_Assignor):
    """Round robin over a seeded shuffle of the members, each topic starting where the one before it ended.

    Many small topics under one pattern spread evenly. By default what a member owns stays with it (`keep=True`);
    `keep=False` deals all partitions anew at each rebalance.
    """

    strategy = "shuffled"

    def __init__(
        self,
        seed: int = 0,
        rack: str | None = None,
        agent: str | None = None,
        cooperative: bool = False,  # noqa: FBT001, FBT002
        keep: bool = True,  # noqa: FBT001, FBT002
    ) -> None:
        super().__init__(rack=rack, agent=agent, weight=1.0, cooperative=cooperative)
        self._seed = seed
        self._keep = keep

    def _plan(self, topics: list[Topic], members: list[Member]) -> Plan:
        return plan(topics, members, strategy="shuffled", epsilon=0, seed=self._seed, keep=self._keep)


def _assignment(pairs: list[TopicPartition]) -> ConsumerProtocolAssignment:
    by_topic: dict[str, list[int]] = {}
    for topic, partition in pairs:
        by_topic.setdefault(topic, []).append(partition)
    pairs_of_topics: list[Any] = list(by_topic.items())
    return ConsumerProtocolAssignment(version=0, assigned_partitions=pairs_of_topics, user_data=b"")


def _topic(cluster: Any, name: str) -> Topic | None:  # noqa: ANN401 - untyped in kafka-python
    numbers = cluster.partitions_for_topic(name)
    if not numbers:
        return None
    count = max(numbers) + 1
    state = getattr(cluster, "_partitions", {}).get(name, {})
    racks = {b.node_id: b.rack for b in cluster.brokers() if b.rack}
    if not racks or not state:
        return Topic(name, count)
    return Topic(
        name,
        count,
        racks=[
            frozenset(racks[n] for n in getattr(state.get(p), "replica_nodes", ()) if n in racks) for p in range(count)
        ],
        leaders=[racks.get(getattr(state.get(p), "leader_id", -1)) for p in range(count)],
    )
