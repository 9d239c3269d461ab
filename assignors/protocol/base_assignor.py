"""What the assignors share: the group protocol, as kafka-python drives it.

Identity is `group_instance_id`, else `agent=`, else the member id. A broker makes a new member id at each join, so only
the first two bring a restarted consumer's topics back to it.
"""

import hashlib
import logging
import threading
from typing import Any, ClassVar, Final

from kafka.coordinator.assignors.abstract import AbstractPartitionAssignor, RebalanceProtocol
from kafka.protocol.consumer.metadata import ConsumerProtocolAssignment, ConsumerProtocolSubscription

from assignors.errors import MembershipError
from assignors.planner.member_ranking import Strategy
from assignors.planner.plan_result import Plan
from assignors.planner.topics_and_members import Member, Topic, TopicPartition
from assignors.protocol.cluster_metadata import read_topics
from assignors.protocol.fallback_plan import spare_plan
from assignors.protocol.rebalance_trigger import Rejoin
from assignors.protocol.subscription import UserData, decode_member, encode_subscription

log = logging.getLogger(__name__)
_FOLLOW_UP_S: Final = 3.0
_NAME_BYTES: Final = 1000
_TEXT: Final = 500


class Assignor(AbstractPartitionAssignor):
    """A member's side of the protocol, and on the leader the plan. The subclass says how to plan.

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


def _check_name(setting: str, name: object) -> None:
    # A longer one would not fit into what members may send, and its owner would be a stranger to the leader.
    try:
        fits = name is None or (isinstance(name, str) and len(name.encode()) <= _NAME_BYTES)
    except UnicodeEncodeError:  # half a character, which cannot be sent
        fits = False
    if not fits:
        raise MembershipError(f"{setting}={name!r}: need text of at most {_NAME_BYTES} bytes")


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
