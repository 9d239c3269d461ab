"""Describes a live group of the new protocol (KIP-848) through librdkafka, because kafka-python cannot."""

from collections.abc import Mapping
from typing import Any, Final, NamedTuple

from confluent_kafka import ConsumerGroupState, ConsumerGroupType, KafkaException
from confluent_kafka.admin import AdminClient

from assignors.errors import GroupError
from assignors.planner.topics_and_members import Member

_TIMEOUT_S: Final = 15.0


class DescribedMembers(NamedTuple):
    """The members of a group.

    Attributes:
        state: the broker's name for it; `Rebalancing` for those of KIP-848 that librdkafka does not name.
        strategy: name of the assignor.
        members: the members, with the partitions that they own.
        hosts: address of each member's client.
    """

    state: str
    strategy: str
    members: tuple[Member, ...]
    hosts: Mapping[str, str]


def broker_assigned_members(properties: Mapping[str, Any], group: str) -> DescribedMembers | None:
    """Describe a group of the new protocol; None if there is none of this name.

    librdkafka describes members without subscriptions and racks, so each member counts as subscribed to every topic of
    which a member owns a partition.

    Args:
        properties: properties of librdkafka, at least `bootstrap.servers`.
        group: group id.

    Raises:
        GroupError: the coordinator does not answer, or refuses.
    """
    admin = AdminClient({"log_level": 0, **properties})
    try:
        found = admin.describe_consumer_groups([group], request_timeout=_TIMEOUT_S)[group].result(_TIMEOUT_S)
    except KafkaException as error:
        raise GroupError(f"group {group!r} cannot be described: {error.args[0].str()}") from error
    if found.type != ConsumerGroupType.CONSUMER:
        return None
    owned = {
        one.member_id: frozenset((part.topic, part.partition) for part in one.assignment.topic_partitions)
        for one in found.members
    }
    topics = frozenset(topic for parts in owned.values() for topic, _ in parts)
    members = [
        Member(
            id=one.member_id, topics=topics, owned=owned[one.member_id], generation=1, instance=one.group_instance_id
        )
        for one in found.members
    ]
    return DescribedMembers(
        state=_state(found.state),
        strategy=str(found.partition_assignor),
        members=tuple(sorted(members, key=lambda one: one.id)),
        hosts={one.member_id: str(one.host).removeprefix("/") for one in found.members},
    )


def _state(state: ConsumerGroupState) -> str:
    """Name a state. librdkafka has no names for Assigning and Reconciling of KIP-848, and reports them as unknown."""
    if state == ConsumerGroupState.UNKNOWN:
        return "Rebalancing"
    return str(state.name).title().replace("_", "")
