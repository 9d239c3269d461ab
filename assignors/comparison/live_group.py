"""A live group of a cluster: its members, what they own, and the topics they subscribe to. Reads only."""

import difflib
import logging
import re
import time
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Final

from kafka import KafkaAdminClient
from kafka.errors import AuthorizationError, GroupIdNotFoundError, KafkaError, for_code

from assignors.clients.kafka_python_names import CLIENT, bootstrap_list
from assignors.comparison.broker_assigned_group import DescribedMembers, broker_assigned_members
from assignors.errors import GroupError
from assignors.planner.topics_and_members import Member, Topic, TopicPartition
from assignors.protocol.join_subscription import decode_user_data

log = logging.getLogger(__name__)
_TIMEOUT_S: Final = 15.0
_PAUSE_S: Final = 0.3
_SHOWN: Final = 5
_CODE: Final = re.compile(r"\[Error (\d+)\] *")


@dataclass(frozen=True, slots=True, kw_only=True)
class LiveGroup:
    """A group as its cluster describes it.

    Attributes:
        name: group id.
        protocol: `classic`, or `consumer` if the broker assigns (KIP-848).
        state: the broker's name for it: Stable, PreparingRebalance, CompletingRebalance, Empty.
        strategy: name of the assignor the members agreed on, or of the broker's.
        members: with their subscriptions, racks, weights and partitions.
        hosts: address of each member's client.
        topics: the topics that members subscribe to, with the racks of their replicas and leaders.
        sizes: bytes stored of each partition; None where the client is not authorized to read it.
        not_described: topics that members subscribe to and the cluster does not describe, sorted.
    """

    name: str
    state: str
    strategy: str
    members: tuple[Member, ...]
    hosts: Mapping[str, str]
    topics: tuple[Topic, ...]
    sizes: Mapping[TopicPartition, int] | None
    protocol: str = "classic"
    not_described: tuple[str, ...] = ()


def read_group(
    bootstrap_servers: str,
    group: str,
    config: Mapping[str, Any] | None = None,
    properties: Mapping[str, Any] | None = None,
) -> LiveGroup:
    """Describe a group of the classic protocol, or of the one in which the broker assigns (KIP-848).

    Args:
        bootstrap_servers: host:port, several by commas.
        group: group id.
        config: further settings of kafka-python's admin client (security).
        properties: all of librdkafka's properties, to look for a group of the new protocol, too; None for the classic
            one only.

    Raises:
        GroupError: no broker answers, there is no such group, it has no members, its members subscribe to nothing, or
            none of their topics is described.
    """
    servers = bootstrap_list(bootstrap_servers)
    try:
        admin = KafkaAdminClient(
            **{
                "client_id": CLIENT,
                "bootstrap_timeout_ms": int(_TIMEOUT_S * 1000),
                **(config or {}),
                "bootstrap_servers": servers,
            }
        )
    except (KafkaError, ValueError) as error:
        raise GroupError(
            f"no broker answers at {bootstrap_servers}: {_said(error)}; check --bootstrap-servers"
        ) from error
    deadline = time.monotonic() + _TIMEOUT_S
    try:
        while True:
            try:
                return _read(admin, group, None if properties is None else {"client.id": CLIENT, **properties})
            except KafkaError as error:
                # While a coordinator moves, brokers answer with retriable errors.
                if not error.retriable or time.monotonic() > deadline:
                    raise GroupError(f"group {group!r} cannot be described: {_said(error)}") from error
                time.sleep(_PAUSE_S)
    finally:
        admin.close()


def _other_groups(admin: Any, group: str) -> str:  # noqa: ANN401 - kafka-python is untyped
    """Say which groups this user may see, those with a similar name first."""
    try:
        names = sorted({one["group_id"] for one in admin.list_groups()})
    except KafkaError as error:
        return f"its groups could not be listed: {_said(error)}"
    if not names:
        return "there is none that this user may see: start its consumers, or allow the user DESCRIBE on it"
    similar = difflib.get_close_matches(group, names, _SHOWN)
    shown = [*similar, *(one for one in names if one not in similar)][:_SHOWN]
    more = f" and {len(names) - _SHOWN} more" if len(names) > _SHOWN else ""
    return f"there are {', '.join(map(repr, shown))}{more}"


