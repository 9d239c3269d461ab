"""What a member tells the leader: ConsumerProtocolSubscription version 3, and user data only where it must.

User data is sent only by a member whose configuration is not the default one, because user data keeps the broker from
migrating a group online to the new protocol (KIP-848). It is JSON: `{"azimuth": 1, "agent": ..., "weight": ...,
"plan": ...}`; anything else in it is another assignor's and is ignored.
"""

import json
from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, Final

from kafka.protocol.consumer.metadata import ConsumerProtocolSubscription

from assignors.planner.topics_and_members import Member, TopicPartition

VERSION: Final = 3
_MAX_BYTES: Final = 4096


@dataclass(frozen=True, slots=True, kw_only=True)
class UserData:
    """The part of a member's configuration that the leader must know.

    Attributes:
        agent: identity that survives a restart, None where the group instance id or the member id is it.
        weight: capacity relative to the other members.
        plan: what the member would plan with, as text: the leader warns where members differ.
    """

    agent: str | None = None
    weight: float = 1.0
    plan: str = ""

    def encode(self) -> bytes:
        """Encode; nothing at all for the default."""
        if self == UserData():
            return b""
        content = {"azimuth": 1, "agent": self.agent, "weight": self.weight, "plan": self.plan}
        return json.dumps(content, separators=(",", ":")).encode()


def decode_user_data(raw: bytes | None) -> UserData | None:
    """Read user data.

    Returns:
        None where it is not ours: another assignor's, cut off, or with values that make no sense.
    """
    if not raw:
        return UserData()
    if len(raw) > _MAX_BYTES:
        return None
    try:
        content = json.loads(bytes(raw))
        agent, weight, plan = content["agent"], float(content["weight"]), content["plan"]
        Member(id="", topics=frozenset(), weight=weight)
        f"{agent}{plan}".encode()  # JSON may hold half a character, which cannot be hashed
    except Exception:  # noqa: BLE001 - foreign bytes: whatever they break, they are only not ours
        return None
    if content.get("azimuth") != 1 or not isinstance(agent, str | None) or not isinstance(plan, str):
        return None
    return UserData(agent=agent, weight=weight, plan=plan)


def encode_subscription(
    topics: Iterable[str], owned: Iterable[TopicPartition], generation: int, rack: str | None, user_data: bytes
) -> ConsumerProtocolSubscription:
    """Make the subscription that goes into JoinGroup."""
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


def decode_member(member: Any) -> tuple[Member, UserData | None]:  # noqa: ANN401 - kafka-python's classes are untyped
    """Read one member of the JoinGroup response; fields its version does not have are unknown."""
    said = member.metadata
    data = decode_user_data(getattr(said, "user_data", None))
    known = data or UserData()
    claims = getattr(said, "owned_partitions", None) or ()
    generation = getattr(said, "generation_id", -1)
    return Member(
        id=member.member_id,
        topics=frozenset(said.topics or ()),
        rack=getattr(said, "rack_id", None) or None,
        weight=known.weight,
        owned=frozenset((c.topic, p) for c in claims for p in c.partitions),
        generation=-1 if generation is None else generation,
        instance=getattr(member, "group_instance_id", None) or known.agent,
    ), data
