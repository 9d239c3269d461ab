"""The producer part of `azimuth plan`: a forecast of where a producer's records go."""

import re
from collections.abc import Mapping
from typing import Any

from confluent_kafka import KafkaException
from confluent_kafka.admin import AdminClient

from assignors.clients import CLIENT
from assignors.errors import NO_PATTERN
from producer import MetadataError, PolicyError, UnknownTopicError
from producer.forecast import Forecast, forecast
from producer.metadata_requests import Topology

_TIMEOUT_S = 10.0


def producer_forecasts(
    properties: Mapping[str, str], rack: str, topic: str, fallback: tuple[str, ...] = ()
) -> list[Forecast]:
    """Read leaders, replicas and racks of topics, and forecast where a producer in this zone would write.

    Args:
        properties: of the client, with librdkafka's names; at least `bootstrap.servers`.
        rack: zone of the producer.
        topic: an existing topic, or a regular expression that matches whole names; Kafka's internal topics never match.
        fallback: zones to try if the producer's zone has no leader.

    Returns:
        One forecast per topic, by name; never empty.

    Raises:
        MetadataError: the cluster did not answer.
        PolicyError: the topic does not exist and is not a regular expression.
        UnknownTopicError: there is no such topic.
    """
    config: dict[str, Any] = {"log_level": 0, "client.id": CLIENT, **properties}
    try:
        found = AdminClient(config).list_topics(timeout=_TIMEOUT_S).topics
    except KafkaException as error:
        raise MetadataError(f"topics could not be read: {error.args[0].str()}") from error
    allowed = {name: one.partitions for name, one in found.items() if one.error is None and one.partitions}
    names = [topic] if topic in allowed else sorted(filter(_pattern(topic).fullmatch, allowed))
    names = [name for name in names if name == topic or not name.startswith("__")]
    if not names:
        servers = properties["bootstrap.servers"]
        raise UnknownTopicError(f"topic {topic!r} does not exist on {servers}, or may not be described")
    topology = Topology(config, timeout_s=_TIMEOUT_S)
    topology.read_racks()
    return [_forecast(name, allowed[name], topology, rack, fallback) for name in names]


def _pattern(topic: str) -> re.Pattern[str]:
    try:
        return re.compile(topic)
    except NO_PATTERN as error:
        raise PolicyError(f"topic {topic!r} does not exist and is not a regular expression: {error}") from error


def _forecast(
    name: str, partitions: Mapping[int, Any], topology: Topology, rack: str, fallback: tuple[str, ...]
) -> Forecast:
    inside = [partitions[number] for number in sorted(partitions)]
    leaders = [one.leader if one.leader >= 0 else None for one in inside]
    replicas, in_sync = [list(one.replicas) for one in inside], [list(one.isrs) for one in inside]
    return forecast(name, leaders, replicas, topology.racks, rack, fallback, in_sync)
