"""The base class of the assignors, with the interface that kafka-python calls.

A member's identity is its `group_instance_id`, else `agent=`, else the member id. A broker assigns a new member id at
each join, so a restarted consumer gets its topics back only with one of the first two.
"""

import hashlib
import logging
import threading
import weakref
from typing import Any, ClassVar, Final

from kafka.coordinator.assignors.abstract import AbstractPartitionAssignor, RebalanceProtocol
from kafka.protocol.consumer.metadata import ConsumerProtocolAssignment, ConsumerProtocolSubscription

from assignors.clients.kafka_python_internals import asking_coordinator, is_closed
from assignors.errors import MembershipError
from assignors.planner.member_ranking import Strategy
from assignors.planner.pinned_topics import Overrides, checked_overrides, present_overrides
from assignors.planner.plan_result import Plan
from assignors.planner.topics_and_members import Member, Topic, TopicPartition
from assignors.protocol.cluster_metadata import read_topics
from assignors.protocol.fallback_plan import fallback_plan
from assignors.protocol.join_subscription import UserData, decode_member, encode_subscription
from assignors.protocol.rebalance_trigger import Rejoin

log = logging.getLogger(__name__)
_FOLLOW_UP_S: Final = 3.0
_NAME_BYTES: Final = 1000
_TEXT: Final = 500
ByTopic = list[tuple[str, list[int]]]


