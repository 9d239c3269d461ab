"""Kafka's properties, as given with `kafka.` in front, in the names that each client library has for them."""

from collections.abc import Mapping
from typing import Any

from assignors.clients import kafka_python_settings
from assignors.clients import why_unreachable as assignors_why

# Java's names where librdkafka has another one.
_RENAMED = {
    "fetch.max.wait.ms": "fetch.wait.max.ms",
    "max.partition.fetch.bytes": "fetch.message.max.bytes",
    "receive.buffer.bytes": "socket.receive.buffer.bytes",
    "request.timeout.ms": "socket.timeout.ms",
    "send.buffer.bytes": "socket.send.buffer.bytes",
}
# Properties of membership: the reader needs them, and tasks do not.
_MEMBERSHIP = frozenset(
    {
        "group.instance.id",
        "group.protocol",
        "heartbeat.interval.ms",
        "max.poll.interval.ms",
        "max.poll.records",
        "partition.assignment.strategy",
        "session.timeout.ms",
    }
)


def librdkafka_config(kafka: Mapping[str, str]) -> dict[str, Any]:
    """The properties for a client of librdkafka that is no member of a group."""
    return {_RENAMED.get(name, name): value for name, value in kafka.items() if name not in _MEMBERSHIP}


def kafka_python_config(kafka: Mapping[str, str]) -> dict[str, Any]:
    """The properties for a consumer of kafka-python; what it does not know (the tasks' matters) is left out."""
    return {**kafka_python_settings(kafka), "enable_auto_commit": False}


def why_unreachable(kafka: Mapping[str, str]) -> str:
    """Why librdkafka cannot reach the brokers: unlike kafka-python it distinguishes a refused password from silence.

    Returns:
        One clause, empty where the brokers answer.
    """
    return assignors_why(librdkafka_config(kafka))
