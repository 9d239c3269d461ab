"""The assignors as kafka-python takes them: instances in `partition_assignment_strategy`.

    KafkaConsumer(partition_assignment_strategy=[HRWAssignor(workers=2)], group_id="ingest", ...)

Identity is `group_instance_id`, else `agent=`, else the member id. A broker makes a new member id at each join, so only
the first two bring a restarted consumer's topics back to it.
"""

import hashlib
import logging
import threading
from typing import Any, ClassVar

from kafka.coordinator.assignors.abstract import AbstractPartitionAssignor, RebalanceProtocol
from kafka.protocol.consumer.metadata import ConsumerProtocolAssignment, ConsumerProtocolSubscription

from assignors._bound import check_epsilon
from assignors._cluster import read_topics
from assignors._errors import MembershipError, WorkersError
from assignors._model import Member, Topic, TopicPartition
from assignors._nodes import Node, node_numbers
from assignors._plan import check_seed, plan
from assignors._racks import RackBy
from assignors._result import Plan
from assignors._scores import Strategy
from assignors._spare import spare_plan
from assignors._subscription import UserData, decode_member, encode_subscription
from assignors._watch import Rejoin, WorkersWatch
from assignors._workers_source import Source, WorkersSource

log = logging.getLogger(__name__)
_FOLLOW_UP_S = 3.0


class _Assignor(AbstractPartitionAssignor):
    """What both assignors share: the protocol. The subclass says how to plan.

    Attributes:
        last_plan: on the leader, what it planned last.
    """

    strategy: ClassVar[Strategy]

    def __init__(self, *, rack: str | None, agent: str | None, weight: float, cooperative: bool) -> None:
        Member(id=agent or "", topics=frozenset(), weight=weight)  # raises WeightError
        _check_name("agent", agent)
        _check_name("rack", rack)
        self.last_plan: Plan | None = None
        self._name = f"{self.strategy}-cooperative" if cooperative else self.strategy
        self._rack = rack
        self._agent = agent
        self._weight = weight
        self._cooperative = cooperative
        self._owned: tuple[TopicPartition, ...] = ()
        self._generation = -1
        self._warned: set[str] = set()
        self._withheld: set[TopicPartition] = set()
        self._follow_up: Rejoin | None = None

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
        data = UserData(agent=self._agent, weight=self._weight, plan=_shortened(self._configuration()))
        return encode_subscription(topics, owned, self._generation, self._rack, data.encode())

    def on_assignment(self, assignment: ConsumerProtocolAssignment, generation: int) -> None:
        """Remember what was given, to claim it at the next join (KIP-792)."""
        self._owned = tuple((t, p) for t, partitions in assignment.assigned_partitions for p in partitions)
        self._generation = generation
        if self._follow_up is not None:
            # Who must give something up asks for the second round itself (KIP-429). But a claim may be one of a member
            # that lost its partitions and has nothing to give up: without the leader's own request nobody would ask.
            # Later than the others, because a rejoin that overtakes a member's SyncGroup costs one more round.
            timer = threading.Timer(_FOLLOW_UP_S, self._ask_again, (self._follow_up, generation))
            timer.daemon = True
            timer.start()
            self._follow_up = None

    def _ask_again(self, follow_up: Rejoin, generation: int) -> None:
        if self._generation == generation:
            follow_up.ask()

    def assign(self, cluster: Any, members: list[Any]) -> dict[str, ConsumerProtocolAssignment]:  # noqa: ANN401
        """Plan for the group. Called on the leader inside the event loop: no I/O, and it never raises."""
        people = [self._read_member(m) for m in members]
        named = {t for m in people for t in m.topics}
        topics = self._read_topics(cluster, {t for t in named if isinstance(t, str)})
        self._follow_up = None
        self._withheld = set()
        try:
            given = self._give(topics, people)
        except Exception:
            log.exception("group plan failed: giving partitions evenly instead; please report this")
            self._withheld = {pair for m in people for pair in m.owned} if self._cooperative else set()
            given = spare_plan(topics, people, cooperative=self._cooperative)
        if self._withheld:
            self._follow_up = Rejoin(self, cluster)
        return {member: assignment_of(mine) for member, mine in given.items()}

    def _give(self, topics: list[Topic], members: list[Member]) -> dict[str, list[TopicPartition]]:
        self.last_plan = made = self._plan(topics, members)
        if not self._cooperative:
            return made.partitions
        self._withheld = wait = {pair for pairs in made.withheld.values() for pair in pairs}
        return {member: [pair for pair in mine if pair not in wait] for member, mine in made.partitions.items()}

    def _read_member(self, member: Any) -> Member:  # noqa: ANN401
        try:
            read, data = decode_member(member)
        except Exception as error:  # noqa: BLE001 - a foreign client's fields: it is a subscriber all the same
            self._warn("fields", f"member {member.member_id!r} sent fields that make no sense, ignored: {error!r}")
            wanted = frozenset(getattr(member.metadata, "topics", None) or ())
            return Member(id=member.member_id, topics=frozenset(t for t in wanted if isinstance(t, str)))
        if data is None:
            self._warn(
                "foreign", f"member {read.id!r} sent user data that is not ours: ignored, its weight counts as 1"
            )
        elif data.plan != _shortened(self._configuration()):
            self._warn(
                "configuration",
                f"member {read.id!r} is configured {data.plan or 'with the defaults'}, the leader "
                f"{self._configuration() or 'with the defaults'}: the leader's counts; give all members the same",
            )
        if read.instance is None:
            self._warn(
                "identity",
                f"member {read.id!r} has no lasting identity: after a restart it may get other topics; "
                "set group_instance_id or agent=",
            )
        return read

    def _read_topics(self, cluster: Any, names: set[str]) -> list[Topic]:  # noqa: ANN401
        try:
            return read_topics(cluster, names)
        except Exception as error:  # noqa: BLE001 - a topic deleted or made while it is read; racks are only a wish
            self._warn("metadata", f"the metadata cannot be read with racks: planning without them ({error!r})")
            counts = {name: self._count(cluster, name) for name in sorted(names)}
            return [Topic(name, count) for name, count in counts.items() if count]

    def _count(self, cluster: Any, name: str) -> int:  # noqa: ANN401
        try:
            return len(cluster.partitions_for_topic(name) or ())
        except Exception as error:  # noqa: BLE001 - as above
            self._warn("topic", f"the metadata of topic {name!r} cannot be read: it is left out ({error!r})")
            return 0

    def _warn(self, subject: str, message: str) -> None:
        """Warn once of each subject: a rebalance a minute must not fill the log."""
        if subject not in self._warned:
            self._warned.add(subject)
            log.warning(message)

    def _plan(self, topics: list[Topic], members: list[Member]) -> Plan:
        raise NotImplementedError

    def _configuration(self) -> str:
        """What must be equal in the group, as text; empty for the defaults."""
        raise NotImplementedError


