"""The assignors for kafka-python, used as instances in `partition_assignment_strategy`.

KafkaConsumer(partition_assignment_strategy=[HRWAssignor(workers=2)], group_id="ingest", ...)
"""

import threading
from dataclasses import dataclass
from typing import Any, Final

from kafka.protocol.consumer.metadata import ConsumerProtocolAssignment, ConsumerProtocolSubscription

from assignors.errors import WorkersError
from assignors.planner.assign_partitions import plan
from assignors.planner.member_hosts import Node, node_numbers
from assignors.planner.pinned_topics import Overrides
from assignors.planner.plan_result import Plan
from assignors.planner.rack_locality import RackBy
from assignors.planner.topics_and_members import Member, Topic
from assignors.protocol.base_assignor import Assignor, check_flag
from assignors.protocol.rebalance_trigger import Rejoin, WorkersWatch
from assignors.protocol.served_consumer import OfMember
from assignors.protocol.topic_weights_source import WeightsSetting, WeightsSource
from assignors.protocol.worker_caps_source import WorkersSetting, WorkersSource

_EPSILON: Final = 0.05


@dataclass(slots=True)
class _Leading(OfMember):
    """What an assignor does as the leader: its watch, and whether it has planned the generation that comes next."""

    watch: WorkersWatch | None = None
    planned: bool = False


