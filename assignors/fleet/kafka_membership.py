"""Membership by Kafka's own group protocol: a group without topics on the home cluster, so no other server is needed.

Members identify themselves in their user data. The leader computes the view and sends it to all members as the
assignment's user data. The broker removes members that send no heartbeat for the session. Every member keeps the last
view and sends it at the next join, so a new leader continues from it.
"""

import base64
import contextlib
import json
import logging
import threading
import time
import zlib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Final, Self

from kafka import KafkaAdminClient
from kafka.coordinator.assignors.abstract import AbstractPartitionAssignor, RebalanceProtocol
from kafka.errors import CoordinatorNotAvailableError, KafkaError
from kafka.protocol.consumer.metadata import ConsumerProtocolAssignment, ConsumerProtocolSubscription

from assignors.clients.kafka_python_creation import connected
from assignors.errors import FleetError, MembershipError
from assignors.fleet.agents_view import Agent, View
from assignors.fleet.membership_contract import Membership, Session, Standing, Witness
from assignors.fleet.server_membership import ServerMembers, without_server
from assignors.member.group_member import GroupMember
from assignors.protocol.join_subscription import encode_subscription

log = logging.getLogger(__name__)

_NOTHING: Final = r"azimuth\.fleet\.no-topic"  # a member must subscribe to at least one topic
_PAUSE_S: Final = 0.2
_SETTLES_S: Final = 5.0
_CREATED_S: Final = 2.5  # a check that waits for all its answers together gives up a second later
_ANSWER_MS: Final = 5_000
_REBALANCING: Final = frozenset({"PreparingRebalance", "CompletingRebalance"})


@dataclass(frozen=True, slots=True, kw_only=True)
class MembershipRound:
    """The result of a rebalance of the membership group.

    Attributes:
        view: the live agents.
        owners: the process that represents each agent.
    """

    view: View = field(default_factory=View)
    owners: Mapping[str, str] = field(default_factory=dict)

    def encode(self) -> str:
        """Return compressed text, because it is part of every join of every member."""
        content = json.dumps({"view": self.view.value(), "owners": dict(self.owners)}, separators=(",", ":"))
        return base64.b64encode(zlib.compress(content.encode())).decode()

    @classmethod
    def decode(cls, text: str) -> Self:
        """Read the result of `encode`."""
        content = json.loads(zlib.decompress(base64.b64decode(text)))
        return cls(view=View.of(content["view"]), owners=dict(content["owners"]))


@dataclass(frozen=True, slots=True, kw_only=True)
class Candidate:
    """A member of the group, from its user data.

    Attributes:
        member: its member id from the broker.
        agent: its agent.
        process: the process of the agent.
        last: the last round that it knows.
    """

    member: str
    agent: Agent
    process: str
    last: MembershipRound


def next_round(candidates: Iterable[Candidate]) -> MembershipRound:
    """Compute the next view from the members of the group. Pure.

    It continues from the newest round that any member knows. If two processes have the same agent id, the process that
    represented it before keeps it, else the one with the lower member id; the other is in the group but not in the
    view.
    """
    found = sorted(candidates, key=lambda one: one.member)
    last = max((one.last for one in found), key=lambda one: one.view.version, default=MembershipRound())
    owners: dict[str, Candidate] = {}
    for one in found:
        known = owners.get(one.agent.id)
        if known is None or last.owners.get(one.agent.id) == one.process:
            owners[one.agent.id] = one
    living = tuple(sorted(one.agent for one in owners.values()))
    view = last.view if living == last.view.members else last.view.following(living, last.view.version + 1)
    return MembershipRound(view=view, owners={agent: one.process for agent, one in owners.items()})


