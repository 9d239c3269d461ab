"""The producer part of `azimuth plan`: a forecast of where a producer's records go."""

from collections.abc import Mapping

from confluent_kafka.admin import AdminClient

from producer import UnknownTopicError
from producer.forecast import Forecast, forecast, render
from producer.topology import Topology

_TIMEOUT_S = 10.0


def producer_forecast(properties: Mapping[str, str], rack: str, topic: str, fallback: tuple[str, ...] = ()) -> Forecast:
    """Read a topic's leaders, replicas and racks, and forecast where a producer in this zone would write.

    Args:
        properties: of the client, with librdkafka's names; at least `bootstrap.servers`.
        rack: zone of the producer.
        topic: an existing topic.
        fallback: zones to try if the producer's zone has no leader.

    Raises:
        MetadataError: the cluster did not answer.
        UnknownTopicError: there is no such topic.
    """
    config: dict[str, str | int | float | bool] = {"log_level": 0, **properties}
    topology = Topology(config, timeout_s=_TIMEOUT_S)
    admin = AdminClient(config)
    leaders = topology.leaders([topic]).get(topic)
    if leaders is None:
        servers = properties["bootstrap.servers"]
        raise UnknownTopicError(f"topic {topic!r} does not exist on {servers}, or may not be described")
    topology.read_racks()
    partitions = admin.list_topics(topic, timeout=_TIMEOUT_S).topics[topic].partitions
    replicas = [list(partitions[number].replicas) for number in range(len(leaders))]
    return forecast(topic, leaders, replicas, topology.racks, rack, fallback)


def render_producer_plan(properties: Mapping[str, str], rack: str, topic: str, fallback: tuple[str, ...] = ()) -> str:
    """Return the output of `azimuth plan --producer RACK --topic TOPIC`; arguments as `producer_forecast`."""
    return render(producer_forecast(properties, rack, topic, fallback))
