"""Checks that brokers answer before a command starts: its own requests would wait longer and explain less."""

from collections.abc import Mapping

from spark_sink.errors import ClusterError
from spark_sink.kafka.client_properties import librdkafka_config, why_unreachable
from spark_sink.kafka.group_lag import admin


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