class _ViewAssignor(AbstractPartitionAssignor):
    """Assigns no partitions, only the view."""

    def __init__(self, agent: Agent, process: str, on_round: Any) -> None:  # noqa: ANN401 - a method taking a MembershipRound
        self.agent = agent
        self._process = process
        self._on_round = on_round
        self.last = MembershipRound()

    @property
    def name(self) -> str:
        """The name of the protocol."""
        return "azimuth-fleet"

    def supported_protocols(self) -> list[RebalanceProtocol]:
        """Return the cooperative protocol: members own no partitions, so none are revoked before a join."""
        return [RebalanceProtocol.COOPERATIVE]

    def metadata(self, topics: set[str]) -> ConsumerProtocolSubscription:
        """Return the subscription with this member's identity and last round."""
        content = {"agent": self.agent.value(), "process": self._process, "last": self.last.encode()}
        return encode_subscription(topics, [], -1, self.agent.zone, json.dumps(content).encode())

    def assign(self, cluster: object, members: list[Any]) -> dict[str, ConsumerProtocolAssignment]:  # noqa: ARG002 -- kafka-python's signature
        """Compute the view, on the leader; a member with foreign user data gets an empty assignment."""
        candidates = [one for member in members if (one := _read(member.member_id, member.metadata)) is not None]
        made = next_round(candidates).encode().encode()
        return {
            member.member_id: ConsumerProtocolAssignment(version=0, assigned_partitions=[], user_data=made)
            for member in members
        }

    def on_assignment(self, assignment: ConsumerProtocolAssignment, generation: int) -> None:  # noqa: ARG002 -- kafka-python's signature
        """Take the view."""
        with contextlib.suppress(ValueError, KeyError, TypeError, zlib.error):
            self.last = MembershipRound.decode(bytes(assignment.user_data or b"").decode())
            self._on_round(self.last)


