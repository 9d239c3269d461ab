"""How far a group is behind: ends of the partitions in Kafka against positions in a table, or in the group."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from confluent_kafka import ConsumerGroupTopicPartitions, KafkaError, KafkaException
from confluent_kafka import TopicPartition as KafkaPartition
from confluent_kafka.admin import AdminClient
from confluent_kafka.admin._listoffsets import OffsetSpec

from spark_sink._errors import LagError
from spark_sink._offsets import TopicPartition

_TIMEOUT_S = 20.0


@dataclass(frozen=True, slots=True, kw_only=True)
class TopicLag:
    """The lag of one topic.

    Attributes:
        topic: name.
        partitions: how many have a position.
        lag_records: offsets between the positions and the ends; an upper bound of records, because topics have gaps.
        worst: the partition that is furthest behind, and its lag.
    """

    topic: str
    partitions: int
    lag_records: int
    worst: tuple[int, int]


def by_topic(positions: Mapping[TopicPartition, int], ends: Mapping[TopicPartition, int]) -> list[TopicLag]:
    """Sum up the lag of each topic, sorted by name; a partition whose end is not known is left out.

    A position beyond the end (a topic that was made anew) counts as no lag.
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
    """A client for the questions below; quiet where brokers are down, because the answers say so.

    Raises:
        LagError: a property is unknown or has no meaning.
    """
    try:
        return AdminClient({"log_level": 2, **kafka})
    except KafkaException as error:
        raise LagError(f"Kafka client properties: {error.args[0].str()}; check --kafka") from error


def ends(client: AdminClient, keys: Iterable[TopicPartition]) -> dict[TopicPartition, int]:
    """The offset after the last record, by partition; partitions that are gone are left out.

    Raises:
        LagError: the brokers do not answer.
    """
    asked = {KafkaPartition(*key): OffsetSpec.latest() for key in keys}  # type: ignore[no-untyped-call]  # of confluent-kafka
    found = {}
    for key, answer in (client.list_offsets(asked, request_timeout=_TIMEOUT_S) if asked else {}).items():
        try:
            found[TopicPartition(key.topic, key.partition)] = answer.result(_TIMEOUT_S + 5).offset
        except KafkaException as error:
            if error.args[0].code() != KafkaError.UNKNOWN_TOPIC_OR_PART:
                raise LagError(f"{key.topic}/{key.partition}: the end cannot be asked for: {error.args[0]}") from error
        except TimeoutError as error:
            raise LagError(f"{key.topic}/{key.partition}: no broker has answered in {_TIMEOUT_S:g} s") from error
    return found


def committed(client: AdminClient, group: str) -> dict[TopicPartition, int]:
    """The offsets that a group has committed to Kafka.

    Raises:
        LagError: the brokers do not answer.
    """
    (answer,) = client.list_consumer_group_offsets(
        [ConsumerGroupTopicPartitions(group)], request_timeout=_TIMEOUT_S
    ).values()
    try:
        known = answer.result(_TIMEOUT_S + 5).topic_partitions
    except (KafkaException, TimeoutError) as error:
        raise LagError(f"group {group!r}: its offsets cannot be asked for: {error}") from error
    return {TopicPartition(one.topic, one.partition): one.offset for one in known if one.offset >= 0}