def _read(admin: Any, group: str, properties: Mapping[str, Any] | None) -> LiveGroup:  # noqa: ANN401 - kafka-python is untyped
    described = admin.describe_groups([group])[group]
    _raise_unless_missing(described["error"])
    protocol, found = "classic", None
    missing = described["error"] or described["group_state"] == "Dead"
    if missing and properties is not None:
        protocol, found = "consumer", broker_assigned_members(properties, group)
    if missing and found is None:
        raise GroupError(f"there is no group {group!r} on this cluster; {_other_groups(admin, group)}")
    state, strategy, members, hosts = found or _members(described)
    if not members:
        raise GroupError(f"group {group!r} is {state} and has no members: start its consumers, then try again")
    names = sorted({topic for member in members for topic in member.topics})
    if not names:
        raise GroupError(
            f"no member of group {group!r} subscribes to a topic: they are not consumers (Kafka Connect), or their "
            "patterns match nothing yet"
        )
    cluster = admin.describe_cluster()
    racks = {one["broker_id"]: one["rack"] for one in cluster["brokers"] if one["rack"]}
    known = [one for one in admin.describe_topics(names) if not one["error_code"]]
    if not known:  # a plan of no topics would look like one
        raise GroupError(
            f"topic {names[0]}{f' and {len(names) - 1} more' if len(names) > 1 else ''} of group {group!r}: there is "
            "no such topic, or this user may not describe it: allow it DESCRIBE"
        )
    return LiveGroup(
        name=group,
        protocol=protocol,
        state=state,
        strategy=strategy,
        members=members,
        hosts=hosts,
        topics=tuple(_topic(one, racks) for one in known),
        sizes=_sizes(admin, names),
        not_described=tuple(sorted({*names} - {one["name"] for one in known})),
    )


def _members(described: Mapping[str, Any]) -> DescribedMembers:
    return DescribedMembers(
        state=described["group_state"],
        strategy=described["protocol_data"],
        members=tuple(sorted((_member(one) for one in described["members"]), key=lambda one: one.id)),
        hosts={one["member_id"]: one["client_host"].removeprefix("/") for one in described["members"]},
    )


def _raise_unless_missing(error: str | None) -> None:
    """Raise a refusal, as of a coordinator that moves; kafka-python returns it as a text, as for a missing group."""
    code = _CODE.match(error or "")
    kind = for_code(int(code[1])) if code else None
    if kind is not None and kind is not GroupIdNotFoundError:
        words = str(error).partition(": ")[2]
        raise kind(*([words] if words not in {"", "None"} else []))


def _said(error: Exception) -> str:
    """Return an error without kafka-python's number of it, and what to do if a right is missing."""
    lacks = isinstance(error, AuthorizationError)
    return _CODE.sub("", str(error)) + ("; this user may not describe it: allow it DESCRIBE" if lacks else "")


def _member(described: Mapping[str, Any]) -> Member:
    subscription = _fields(described["member_metadata"])
    assignment = _fields(described["member_assignment"])
    raw = subscription.get("user_data")
    data = decode_user_data(raw.encode(errors="replace") if isinstance(raw, str) else raw)
    owned = _pairs(assignment.get("assigned_partitions") or ())
    return Member(
        id=described["member_id"],
        topics=frozenset(subscription.get("topics") or ()) | {topic for topic, _ in owned},
        rack=subscription.get("rack_id"),
        weight=1.0 if data is None else data.weight,
        owned=frozenset(owned),
        generation=1,
        instance=described.get("group_instance_id") or (None if data is None else data.agent),
    )


def _fields(described: object) -> dict[str, Any]:
    """Fields of a decoded subscription or assignment; empty if another kind of client wrote it (Kafka Connect)."""
    if isinstance(described, Mapping):
        return dict(described)
    return {} if isinstance(described, bytes | str) or described is None else dict(vars(described))


def _pairs(described: Iterable[Any]) -> Iterable[TopicPartition]:
    found = []
    for one in described:
        topic, numbers = (one["topic"], one["partitions"]) if isinstance(one, Mapping) else one
        found += [(topic, number) for number in numbers]
    return found


def _topic(described: Mapping[str, Any], racks: Mapping[int, str]) -> Topic:
    partitions = sorted(described["partitions"], key=lambda one: one["partition_index"])
    return Topic(
        described["name"],
        len(partitions),
        racks=[frozenset(racks[n] for n in one["replica_nodes"] if n in racks) for one in partitions],
        leaders=[racks.get(one["leader_id"]) for one in partitions],
    )


def _sizes(admin: Any, names: list[str]) -> dict[TopicPartition, int] | None:  # noqa: ANN401 - kafka-python is untyped
    """Return the bytes of each partition's largest replica: a replica that is catching up is smaller."""
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
