"""A group as it lives on a cluster: its members, what they own, and the topics they want. Reads only."""

import logging
import re
import time
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Final

from kafka import KafkaAdminClient
from kafka.errors import KafkaError, for_code

from assignors.errors import GroupError
from assignors.planner.topics_and_members import Member, Topic, TopicPartition
from assignors.protocol.subscription import decode_user_data

log = logging.getLogger(__name__)
_TIMEOUT_S: Final = 15.0
_PAUSE_S: Final = 0.3
_CODE: Final = re.compile(r"\[Error (\d+)\]")


@dataclass(frozen=True, slots=True, kw_only=True)
class LiveGroup:
    """What a cluster says of a group.

    Attributes:
        name: group id.
        state: as the broker names it: Stable, PreparingRebalance, CompletingRebalance, Empty.
        strategy: name of the assignor the members agreed on.
        members: with their subscription, rack, weight and partitions.
        hosts: address of each member's client.
        topics: those that members subscribed to, with the racks of their replicas and leaders.
        sizes: bytes stored of each partition; None where the brokers may not be asked.
    """

    name: str
    state: str
    strategy: str
    members: tuple[Member, ...]
    hosts: Mapping[str, str]
    topics: tuple[Topic, ...]
    sizes: Mapping[TopicPartition, int] | None


def read_group(bootstrap_servers: str, group: str, config: Mapping[str, Any] | None = None) -> LiveGroup:
    """Describe a group of the classic protocol.

    Args:
        bootstrap_servers: host:port, several by commas.
        group: group id.
        config: further settings of kafka-python's admin client (security).

    Raises:
        GroupError: no broker answers, there is no such group, it has no members, they subscribe to
            nothing, or it is of another protocol.
    """
    servers = [one.strip() for one in bootstrap_servers.split(",")]
    try:
        admin = KafkaAdminClient(
            **{"bootstrap_timeout_ms": int(_TIMEOUT_S * 1000), **(config or {}), "bootstrap_servers": servers}
        )
    except (KafkaError, ValueError) as error:
        raise GroupError(f"no broker answers at {bootstrap_servers}: {error}; check --bootstrap-servers") from error
    deadline = time.monotonic() + _TIMEOUT_S
    try:
        while True:
            try:
                return _read(admin, group)
            except KafkaError as error:
                # Coordinators move, and answer so for a moment.
                if not getattr(error, "retriable", False) or time.monotonic() > deadline:
                    raise GroupError(f"group {group!r} cannot be described: {error}") from error
                time.sleep(_PAUSE_S)
    finally:
        admin.close()


def _read(admin: Any, group: str) -> LiveGroup:  # noqa: ANN401 - kafka-python is untyped
    said = admin.describe_groups([group])[group]
    state = said["group_state"]
    _raise_if_passing(said["error"])
    if said["error"] or state == "Dead":
        raise GroupError(
            f"there is no group {group!r} of the classic protocol on this cluster"
            + (f" ({said['error']})" if said["error"] else "")
            + ": `kafka-groups.sh --list` names those that are"
        )
    if not said["members"]:
        raise GroupError(f"group {group!r} is {state} and has no members: start its consumers, then ask again")
    members = tuple(sorted((_member(one) for one in said["members"]), key=lambda one: one.id))
    names = sorted({topic for member in members for topic in member.topics})
    if not names:
        raise GroupError(
            f"no member of group {group!r} subscribes to a topic: they are no consumers (Kafka Connect), or their "
            "patterns match nothing yet"
        )
    cluster = admin.describe_cluster()
    racks = {one["broker_id"]: one["rack"] for one in cluster["brokers"] if one["rack"]}
    found = [one for one in admin.describe_topics(names) if not one["error_code"]] if names else []
    return LiveGroup(
        name=group,
        state=state,
        strategy=said["protocol_data"],
        members=members,
        hosts={one["member_id"]: one["client_host"].removeprefix("/") for one in said["members"]},
        topics=tuple(_topic(one, racks) for one in found),
        sizes=_sizes(admin, names),
    )


def _raise_if_passing(error: str | None) -> None:
    """Raise what is over in a moment: a coordinator that moves or loads says so in its answer, which raises nothing."""
    code = _CODE.match(error or "")
    kind = for_code(int(code[1])) if code else None
    if kind is not None and kind.retriable:
        raise kind(error)


def _member(said: Mapping[str, Any]) -> Member:
    subscription = _fields(said["member_metadata"])
    assignment = _fields(said["member_assignment"])
    raw = subscription.get("user_data")
    data = decode_user_data(raw.encode(errors="replace") if isinstance(raw, str) else raw)
    owned = _pairs(assignment.get("assigned_partitions") or ())
    return Member(
        id=said["member_id"],
        topics=frozenset(subscription.get("topics") or ()) | {topic for topic, _ in owned},
        rack=subscription.get("rack_id"),
        weight=1.0 if data is None else data.weight,
        owned=frozenset(owned),
        generation=1,
        instance=said.get("group_instance_id") or (None if data is None else data.agent),
    )


def _fields(said: object) -> dict[str, Any]:
    """Fields of a decoded subscription or assignment; none where another kind of client wrote it (Kafka Connect)."""
    if isinstance(said, Mapping):
        return dict(said)
    return {} if isinstance(said, bytes | str) or said is None else dict(vars(said))


def _pairs(said: Iterable[Any]) -> Iterable[TopicPartition]:
    found = []
    for one in said:
        topic, numbers = (one["topic"], one["partitions"]) if isinstance(one, Mapping) else one
        found += [(topic, number) for number in numbers]
    return found


def _topic(said: Mapping[str, Any], racks: Mapping[int, str]) -> Topic:
    partitions = sorted(said["partitions"], key=lambda one: one["partition_index"])
    return Topic(
        said["name"],
        len(partitions),
        racks=[frozenset(racks[n] for n in one["replica_nodes"] if n in racks) for one in partitions],
        leaders=[racks.get(one["leader_id"]) for one in partitions],
    )


def _sizes(admin: Any, names: list[str]) -> dict[TopicPartition, int] | None:  # noqa: ANN401 - as above
    """Bytes of the largest replica of each partition: a replica that catches up is smaller."""
    sizes: dict[TopicPartition, int] = {}
    try:
        answers = admin.describe_log_dirs(names)
    except KafkaError as error:
        log.info("sizes of partitions are unknown: %s", error)
        return None
    for answer in answers:
        for folder in answer["log_dirs"]:
            for topic in folder["topics"]:
                for one in topic["partitions"]:
                    pair = (topic.get("name") or topic["topic"], one["partition_index"])
                    sizes[pair] = max(sizes.get(pair, 0), one["partition_size"])
    return sizes or None
