"""Translates Kafka properties, given as `kafka.` options, into the names of each client library."""

from collections.abc import Mapping
from typing import Any

from assignors.clients import kafka_python_settings
from assignors.clients import why_unreachable as assignors_why

# Java's names that differ from librdkafka's.
_RENAMED = {
    "fetch.max.wait.ms": "fetch.wait.max.ms",
    "max.partition.fetch.bytes": "fetch.message.max.bytes",
    "receive.buffer.bytes": "socket.receive.buffer.bytes",
    "request.timeout.ms": "socket.timeout.ms",
    "send.buffer.bytes": "socket.send.buffer.bytes",
}
# Properties of membership, which the reader needs and tasks do not.
_MEMBERSHIP = frozenset(
    {
        "group.instance.id",
        "group.protocol",
        "group.remote.assignor",
        "heartbeat.interval.ms",
        "max.poll.interval.ms",
        "max.poll.records",
        "partition.assignment.strategy",
        "session.timeout.ms",
    }
)


def librdkafka_config(kafka: Mapping[str, str]) -> dict[str, Any]:
    """Return the properties for a librdkafka client that is not a group member."""
    return {_RENAMED.get(name, name): value for name, value in kafka.items() if name not in _MEMBERSHIP}


def broker_assigned_config(kafka: Mapping[str, str]) -> dict[str, Any] | None:
    """Return librdkafka's properties of a member of a KIP-848 group; None in the classic protocol."""
    if kafka.get("group.protocol", "classic").lower() != "consumer":
        return None
    kept = ("group.instance.id", "group.protocol", "group.remote.assignor", "max.poll.interval.ms")
    return librdkafka_config(kafka) | {name: kafka[name] for name in kept if name in kafka}


def kafka_python_config(kafka: Mapping[str, str]) -> dict[str, Any]:
    """Return the properties for a kafka-python consumer, without those it does not know (only tasks need them)."""
    return {**kafka_python_settings(kafka), "enable_auto_commit": False}


def why_unreachable(kafka: Mapping[str, str]) -> str:
    """Explain why librdkafka cannot reach the brokers; unlike kafka-python it tells a refused password from silence.

    Returns:
        One clause, empty if the brokers answer.
    """
    return assignors_why(librdkafka_config(kafka))
