"""The data that a member sends to the leader: ConsumerProtocolSubscription version 3, and user data only if needed.

KIP-848 lets a broker refuse to migrate a group online whose members send user data. So only a member with
`agent=` or `weight` sends it, because the leader needs these values. It is JSON: `{"azimuth": 1, "agent": ...,
"weight": ..., "plan": ...}`; any other content belongs to another assignor and is ignored.
"""

import json
from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass
from operator import attrgetter
from typing import Any, Final

from kafka.protocol.consumer.metadata import ConsumerProtocolSubscription

from assignors.planner.topics_and_members import Member, TopicPartition

VERSION: Final = 3
_MAX_BYTES: Final = 4096
_CLAIM: Final = attrgetter("topic", "partitions")


@dataclass(frozen=True, slots=True, kw_only=True)
class UserData:
    """The part of a member's configuration that the leader must know.

    Attributes:
        agent: identity that survives a restart, None if the group instance id or the member id is the identity.
        weight: capacity relative to the other members.
        plan: the member's settings of the plan, as text: the leader warns if members differ. None: not known.
    """

    agent: str | None = None
    weight: float = 1.0
    plan: str | None = None

    def encode(self) -> bytes:
        """Encode; empty if the leader needs neither the agent nor the weight."""
        if self.agent is None and self.weight == 1:
            return b""
        content = {"azimuth": 1, "agent": self.agent, "weight": self.weight, "plan": self.plan}
        return json.dumps(content, separators=(",", ":")).encode()


def decode_user_data(raw: bytes | None) -> UserData | None:
    """Read user data.

    Returns:
        None if it belongs to another assignor, is truncated, or has invalid values.
    """
    if not raw:
        return UserData()
    if len(raw) > _MAX_BYTES:
        return None
    try:
        content = json.loads(bytes(raw))
        agent, weight, plan = content["agent"], float(content["weight"]), content["plan"]
        Member(id="", topics=frozenset(), weight=weight)
        f"{agent}{plan}".encode()  # JSON may contain a surrogate, which cannot be hashed
    except Exception:  # noqa: BLE001 - bytes of another client may raise any error
        return None
    if content.get("azimuth") != 1 or not isinstance(agent, str | None) or not isinstance(plan, str | None):
        return None
    return UserData(agent=agent, weight=weight, plan=plan)


def encode_subscription(
    topics: Iterable[str], owned: Iterable[TopicPartition], generation: int, rack: str | None, user_data: bytes
) -> ConsumerProtocolSubscription:
    """Create the subscription for JoinGroup."""
    by_topic: dict[str, list[int]] = defaultdict(list)
    for topic, partition in owned:
        by_topic[topic].append(partition)
    return ConsumerProtocolSubscription(
        version=VERSION,
        topics=sorted(topics),
        user_data=user_data or None,
        owned_partitions=[
            ConsumerProtocolSubscription.TopicPartition(topic=t, partitions=sorted(p))
            for t, p in sorted(by_topic.items())
        ],
        generation_id=generation,
        rack_id=rack,
    )


def decode_member(
    member: Any,  # noqa: ANN401 - kafka-python's classes are untyped
    subscriptions: dict[tuple[str, ...], frozenset[str]],
) -> tuple[Member, UserData | None]:
    """Read one member of the JoinGroup response; fields that its version does not have are unknown.

    Args:
        member: of the response.
        subscriptions: of the members read before, by their list of topics, and extended here. Members with equal lists
            share one set: to hash and compare 1,000 sets of 100 topics takes longer than the plan.
    """
    metadata = member.metadata
    wanted = tuple(metadata.topics or ())
    if wanted not in subscriptions:
        subscriptions[wanted] = frozenset(wanted)
    data = decode_user_data(getattr(metadata, "user_data", None))
    known = data or UserData()
    claims = getattr(metadata, "owned_partitions", None) or ()
    generation = getattr(metadata, "generation_id", -1)
    return Member(
        id=member.member_id,
        topics=subscriptions[wanted],
        rack=getattr(metadata, "rack_id", None) or None,
        weight=known.weight,
        owned=frozenset([(topic, p) for topic, some in map(_CLAIM, claims) for p in some]),
        generation=-1 if generation is None else generation,
        instance=getattr(member, "group_instance_id", None) or known.agent,
    ), data
