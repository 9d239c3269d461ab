"""Allows only one live member of an agent's name in a group, across hosts: a member that finds another one ends.

The assignor treats two members of one name as one agent that returned, and gives the old member's partitions to the new
one. This is correct after a kill, and the old member is gone when its session has expired. A member that outlives its
session is another agent.

A member that joins again gets another id, and its former id may stay in the group for a session. So a check counts only
if the group has this member's id: the group never has two ids of one member for longer than a session.
"""

import threading
from collections.abc import Callable, Mapping

import structlog

from assignors.errors import GroupError
from spark_sink.kafka.client_property_names import broker_assigned_config, kafka_python_config
from spark_sink.options.source_options import SourceOptions

Look = Callable[[], Mapping[str, str] | None]
"""Hosts of the members that have the agent's name, by member id; None while the group rebalances."""

_log = structlog.get_logger("azimuth.source")
_MARGIN_S = 5.0
_AGAIN_S = 2.0
_LOOKS = 60


class NameFence:
    """Checks, in a separate thread, whether another member has this member's name.

    Args:
        agent: the name.
        group: the consumer group.
        session_s: the time after which a dead member is gone.
        look: reads the members of the group.
        wait: waits for a number of seconds; returns true if the member has left in that time.
    """

    def __init__(
        self, agent: str, group: str, session_s: float, look: Look, wait: Callable[[float], bool] | None = None
    ) -> None:
        self._agent = agent
        self._group = group
        self._session_s = session_s
        self._look = look
        self._left = threading.Event()
        self._joined: str | None = None
        self._wait = wait or self._left.wait
        self.refusal: str | None = None

    def joined(self, own: str) -> None:
        """Start the checks if the member has got this id since the last call: another agent may have come meanwhile."""
        if own != self._joined:
            self._joined = own
            threading.Thread(target=self.compare, args=(own,), name="agent-name", daemon=True).start()

    def leave(self) -> None:
        """End the checks, because this member has left the group."""
        self._left.set()

    def compare(self, own: str) -> None:
        """Find other members of this name that stay in the group for longer than a session.

        Of two agents that find each other, the one with the smaller id waits longer, so it finds that the other has
        ended.
        """
        before = self._others(own)
        if not before:
            return
        patience_s = self._session_s + _MARGIN_S
        if own < min(before):
            patience_s *= 2
        _log.warning(
            "another member of the group has this agent's name: if it is alive after its session, this one ends",
            agent=self._agent,
            hosts=sorted(before.values()),
            seconds=patience_s,
        )
        if self._wait(patience_s):
            return
        now = self._others(own)
        if alive := sorted({now[one] for one in before.keys() & now.keys()}):
            self.refusal = (
                f"agent {self._agent!r} of group {self._group!r} is running already, on {', '.join(alive)}: give each "
                "agent a name of its own (option 'agent', --agent); the default of `azimuth sink` is the host's name"
            )

    def _others(self, own: str) -> Mapping[str, str]:
        """Return the other members of this name while the group has this one; none if it has not."""
        for _ in range(_LOOKS):
            found = self._look()
            if found is not None and own in found:
                return {member: host for member, host in found.items() if member != own}
            if self._wait(_AGAIN_S):
                break
        return {}


def name_fence(options: SourceOptions) -> NameFence | None:
    """Return the fence of a member; None without a name, with an instance id, or if the broker assigns.

    The brokers fence instance ids. An assignor of the broker does not know the name, so it cannot mix up two members.
    """
    if options.agent is None or "group.instance.id" in options.kafka or broker_assigned_config(options.kafka):
        return None
    return NameFence(options.agent, options.group, options.session_timeout_s, lambda: same_name(options))


def same_name(options: SourceOptions) -> Mapping[str, str] | None:
    """Return the hosts of the members that have this agent's name, by member id; None if the group is not stable."""
    from kafka import KafkaAdminClient

    from assignors.comparison import read_group

    known = kafka_python_config(options.kafka)
    config = {name: value for name, value in known.items() if name in KafkaAdminClient.DEFAULT_CONFIG}
    try:
        group = read_group(options.kafka["bootstrap.servers"], options.group, config)
    except GroupError as error:
        # A rebalancing group reports no subscriptions, which looks like members without topics.
        _log.debug("the group's members are not known", reason=str(error))
        return None
    if group.state != "Stable":
        return None
    return {one.id: group.hosts[one.id] for one in group.members if one.instance == options.agent}