class HRWAssignor(Assignor):
    """Sticky assignment that prefers members by rendezvous hashing (highest random weight).

    Contract:
    * Runs on the group leader with heartbeats blocked: no I/O, no sleep.
    * The order of `members` has no effect; equal input gives an equal plan, so without a change no partition moves.
    * Claims are hints. A stale, duplicate or impossible one (KIP-792) is ignored and never an error.
    * `members` is read only; the result is new and the caller may change it.
    * Every partition whose topic has a subscriber is assigned, even if members send invalid data.
    * An instance serves one consumer. A second consumer that joins with it gets a MembershipError.
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
        cooperative: bool = False,  # noqa: FBT001, FBT002 -- a public parameter
        *,
        rack_by: RackBy = "replicas",
        node: Node = None,
        watch_interval_s: float = 5.0,
        overrides: Overrides | None = None,
        weights: WeightsSetting = None,
    ) -> None:
        """Configure. All members of a group need the same settings except `weight`, `rack` and `agent`.

        Args:
            workers: maximum number of different members that may read a topic: a number, a mapping of topics or
                patterns to numbers, a function that returns one of these, or the path of a JSON file with one. When a
                function's or file's value changes, the leader requests a rebalance.
            epsilon: allowed distance from the fair share; 0 is exact balance.
            weight: capacity of this member relative to the others. Other than 1, it is sent as user data, and KIP-848
                lets a broker refuse to migrate such a group online to the new protocol.
            rack: rack or zone of this member; kafka-python does not pass its `client_rack` to an assignor.
            agent: identity that survives a restart, if there is no group_instance_id: prefer group_instance_id, because
                `agent` is sent as user data, too.
            seed: another seed gives another ranking.
            cooperative: incremental rebalancing (KIP-429), under the name `hrw-cooperative`.
            rack_by: a partition is local to the racks of its replicas (`replicas`), or only of its leader (`leader`).
            node: how to find the host in an identity: a function or a pattern; see `assignors.planner.member_hosts`.
            watch_interval_s: seconds between two reads of a function or file.
            overrides: topics that a person gives to members: by topic one member, or several, by `group_instance_id` or
                `agent`. While none of them is in the group and reads the topic, it is planned like any other; the
                leader logs this.
            weights: volume of each topic relative to the others by name (bytes or records a second), or a function that
                returns it and is called before each join. Loads are then bounded by volume instead of by number.

        Raises:
            BoundError: epsilon is negative or not a finite number.
            MembershipError: agent or rack is not text, or too long; agent is empty; cooperative is not True or False.
            NodesError: node is not a regular expression.
            OverrideError: overrides is not a mapping of topics to names.
            StrategyError: rack_by is unknown, or the seed is not a whole number.
            WeightError: the weight is not a finite number above 0, or a weight of a topic is negative or not finite.
            WorkersError: workers below 1, an invalid pattern, a file that cannot be read, or watch_interval_s not
                above 0.
        """
        super().__init__(rack=rack, agent=agent, weight=weight, cooperative=cooperative, overrides=overrides)
        self.__weights = WeightsSource(weights)
        self.__workers = WorkersSource(workers)
        self.__fixed = (
            "" if workers is None else f"workers={'of a function or file' if self.__workers.changes else workers!r}"
        )
        self.__epsilon = epsilon
        self.__seed = seed
        self.__rack_by: RackBy = rack_by
        self.__node = node
        if not _is_interval(watch_interval_s):
            raise WorkersError(f"watch_interval_s={watch_interval_s!r}, need a finite number above 0")
        self.__interval_s = watch_interval_s
        self.__leading = _Leading()
        self._kafka_azimuth_plan([], [])  # raises BoundError, StrategyError
        if not callable(node):
            node_numbers([""], node)  # raises NodesError

    def metadata(self, topics: set[str]) -> ConsumerProtocolSubscription:
        """Return the subscription of this member, after reading the workers and the weights of topics again."""
        if self.__workers.changes:
            self.__workers.refresh()
        if self.__weights.changes:
            self.__weights.refresh()
        return super().metadata(topics)

    def assign(self, cluster: Any, members: list[Any]) -> dict[str, ConsumerProtocolAssignment]:  # noqa: ANN401 -- kafka-python is untyped
        """Plan for the group, and watch the workers for changes from now on."""
        planned = self.__workers.value  # read before the plan, so that a change during the plan counts as a change
        given = super().assign(cluster, members)
        self.__leading.planned = True
        if self.__workers.changes:
            self.stop_watch()
            rejoin = Rejoin(self, cluster)
            if rejoin.alive():
                self.__leading.watch = WorkersWatch(self.__workers, planned, rejoin, self.__interval_s)
            else:
                self._kafka_azimuth_warn(
                    "rejoin", "no coordinator found: changed workers take effect at the next rebalance"
                )
        return given

    def on_assignment(self, assignment: ConsumerProtocolAssignment, generation: int) -> None:
        """Remember the assignment; a member that no longer leads stops watching the workers."""
        if not self.__leading.planned:
            self.stop_watch()
        self.__leading.planned = False
        super().on_assignment(assignment, generation)

    def stop_watch(self) -> None:
        """Stop watching the workers."""
        if self.__leading.watch is not None:
            self.__leading.watch.stop()
            self.__leading.watch = None

    def _kafka_azimuth_plan(self, topics: list[Topic], members: list[Member]) -> Plan:
        return plan(
            topics,
            members,
            workers=self.__workers.value,
            epsilon=self.__epsilon,
            seed=self.__seed,
            rack_by=self.__rack_by,
            node=self.__node,
            overrides=self._kafka_azimuth_present_overrides(members),
            weights=self.__weights.value,
        )

    def _kafka_azimuth_configuration(self) -> str:
        parts = [self.__fixed] if self.__fixed else []
        parts += [f"epsilon={self.__epsilon!r}"] if self.__epsilon != _EPSILON else []
        parts += [f"seed={self.__seed}"] if self.__seed else []
        parts += [f"rack_by={self.__rack_by}"] if self.__rack_by != "replicas" else []
        parts += [f"overrides={self._kafka_azimuth_overrides!r}"] if self._kafka_azimuth_overrides else []
        parts += [f"weights={self.__weights}"] if self.__weights.given else []
        return " ".join(parts)


class ShuffledRoundRobinAssignor(Assignor):
    """Round robin over a seeded shuffle of the members; each topic starts where the previous one ended.

    Many small topics under one pattern spread evenly. By default members keep what they own (`keep=True`);
    `keep=False` assigns all partitions from scratch at each rebalance. The contract is that of `HRWAssignor`.
    """

    strategy = "shuffled"

    def __init__(  # noqa: PLR0913 - the settings are the public surface
        self,
        seed: int = 0,
        rack: str | None = None,
        agent: str | None = None,
        cooperative: bool = False,  # noqa: FBT001, FBT002 -- a public parameter
        keep: bool = True,  # noqa: FBT001, FBT002 -- a public parameter
        *,
        overrides: Overrides | None = None,
        weights: WeightsSetting = None,
    ) -> None:
        """Configure. All members of a group need the same settings except `rack` and `agent`.

        Args:
            seed: another seed gives another shuffle.
            rack: rack or zone of this member.
            agent: identity that survives a restart, if there is no group_instance_id: prefer group_instance_id.
            cooperative: incremental rebalancing (KIP-429), under the name `shuffled-cooperative`.
            keep: whether members keep owned partitions if possible.
            overrides: topics that a person gives to members, as for `HRWAssignor`.
            weights: volume of each topic, as for `HRWAssignor`; loads are then within 5 % of the fair share.

        Raises:
            MembershipError: agent or rack is not text, or too long; agent is empty; a flag is not True or False.
            OverrideError: overrides is not a mapping of topics to names.
            WeightError: a weight of a topic is negative or not finite.
        """
        check_flag("keep", keep)
        super().__init__(rack=rack, agent=agent, weight=1.0, cooperative=cooperative, overrides=overrides)
        self.__weights = WeightsSource(weights)
        self.__seed = seed
        self.__keep = keep
        self._kafka_azimuth_plan([], [])  # raises StrategyError

    def metadata(self, topics: set[str]) -> ConsumerProtocolSubscription:
        """Return the subscription of this member, after reading the weights of topics again."""
        if self.__weights.changes:
            self.__weights.refresh()
        return super().metadata(topics)

    def _kafka_azimuth_plan(self, topics: list[Topic], members: list[Member]) -> Plan:
        overrides = self._kafka_azimuth_present_overrides(members)
        weights = self.__weights.value
        return plan(
            topics,
            members,
            strategy="shuffled",
            epsilon=_EPSILON if weights else 0,  # volumes of whole partitions are seldom exactly equal
            seed=self.__seed,
            keep=self.__keep,
            overrides=overrides,
            weights=weights,
        )

    def _kafka_azimuth_configuration(self) -> str:
        parts = [f"seed={self.__seed}"] if self.__seed else []
        parts += [] if self.__keep else ["keep=False"]
        parts += [f"overrides={self._kafka_azimuth_overrides!r}"] if self._kafka_azimuth_overrides else []
        parts += [f"weights={self.__weights}"] if self.__weights.given else []
        return " ".join(parts)


def _is_interval(seconds: object) -> bool:
    return isinstance(seconds, int | float) and 0 < seconds <= threading.TIMEOUT_MAX
