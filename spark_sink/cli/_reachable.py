"""Checks that brokers answer, and have a topic, before a command starts: its own requests would explain less."""

from collections.abc import Mapping

from confluent_kafka import KafkaException

from assignors.settings import proposal
from spark_sink.errors import ClusterError, OptionError
from spark_sink.kafka.client_property_names import librdkafka_config, why_unreachable
from spark_sink.kafka.group_lag import admin

_TIMEOUT_S = 10.0


def reach(properties: Mapping[str, str]) -> None:
    """Send one request to the brokers.

    Args:
        properties: of the client; at least `bootstrap.servers`.

    Raises:
        ClusterError: no broker answers, or the brokers refuse the client; the message distinguishes the two.
        LagError: a property is unknown or invalid.
    """
    # kafka-python ignores a misspelled security.protocol and connects in plain text.
    admin(librdkafka_config(properties))
    why = why_unreachable(properties)
    if why:
        servers = properties["bootstrap.servers"]
        raise ClusterError(f"{servers}: {why}; check --bootstrap-servers and --kafka")


def reach_topic(properties: Mapping[str, str], topic: str) -> None:
    """Check that a topic exists; an error later would be repeated for each table.

    Args:
        properties: of the client; at least `bootstrap.servers`.
        topic: its name.

    Raises:
        ClusterError: no broker answers in ten seconds.
        LagError: a property is unknown or invalid.
        OptionError: there is no such topic, or this user may not describe it.
    """
    servers = properties["bootstrap.servers"]
    try:
        known = admin(librdkafka_config(properties)).list_topics(timeout=_TIMEOUT_S).topics
    except KafkaException as error:
        raise ClusterError(f"{servers}: {error.args[0].str()}") from error
    if topic not in known:
        proposed = proposal(topic, sorted(known))
        raise OptionError(
            f"there is no topic {topic!r} on {servers}, or this user may not describe it: create it first"
            f"{f'; {proposed}' if proposed else ''}"
        )