class KafkaMembers(ServerMembers):
    """Membership of one agent by a Kafka group; the contract is that of `Members`.

    Brokers do not report the time of a member's last heartbeat, so `beats` is empty.

    Args:
        agent: this agent.
        kafka: kafka-python's settings of the home cluster, at least bootstrap_servers.
        fleet: name of the fleet; the group is `azimuth.fleet.<fleet>`.
        session: times; the broker must allow the session (group.min.session.timeout.ms, 6 s by default).
        witness: whether any other server answers; called when the home cluster does not.
    """

    def __init__(
        self,
        agent: Agent,
        kafka: Mapping[str, Any],
        fleet: str = "fleet",
        session: Session | None = None,
        witness: Witness | None = None,
    ) -> None:
        super().__init__("kafka", agent, session, witness)
        self._kafka = dict(kafka)
        self._group = f"azimuth.fleet.{fleet}"
        self._assignor = _ViewAssignor(agent, self._process, self._hear)
        self._member: GroupMember | None = None
        self._declares = threading.Event()
        self._joined = False  # whether the current member has joined
        self._final = False  # whether a new member would end for the reason of the last one

    def declare(self, settings: tuple[str, ...]) -> None:
        """Declare these settings in the next join, which is requested soon."""
        self._assignor.agent = replace(self._agent, settings=settings)
        if self._thread is not None:
            self._declares.set()

    def observe(self) -> Membership:
        """Describe the group.

        Raises:
            FleetError: the home cluster does not answer, or its coordinator is not available for some seconds.
        """
        servers = self._kafka.get("bootstrap_servers")
        servers = ",".join(servers) if isinstance(servers, list | tuple) else servers
        try:
            limits = {"bootstrap_timeout_ms": _ANSWER_MS, "request_timeout_ms": _ANSWER_MS}
            # The settings are of a consumer, and this client refuses those that it does not know.
            known = {name: value for name, value in self._kafka.items() if name in KafkaAdminClient.DEFAULT_CONFIG}
            admin: Any = connected(KafkaAdminClient, {**limits, **known})
            try:
                said = self._described(admin)
            finally:
                admin.close()
        except CoordinatorNotAvailableError as error:
            raise FleetError(
                f"home cluster {servers}: the coordinator of group {self._group}, which knows the live agents, is not "
                "available, as on a new cluster: ask again in a few seconds"
            ) from error
        except (KafkaError, ValueError) as error:
            raise FleetError(
                f"home cluster {servers} does not answer, and only it knows the live agents: {error!r}"
            ) from error
        found = [_read(one["member_id"], one["member_metadata"]) for one in said["members"] or ()]
        made = next_round(one for one in found if one is not None)
        return Membership(view=made.view, standing=self._cell.state.standing)

    def _described(self, admin: Any) -> Any:  # noqa: ANN401 - kafka-python's mapping
        """Describe the group between two rebalances: during a rebalance the broker does not return user data."""
        began = time.monotonic()
        while True:
            try:
                said = admin.describe_groups([self._group])[self._group]
            except CoordinatorNotAvailableError:
                # The first question for a group makes a new cluster create the topic of its coordinators.
                if time.monotonic() > began + _CREATED_S:
                    raise
            else:
                if said["group_state"] not in _REBALANCING:
                    return said
                if time.monotonic() > began + self._session.session_s + _SETTLES_S:
                    raise FleetError(f"the fleet's group {self._group} is rebalancing: ask again in a few seconds")
            time.sleep(_PAUSE_S)

    def _leave(self) -> None:
        if self._member is not None:
            self._member.close()

    def _run(self) -> None:
        while not self._ended.is_set():
            if self._member is None:
                self._join()
            else:
                self._look(self._member)
            self._woken.wait(_PAUSE_S)

    def _join(self) -> None:
        session_ms = int(self._session.session_s * 1000)
        # With kafka-python's 30 s a coordinator that is silent would be left only then; another one takes over after
        # about a session.
        waits = {"bootstrap_timeout_ms": _ANSWER_MS, "request_timeout_ms": min(max(session_ms, _ANSWER_MS), 30_000)}
        # Not the given times: the agent's own clock, which decides when it stops reading, counts this session.
        own = {
            "group_id": self._group,
            "session_timeout_ms": session_ms,
            "heartbeat_interval_ms": int(self._session.beat_s * 1000),
            # Longest delay of the group's rebalance by a member that hangs.
            "max_poll_interval_ms": max(session_ms, 30_000),
            # It never fetches, and kafka-python refuses a wait for records that is longer than the one for an answer.
            "fetch_max_wait_ms": 1,
        }
        self._joined = False
        config = {"client_id": f"fleet-{self._agent.id}", **waits, **self._kafka, **own}
        member = GroupMember(config, pattern=_NOTHING, assignors=[self._assignor])
        try:
            self._member = member.start()
        except MembershipError as error:
            self._fails_to_join(f"the home cluster does not answer: {error}")

    def _fails_to_join(self, reason: str) -> None:
        """Keep the last view as during any other silence: topics are still read while the group's server is away."""
        state = self._cell.state
        if state.view is None or state.heard_s is None or state.standing is Standing.REFUSED:
            self._note(Standing.JOINING if state.view is None else state.standing, reason)
            return
        standing = self._standing(state.heard_s)
        self._note(standing, reason if standing is Standing.MEMBER else f"{reason}; {without_server(standing)}")

    def _standing(self, heard_s: float) -> Standing:
        # After an error that a retry cannot fix the others remove this agent, whatever other servers answer.
        return self._session.standing(time.monotonic() - heard_s, None if self._final else self._witness)

    def _look(self, member: GroupMember) -> None:
        """Check how long the group has not answered; replace a membership that has ended."""
        state = self._cell.state
        if member.failed is not None:
            self._final = member.fatal
            what = "cannot join, trying again" if state.view is None else "the membership has ended, joining again"
            self._fails_to_join(f"{what}: {member.failed!r}")
            member.close()
            self._member = None
            return
        if self._declares.is_set():
            self._declares.clear()
            with contextlib.suppress(MembershipError):  # it has just ended; the next member joins with the settings
                member.rejoin()
        if state.view is None or state.standing is Standing.REFUSED:
            return
        heard_s = state.heard_s or 0.0
        if self._joined:  # the clock of a member that has not joined begins with the member
            heard_s = member.answered_s
            self._cell.change(heard_s=heard_s)
        standing = self._standing(heard_s)
        if standing is Standing.MEMBER:
            if self._joined:
                if state.standing is not Standing.MEMBER:
                    log.info("fleet: agent %r is a member again (it was %s)", self._agent.id, state.standing.value)
                self._cell.change(standing=standing, reason="")
            return
        # These two look the same from here: the broker answers a rebalance only when all live members have rejoined.
        silence = "the fleet's group does not answer: the home cluster is away, or a rebalance waits for a dead agent"
        self._note(standing, f"{silence}; {without_server(standing)}")

    def _hear(self, made: MembershipRound) -> None:
        self._joined, self._final = True, False
        owner = made.owners.get(self._agent.id)
        if owner == self._process:
            self._cell.change(view=made.view, standing=Standing.MEMBER, reason="", heard_s=time.monotonic())
            return
        by = (owner or "a process that left").rpartition(":")[0]
        self._cell.change(heard_s=time.monotonic())
        self._note(Standing.REFUSED, f"agent id {self._agent.id!r} is in use by {by}: give each agent an id of its own")


def _read(member: str, metadata: Any) -> Candidate | None:  # noqa: ANN401 - kafka-python's, or a mapping of its fields
    """Read a member's user data; None if it is foreign."""
    raw = metadata.get("user_data") if isinstance(metadata, Mapping) else getattr(metadata, "user_data", None)
    try:
        content = json.loads(raw if isinstance(raw, str) else bytes(raw or b""))
        return Candidate(
            member=member,
            agent=Agent.of(content["agent"]),
            process=str(content["process"]),
            last=MembershipRound.decode(content["last"]),
        )
    except (ValueError, KeyError, TypeError, zlib.error, FleetError):
        log.warning("fleet: member %r of the group is not an agent: ignored", member)
        return None
