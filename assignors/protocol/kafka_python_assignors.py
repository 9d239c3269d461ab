"""The assignors as kafka-python takes them: instances in `partition_assignment_strategy`.

KafkaConsumer(partition_assignment_strategy=[HRWAssignor(workers=2)], group_id="ingest", ...)
"""

import threading
from typing import Any, Final

from kafka.protocol.consumer.metadata import ConsumerProtocolAssignment, ConsumerProtocolSubscription

from assignors.errors import WorkersError
from assignors.planner.load_bounds import check_epsilon
from assignors.planner.member_hosts import Node, node_numbers
from assignors.planner.plan import check_seed, plan
from assignors.planner.plan_result import Plan
from assignors.planner.rack_locality import RackBy
from assignors.planner.topics_and_members import Member, Topic
from assignors.protocol.base_assignor import Assignor
from assignors.protocol.rebalance_trigger import Rejoin, WorkersWatch
from assignors.protocol.worker_caps_source import WorkersSetting, WorkersSource

_EPSILON: Final = 0.05


class HRWAssignor(Assignor):
    """Sticky assignment whose prior is rendezvous hashing (highest random weight).

    Contract:
    * Runs on the group leader with heartbeats blocked: no I/O, no sleep.
    * The order of `members` means nothing; equal input gives an equal plan: without a change nothing moves.
    * Claims are hints. A stale, doubled or impossible one (KIP-792) is dropped, never believed and never fatal.
    * `members` is read only; the result is new and the caller may change it.
    * Every partition whose topic has a subscriber is given, whatever the members sent.
    """

    strategy = "hrw"

    def __init__(  # noqa: PLR0913, PLR0917 - the settings are the public surface
        self,
        workers: WorkersSetting = None,
        epsilon: float = 0.05,
        weight: float = 1.0,
        rack: str | None = None,
        agent: str | None = None,
        seed: int = 0,
        cooperative: bool = False,  # noqa: FBT001, FBT002
        *,
        rack_by: RackBy = "replicas",
        node: Node = None,
        watch_interval_s: float = 5.0,
    ) -> None:
        """Configure; all members of a group the same, but for `weight`, `rack` and `agent`.

        Args:
            workers: most distinct members of a topic: a number, a mapping of topics or patterns to numbers, a function
                that returns one of these, or the path of a JSON file with one. When a function's or file's value
                changes, the leader asks for a rebalance.
            epsilon: allowed distance from the fair share; 0 is exact balance.
            weight: capacity of this member relative to the others.
            rack: where this member is; kafka-python does not hand its `client_rack` to an assignor.
            agent: identity that survives a restart, where there is no group_instance_id.
            seed: another seed, another ranking.
            cooperative: incremental rebalancing (KIP-429), under the name `hrw-cooperative`.
            rack_by: local is where a replica is (`replicas`), or only where the leader is (`leader`).
            node: how to find the host in an identity: a function, or a pattern; see `assignors.planner.member_hosts`.
            watch_interval_s: seconds between two looks at a function or file.

        Raises:
            BoundError: epsilon is negative or not a finite number.
            MembershipError: agent or rack is no text, or too long.
            NodesError: node is no regular expression.
            StrategyError: no such rack_by, or a seed that is no whole number.
            WeightError: the weight is not a finite number above 0.
            WorkersError: workers below 1, no pattern, a file that cannot be read, or watch_interval_s not above 0.
        """
        super().__init__(rack=rack, agent=agent, weight=weight, cooperative=cooperative)
        check_epsilon(epsilon)
        self._workers = WorkersSource(workers)
        self._fixed = "" if workers is None else f"workers={'from outside' if self._workers.changes else workers!r}"
        self._epsilon = epsilon
        self._seed = seed
        self._rack_by: RackBy = rack_by
        self._node = node
        if not _is_interval(watch_interval_s):
            raise WorkersError(f"watch_interval_s={watch_interval_s!r}, need a finite number above 0")
        self._interval_s = watch_interval_s
        self._watch: WorkersWatch | None = None
        self._led = False
        check_seed(seed)
        plan((), (), rack_by=rack_by)  # raises StrategyError
        if not callable(node):
            node_numbers([Member(id="", topics=frozenset())], node)  # raises NodesError

    def metadata(self, topics: set[str]) -> ConsumerProtocolSubscription:
        """Say what this member wants, owns and is; before a join the workers are read anew."""
        if self._workers.changes:
            self._workers.refresh()
        return super().metadata(topics)

    def assign(self, cluster: Any, members: list[Any]) -> dict[str, ConsumerProtocolAssignment]:  # noqa: ANN401
        """Plan for the group, and look from now on whether the workers change."""
        planned = self._workers.value  # as it is before: what changes while the group is planned is seen as a change
        given = super().assign(cluster, members)
        self._led = True
        if self._workers.changes:
            self.stop_watch()
            rejoin = Rejoin(self, cluster)
            if rejoin.alive():
                self._watch = WorkersWatch(self._workers, planned, rejoin, self._interval_s)
            else:
                self._warn("rejoin", "no coordinator found: changed workers count from the next rebalance on")
        return given

    def on_assignment(self, assignment: ConsumerProtocolAssignment, generation: int) -> None:
        """Remember what was given; a member that leads no more stops looking at the workers."""
        if not self._led:
            self.stop_watch()
        self._led = False
        super().on_assignment(assignment, generation)

    def stop_watch(self) -> None:
        """Stop looking whether the workers change."""
        if self._watch is not None:
            self._watch.stop()
            self._watch = None

    def _plan(self, topics: list[Topic], members: list[Member]) -> Plan:
        return plan(
            topics,
            members,
            workers=self._workers.value,
            epsilon=self._epsilon,
            seed=self._seed,
            rack_by=self._rack_by,
            node=self._node,
        )

    def _configuration(self) -> str:
        parts = [self._fixed] if self._fixed else []
        parts += [f"epsilon={self._epsilon!r}"] if self._epsilon != _EPSILON else []
        parts += [f"seed={self._seed}"] if self._seed else []
        parts += [f"rack_by={self._rack_by}"] if self._rack_by != "replicas" else []
        return " ".join(parts)


class ShuffledRoundRobinAssignor(Assignor):
    """Round robin over a seeded shuffle of the members, each topic starting where the one before it ended.

    Many small topics under one pattern spread evenly. By default what a member owns stays with it (`keep=True`);
    `keep=False` deals all partitions anew at each rebalance. The contract is that of `HRWAssignor`.
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
        """Configure; all members of a group the same, but for `rack` and `agent`.

        Args:
            seed: another seed, another shuffle.
            rack: where this member is.
            agent: identity that survives a restart, where there is no group_instance_id.
            cooperative: incremental rebalancing (KIP-429), under the name `shuffled-cooperative`.
            keep: whether owned partitions stay where they may.
        """
        super().__init__(rack=rack, agent=agent, weight=1.0, cooperative=cooperative)
        check_seed(seed)
        self._seed = seed
        self._keep = keep

    def _plan(self, topics: list[Topic], members: list[Member]) -> Plan:
        return plan(topics, members, strategy="shuffled", epsilon=0, seed=self._seed, keep=self._keep)

    def _configuration(self) -> str:
        parts = [f"seed={self._seed}"] if self._seed else []
        parts += [] if self._keep else ["keep=False"]
        return " ".join(parts)


def _is_interval(seconds: object) -> bool:
    return isinstance(seconds, int | float) and 0 < seconds <= threading.TIMEOUT_MAX