class HRWAssignor(_Assignor):
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
        workers: Source = None,
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
            node: how to find the host in an identity: a function, or a pattern; see `assignors._nodes`.
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


class ShuffledRoundRobinAssignor(_Assignor):
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


_EPSILON = 0.05
_NAME_BYTES = 1000
_TEXT = 500


def _check_name(setting: str, name: object) -> None:
    # A longer one would not fit into what members may send, and its owner would be a stranger to the leader.
    try:
        fits = name is None or (isinstance(name, str) and len(name.encode()) <= _NAME_BYTES)
    except UnicodeEncodeError:  # half a character, which cannot be sent
        fits = False
    if not fits:
        raise MembershipError(f"{setting}={name!r}: need text of at most {_NAME_BYTES} bytes")


def _is_interval(seconds: object) -> bool:
    return isinstance(seconds, int | float) and 0 < seconds <= threading.TIMEOUT_MAX


def _shortened(configuration: str) -> str:
    """Keep what is told of a configuration small: a hundred patterns would push out the weight and the agent."""
    if len(configuration) <= _TEXT:
        return configuration
    return f"{configuration[:_TEXT]}... (sha256 {hashlib.sha256(configuration.encode()).hexdigest()[:16]})"


def assignment_of(pairs: list[TopicPartition]) -> ConsumerProtocolAssignment:
    """Say it in the protocol's words."""
    by_topic: dict[str, list[int]] = {}
    for topic, partition in pairs:
        by_topic.setdefault(topic, []).append(partition)
    topics: list[Any] = list(by_topic.items())
    return ConsumerProtocolAssignment(version=0, assigned_partitions=topics, user_data=b"")