class Assignor(AbstractPartitionAssignor):
    """A member's side of the protocol, and on the leader the plan, which the subclass computes.

    Attributes:
        last_plan: on the leader, its latest plan.
    """

    strategy: ClassVar[Strategy]

    def __init__(
        self,
        *,
        rack: str | None,
        agent: str | None,
        weight: float,
        cooperative: bool,
        overrides: Overrides | None = None,
    ) -> None:
        _check_name("agent", agent)
        if agent == "":
            raise MembershipError("agent='': need a name, or None for the group instance id or the member id")
        _check_name("rack", rack)
        check_flag("cooperative", cooperative)
        Member(id=agent or "", topics=frozenset(), weight=weight)  # raises WeightError
        self.last_plan: Plan | None = None
        self._name = f"{self.strategy}-cooperative" if cooperative else self.strategy
        self._rack = rack
        self._agent = agent
        self._weight = weight
        self._overrides = checked_overrides(overrides or {})
        self._cooperative = cooperative
        self._owned: tuple[TopicPartition, ...] = ()
        self._generation = -1
        self._warned: set[str] = set()
        self._withheld: set[TopicPartition] = set()
        self._follow_up: Rejoin | None = None
        self._served: weakref.ref[Any] | None = None

    @property
    def name(self) -> str:
        """The name of the protocol; all members of the group must offer it."""
        return self._name

    def use_rack(self, rack: str) -> None:
        """Use the rack of the client, unless the assignor was created with a rack."""
        if self._rack is None:
            _check_name("client.rack", rack)
            self._rack = rack

    def supported_protocols(self) -> list[RebalanceProtocol]:
        """Return one protocol: kafka-python does not mix eager and cooperative ones (KIP-429)."""
        return [RebalanceProtocol.COOPERATIVE if self._cooperative else RebalanceProtocol.EAGER]

    def metadata(self, topics: set[str]) -> ConsumerProtocolSubscription:
        """Return the subscription of this member.

        Raises:
            MembershipError: another consumer that is not closed joined with this instance.
        """
        self._serve(asking_coordinator())
        owned = [(t, p) for t, p in self._owned if t in topics]
        data = UserData(agent=self._agent, weight=self._weight, plan=_shortened(self._configuration()))
        return encode_subscription(topics, owned, self._generation, self._rack, data.encode())

    def _serve(self, coordinator: Any) -> None:  # noqa: ANN401 - kafka-python is untyped
        """Refuse a second consumer: its claims would replace those of the first, and both would lose partitions."""
        served = self._served() if self._served is not None else None
        if coordinator is None or coordinator is served:
            return
        if served is not None and not is_closed(served):
            raise MembershipError(
                f"one instance of {type(self).__name__} was given to two consumers, of groups {served.group_id!r} and "
                f"{coordinator.group_id!r}: make one for each consumer"
            )
        if self._served is not None:
            self._owned, self._generation = (), -1
        self._served = weakref.ref(coordinator)

    def on_assignment(self, assignment: ConsumerProtocolAssignment, generation: int) -> None:
        """Remember the assignment, to claim it at the next join (KIP-792)."""
        self._owned = tuple((t, p) for t, partitions in assignment.assigned_partitions for p in partitions)
        self._generation = generation
        if self._follow_up is not None:
            # A member with revoked partitions requests the second round itself (KIP-429). A member that lost them still
            # claims them and has none to revoke: then only the leader requests it. The leader requests it later than
            # the members, because a rejoin that overtakes a member's SyncGroup costs one more round.
            timer = threading.Timer(_FOLLOW_UP_S, self._ask_again, (self._follow_up, generation))
            timer.daemon = True
            timer.start()
            self._follow_up = None

    def _ask_again(self, follow_up: Rejoin, generation: int) -> None:
        if self._generation == generation:
            follow_up.ask()

    def assign(self, cluster: Any, members: list[Any]) -> dict[str, ConsumerProtocolAssignment]:  # noqa: ANN401 -- kafka-python is untyped
        """Plan for the group. Runs on the leader inside the event loop: no I/O, and it never raises."""
        subscriptions: dict[tuple[str, ...], frozenset[str]] = {}
        group = [self._read_member(m, subscriptions) for m in members]
        named = frozenset[str]().union(*{id(m.topics): m.topics for m in group}.values())
        topics = self._read_topics(cluster, {t for t in named if isinstance(t, str)})
        self._follow_up = None
        self._withheld = set()
        try:
            given = self._assign(topics, group)
        except Exception:
            log.exception("the planner failed: assigning partitions evenly instead; please report this")
            self._withheld = {pair for m in group for pair in m.owned} if self._cooperative else set()
            even = fallback_plan(topics, group, cooperative=self._cooperative)
            given = {member: _by_topic(pairs) for member, pairs in even.items()}
        if self._withheld:
            self._follow_up = Rejoin(self, cluster)
        return {member: _assignment(mine) for member, mine in given.items()}

    def _assign(self, topics: list[Topic], members: list[Member]) -> dict[str, ByTopic]:
        self.last_plan = plan = self._plan(topics, members)
        self._withheld = withheld = {p for some in plan.withheld.values() for p in some} if self._cooperative else set()
        if not withheld:
            return plan.by_topic()
        return {
            member: _by_topic([pair for pair in pairs if pair not in withheld])
            for member, pairs in plan.partitions.items()
        }

    def _read_member(self, member: Any, subscriptions: dict[tuple[str, ...], frozenset[str]]) -> Member:  # noqa: ANN401 -- kafka-python is untyped
        try:
            read, data = decode_member(member, subscriptions)
        except Exception as error:  # noqa: BLE001 - fields of another client may raise any error; it remains a subscriber
            self._warn("fields", f"member {member.member_id!r} sent invalid fields, which are ignored: {error!r}")
            wanted = frozenset(getattr(member.metadata, "topics", None) or ())
            return Member(id=member.member_id, topics=frozenset(t for t in wanted if isinstance(t, str)))
        if data is None:
            self._warn(
                "foreign", f"member {read.id!r} sent user data of another assignor: ignored, its weight counts as 1"
            )
        elif data.plan is not None and data.plan != _shortened(self._configuration()):
            self._warn(
                "configuration",
                f"member {read.id!r} is configured {data.plan or 'with the defaults'}, the leader "
                f"{self._configuration() or 'with the defaults'}: the leader's settings "
                "apply; give all members the same",
            )
        if read.instance is None:
            self._warn(
                "identity",
                f"member {read.id!r} has no permanent identity: after a restart it may get other topics; "
                "set group.instance.id (kafka-python: group_instance_id), or agent= where that is not possible",
            )
        return read

    def _read_topics(self, cluster: Any, names: set[str]) -> list[Topic]:  # noqa: ANN401 -- kafka-python is untyped
        try:
            return read_topics(cluster, names)
        except Exception as error:  # noqa: BLE001 - a topic deleted or made while it is read; racks are only a preferred
            self._warn("metadata", f"the racks cannot be read from the metadata: planning without them ({error!r})")
            counts = {name: self._count(cluster, name) for name in sorted(names)}
            return [Topic(name, count) for name, count in counts.items() if count]

    def _count(self, cluster: Any, name: str) -> int:  # noqa: ANN401 -- kafka-python is untyped
        try:
            return len(cluster.partitions_for_topic(name) or ())
        except Exception as error:  # noqa: BLE001 - the topic may be deleted meanwhile
            self._warn("topic", f"the metadata of topic {name!r} cannot be read: it is left out ({error!r})")
            return 0

    def _warn(self, subject: str, message: str) -> None:
        """Warn once about each subject: a group that rebalances every minute must not fill the log."""
        if subject not in self._warned:
            self._warned.add(subject)
            log.warning(message)

    def _present_overrides(self, members: list[Member]) -> dict[str, tuple[str, ...]]:
        """Return the overrides that the current members can follow, and warn about the others."""
        if not self._overrides or not members:
            return {}
        present, absent = present_overrides(self._overrides, members)
        for topic, names in absent.items():
            self._warn(
                f"override {topic}",
                f"override for topic {topic!r}: not in the group, or without a subscription to it: {', '.join(names)}; "
                + ("the others named take it" if topic in present else "it is planned like any other topic"),
            )
        return present

    def _plan(self, topics: list[Topic], members: list[Member]) -> Plan:
        raise NotImplementedError

    def _configuration(self) -> str:
        """Return the settings that must be equal in the group, as text; empty for the defaults."""
        raise NotImplementedError


