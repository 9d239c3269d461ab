"""The lag of a group: ends of the partitions in Kafka minus positions in a table, or in the group."""

from collections.abc import Mapping
from contextlib import closing
from dataclasses import dataclass
from typing import Any

from confluent_kafka import KafkaException
from confluent_kafka.admin import AdminClient

from assignors import MembershipError
from assignors.clients import CLIENT, LogOffsets, admin_properties, refused_property
from spark_sink.errors import LagError
from spark_sink.kafka.client_property_names import kafka_python_config
from spark_sink.ranges.batch_offset import TopicPartition

_TIMEOUT_S = 20.0


@dataclass(frozen=True, slots=True, kw_only=True)
class TopicLag:
    """The lag of one topic.

    Attributes:
        topic: name.
        partitions: how many have a position.
        lag_records: offsets between the positions and the ends; an upper bound of records, because topics have gaps.
        worst: the partition with the largest lag, and its lag.
        paused: whether the topic is paused for this group.
    """

    topic: str
    partitions: int
    lag_records: int
    worst: tuple[int, int]
    paused: bool = False


def by_topic(positions: Mapping[TopicPartition, int], ends: Mapping[TopicPartition, int]) -> list[TopicLag]:
    """Add up the lag of each topic, sorted by name; a partition whose end is unknown is left out.

    A position beyond the end (a topic that was recreated) counts as no lag.
    """
    found: dict[str, dict[int, int]] = {}
    for key, position in positions.items():
        if key in ends:
            found.setdefault(key.topic, {})[key.partition] = max(0, ends[key] - position)
    return [
        TopicLag(
            topic=topic,
            partitions=len(lags),
            lag_records=sum(lags.values()),
            worst=max(lags.items(), key=lambda one: (one[1], -one[0])),
        )
        for topic, lags in sorted(found.items())
    ]


def admin(kafka: Mapping[str, Any]) -> AdminClient:
    """Create a client for the requests below. It logs nothing about brokers that are down, because the answers do.

    Raises:
        LagError: a property is unknown or invalid.
    """
    try:
        return AdminClient({"log_level": 2, "client.id": CLIENT, **admin_properties(kafka)})
    except KafkaException as error:
        raise LagError(f"Kafka client properties: {refused_property(error, kafka)}; check --kafka") from error


def behind(
    client: AdminClient,
    kafka: Mapping[str, Any],
    positions: Mapping[TopicPartition, int],
    timeout_s: float = _TIMEOUT_S,
) -> list[TopicLag]:
    """Request the ends of the logs, and add up the lag; partitions that no longer exist are left out.

    Args:
        client: lists the existing partitions.
        kafka: librdkafka's properties, at least `bootstrap.servers`.
        positions: the next offset to read, by partition.
        timeout_s: longest time for each of the two requests.

    Raises:
        LagError: the brokers do not answer, or the leader of an existing partition does not.
    """
    there = sorted(_existing(client, timeout_s) & positions.keys())
    if not there:
        return []
    try:
        with closing(LogOffsets.connect(kafka_python_config(kafka))) as logs:
            ends = {TopicPartition(*key): at for key, at in logs.ends(there, timeout_s).items()}
    except MembershipError as error:
        raise LagError(f"the ends of {len(there)} partitions cannot be asked for: {error}") from error
    # A sum without these partitions would be too small.
    if missing := [key for key in there if key not in ends]:
        first = f"{missing[0].topic}/{missing[0].partition}"
        more = f", nor for {len(missing) - 1} more" if len(missing) > 1 else ""
        raise LagError(f"{first}: no leader has answered for its end in {timeout_s:g} s{more}; ask again when one does")
    return by_topic(positions, ends)


def topic_names(client: AdminClient, timeout_s: float = _TIMEOUT_S) -> frozenset[str]:
    """Return the names of a cluster's topics, without those that this user may not describe.

    Raises:
        LagError: the brokers do not answer.
    """
    return frozenset(key.topic for key in _existing(client, timeout_s))


def _existing(client: AdminClient, timeout_s: float) -> set[TopicPartition]:
    try:
        topics = client.list_topics(timeout=timeout_s).topics
    except KafkaException as error:
        raise LagError(f"the topics cannot be asked for: {error.args[0].str()}; check --bootstrap-servers") from error
    return {TopicPartition(name, number) for name, topic in topics.items() for number in topic.partitions}


def committed(client: AdminClient, kafka: Mapping[str, Any], group: str) -> dict[TopicPartition, int]:
    """Return the offsets that a group has committed to Kafka, for existing partitions.

    librdkafka's `list_consumer_group_offsets` is not used: it ends the process if the broker is not (yet) the group's
    coordinator, as on a new cluster: https://github.com/confluentinc/librdkafka/issues/5040.

    Args:
        client: lists the existing partitions.
        kafka: librdkafka's properties, at least `bootstrap.servers`.
        group: its id.

    Raises:
        LagError: the brokers do not answer, or refuse the request.
    """
    there = sorted(_existing(client, _TIMEOUT_S))
    try:
        with closing(LogOffsets.connect({**kafka_python_config(kafka), "group_id": group})) as logs:
            found = logs.committed(there, _TIMEOUT_S)
    except MembershipError as error:
        raise LagError(f"group {group!r}: its offsets cannot be asked for: {error}") from error
    return {TopicPartition(*key): at for key, at in found.items()}
