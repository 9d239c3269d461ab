"""Whether brokers answer, checked before a command begins: its own requests would wait longer and explain less."""

from collections.abc import Mapping

from spark_sink.errors import ClusterError
from spark_sink.kafka.client_properties import librdkafka_config, why_unreachable
from spark_sink.kafka.group_lag import admin


def reach(properties: Mapping[str, str]) -> None:
    """Ask the brokers once.

    Args:
        properties: of the client; `bootstrap.servers` at least.

    Raises:
        ClusterError: none answers, or they refuse the client; the message says which.
        LagError: a property is unknown or has no meaning.
    """
    # kafka-python ignores a misspelled security.protocol and connects in plain text.
    admin(librdkafka_config(properties))
    why = why_unreachable(properties)
    if why:
        servers = properties["bootstrap.servers"]
        raise ClusterError(f"{servers}: {why}; check --bootstrap-servers and --kafka")
