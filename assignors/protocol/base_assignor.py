"""The base class of the assignors, with the interface that kafka-python calls.

A member's identity is its `group_instance_id`, else `agent=`, else the member id. A broker assigns a new member id at
each join, so a restarted consumer gets its topics back only with one of the first two.
"""

import hashlib
import logging
import threading
from typing import Any, ClassVar, Final

from kafka.coordinator.assignors.abstract import AbstractPartitionAssignor, RebalanceProtocol
from kafka.protocol.consumer.metadata import ConsumerProtocolAssignment, ConsumerProtocolSubscription

from assignors.clients.kafka_python_internals import asking_coordinator
from assignors.errors import MembershipError
from assignors.planner.member_ranking import Strategy
from assignors.planner.pinned_topics import Overrides, checked_overrides, present_overrides
from assignors.planner.plan_result import Plan
from assignors.planner.topics_and_members import Member, Topic, TopicPartition
from assignors.protocol.cluster_metadata import read_topics
from assignors.protocol.fallback_plan import fallback_plan
from assignors.protocol.join_subscription import UserData, decode_member, encode_subscription
from assignors.protocol.rebalance_trigger import Rejoin
from assignors.protocol.served_consumer import OfMember, ServedConsumer

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
        self.__name = f"{self.strategy}-cooperative" if cooperative else self.strategy
        self.__rack = rack
        self.__client_rack: str | None = None
        self.__agent = agent
        self.__weight = weight
        self._kafka_azimuth_overrides = checked_overrides(overrides or {})
        self.__cooperative = cooperative
        self.__served = ServedConsumer()

    @property
    def name(self) -> str:
        """The name of the protocol; all members of the group must offer it."""
        return self.__name

    def use_rack(self, rack: str) -> None:
        """Use the rack of the client, unless the assignor was created with a rack, or serves a running consumer."""
        if self.__rack is None:
            _check_name("client.rack", rack)
            if not self.__served.serves:
                self.__client_rack = rack

    def supported_protocols(self) -> list[RebalanceProtocol]:
        """Return one protocol: kafka-python does not mix eager and cooperative ones (KIP-429)."""
        return [RebalanceProtocol.COOPERATIVE if self.__cooperative else RebalanceProtocol.EAGER]

    def metadata(self, topics: set[str]) -> ConsumerProtocolSubscription:
        """Return the subscription of this member.

        Raises:
            MembershipError: another consumer that is not closed joined with this instance.
        """
        coordinator = asking_coordinator()
        self.__served.serve(self, coordinator)
        if coordinator is not None:
            # kafka-python uses the answer to a join only while it finds that it must join. The end of the join resets
            # this request; without it a member that joins because its topics have changed may ignore the answer.
            coordinator.request_rejoin()
        owned, generation = self.__served.claims(coordinator)
        data = UserData(agent=self.__agent, weight=self.__weight, plan=_shortened(self._kafka_azimuth_configuration()))
        wanted = [(t, p) for t, p in owned if t in topics]
        rack = self.__client_rack if self.__rack is None else self.__rack
        return encode_subscription(topics, wanted, generation, rack, data.encode())

    def on_assignment(self, assignment: ConsumerProtocolAssignment, generation: int) -> None:
        """Remember the assignment, to claim it at the next join (KIP-792)."""
        mine = self.__served
        mine.owned = tuple((t, p) for t, partitions in assignment.assigned_partitions for p in partitions)
        mine.generation = generation
        for other in mine.assignors():
            if not isinstance(other, Assignor):  # kafka-python's own: they claim it if the group goes back to them
                other.on_assignment(assignment, generation)
        if mine.follow_up is not None:
            # A member with revoked partitions requests the second round itself (KIP-429). A member that lost them still
            # claims them and has none to revoke: then only the leader requests it. The leader requests it later than
            # the members, because a rejoin that overtakes a member's SyncGroup costs one more round.
            timer = threading.Timer(_FOLLOW_UP_S, self.__ask_again, (mine.follow_up, generation))
            timer.daemon = True
            timer.start()
            mine.follow_up = None

    def __ask_again(self, follow_up: Rejoin, generation: int) -> None:
        if self.__served.generation == generation:
            follow_up.ask()

    def __getstate__(self) -> object:
        """Return the settings alone: a copy serves another consumer."""
        state = super().__getstate__()
        attributes, *slots = state if isinstance(state, tuple) else (state,)
        mine = attributes if isinstance(attributes, dict) else {}
        fresh = {name: type(value)() if isinstance(value, OfMember) else value for name, value in mine.items()}
        fresh["last_plan"] = None
        return (fresh, *slots) if slots else fresh

    def assign(self, cluster: Any, members: list[Any]) -> dict[str, ConsumerProtocolAssignment]:  # noqa: ANN401 -- kafka-python is untyped
        """Plan for the group. Runs on the leader inside the event loop: no I/O, and it never raises."""
        subscriptions: dict[tuple[str, ...], frozenset[str]] = {}
        group = [self.__read_member(m, subscriptions) for m in members]
        named = frozenset[str]().union(*{id(m.topics): m.topics for m in group}.values())
        topics = self.__read_topics(cluster, {t for t in named if isinstance(t, str)})
        self.__served.follow_up = None
        self.__served.withheld = set()
        try:
            given = self.__assign(topics, group)
        except Exception:
            log.exception("the planner failed: assigning partitions evenly instead; please report this")
            self.__served.withheld = {pair for m in group for pair in m.owned} if self.__cooperative else set()
            even = fallback_plan(topics, group, cooperative=self.__cooperative)
            given = {member: _by_topic(pairs) for member, pairs in even.items()}
        if self.__served.withheld:
            self.__served.follow_up = Rejoin(self, cluster)
        return {member: _assignment(mine) for member, mine in given.items()}

    def __assign(self, topics: list[Topic], members: list[Member]) -> dict[str, ByTopic]:
        self.last_plan = plan = self._kafka_azimuth_plan(topics, members)
        self.__served.withheld = withheld = (
            {p for some in plan.withheld.values() for p in some} if self.__cooperative else set()
        )
        if not withheld:
            return plan.by_topic()
        return {
            member: _by_topic([pair for pair in pairs if pair not in withheld])
            for member, pairs in plan.partitions.items()
        }

    def __read_member(self, member: Any, subscriptions: dict[tuple[str, ...], frozenset[str]]) -> Member:  # noqa: ANN401 -- kafka-python is untyped
        try:
            read, data = decode_member(member, subscriptions)
        except Exception as error:  # noqa: BLE001 - fields of another client may raise any error; it remains a subscriber
            self._kafka_azimuth_warn(
                "fields", f"member {member.member_id!r} sent invalid fields, which are ignored: {error!r}"
            )
            wanted = frozenset(getattr(member.metadata, "topics", None) or ())
            return Member(id=member.member_id, topics=frozenset(t for t in wanted if isinstance(t, str)))
        if data is None:
            self._kafka_azimuth_warn(
                "foreign", f"member {read.id!r} sent user data of another assignor: ignored, its weight counts as 1"
            )
        elif data.plan is not None and data.plan != _shortened(self._kafka_azimuth_configuration()):
            self._kafka_azimuth_warn(
                "configuration",
                f"member {read.id!r} is configured {data.plan or 'with the defaults'}, the leader "
                f"{self._kafka_azimuth_configuration() or 'with the defaults'}: the leader's settings "
                "apply; give all members the same",
            )
        if read.instance is None:
            self._kafka_azimuth_warn(
                "identity",
                f"member {read.id!r} has no permanent identity: after a restart it may get other topics; "
                "set group.instance.id (kafka-python: group_instance_id), or agent= where that is not possible",
            )
        return read

    def __read_topics(self, cluster: Any, names: set[str]) -> list[Topic]:  # noqa: ANN401 -- kafka-python is untyped
        try:
            return read_topics(cluster, names)
        except Exception as error:  # noqa: BLE001 - a topic deleted or made while it is read; racks are only a preferred
            self._kafka_azimuth_warn(
                "metadata", f"the racks cannot be read from the metadata: planning without them ({error!r})"
            )
            counts = {name: self.__count(cluster, name) for name in sorted(names)}
            return [Topic(name, count) for name, count in counts.items() if count]

    def __count(self, cluster: Any, name: str) -> int:  # noqa: ANN401 -- kafka-python is untyped
        try:
            return len(cluster.partitions_for_topic(name) or ())
        except Exception as error:  # noqa: BLE001 - the topic may be deleted meanwhile
            self._kafka_azimuth_warn(
                "topic", f"the metadata of topic {name!r} cannot be read: it is left out ({error!r})"
            )
            return 0

    def _kafka_azimuth_warn(self, subject: str, message: str) -> None:
        """Warn once about each subject: a group that rebalances every minute must not fill the log."""
        if subject not in self.__served.warned:
            self.__served.warned.add(subject)
            log.warning(message)

    def _kafka_azimuth_present_overrides(self, members: list[Member]) -> dict[str, tuple[str, ...]]:
        """Return the overrides that the current members can follow, and warn about the others."""
        if not self._kafka_azimuth_overrides or not members:
            return {}
        present, absent = present_overrides(self._kafka_azimuth_overrides, members)
        for topic, names in absent.items():
            self._kafka_azimuth_warn(
                f"override {topic}",
                f"override for topic {topic!r}: not in the group, or without a subscription to it: {', '.join(names)}; "
                + ("the others named take it" if topic in present else "it is planned like any other topic"),
            )
        return present

    def _kafka_azimuth_plan(self, topics: list[Topic], members: list[Member]) -> Plan:
        raise NotImplementedError

    def _kafka_azimuth_configuration(self) -> str:
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