def _check_name(setting: str, name: object) -> None:
    # A longer name would not fit into the user data, and the leader would not know the member's identity.
    try:
        fits = name is None or (isinstance(name, str) and len(name.encode()) <= _NAME_BYTES)
    except UnicodeEncodeError:  # a surrogate, which cannot be sent
        fits = False
    if not fits:
        raise MembershipError(f"{setting}={name!r}: need text of at most {_NAME_BYTES} bytes")


def check_flag(setting: str, value: object) -> None:
    """Check a setting that is True or False.

    Raises:
        MembershipError: it is something else, such as text, which would count as true whatever it says.
    """
    if not isinstance(value, bool):
        raise MembershipError(f"{setting}={value!r}: need True or False")


def _shortened(configuration: str) -> str:
    """Limit the text of the settings: with a hundred patterns the leader would refuse the user data as too long."""
    if len(configuration) <= _TEXT:
        return configuration
    return f"{configuration[:_TEXT]}... (sha256 {hashlib.sha256(configuration.encode()).hexdigest()[:16]})"


def assignment_of(pairs: list[TopicPartition]) -> ConsumerProtocolAssignment:
    """Create the protocol's assignment of these partitions."""
    return _assignment(_by_topic(pairs))


def _by_topic(pairs: list[TopicPartition]) -> ByTopic:
    by_topic: dict[str, list[int]] = {}
    for topic, partition in pairs:
        by_topic.setdefault(topic, []).append(partition)
    return list(by_topic.items())


def _assignment(by_topic: ByTopic) -> ConsumerProtocolAssignment:
    topics: list[Any] = by_topic  # kafka-python takes the pairs for its own class
    return ConsumerProtocolAssignment(version=0, assigned_partitions=topics, user_data=b"")
