"""Kafka's properties, as given with `kafka.` in front, in the names that each client library has for them."""

from collections.abc import Mapping
from typing import Any

# Java's names where librdkafka has another one.
_RENAMED = {
    "fetch.max.wait.ms": "fetch.wait.max.ms",
    "max.partition.fetch.bytes": "fetch.message.max.bytes",
    "receive.buffer.bytes": "socket.receive.buffer.bytes",
    "request.timeout.ms": "socket.timeout.ms",
    "send.buffer.bytes": "socket.send.buffer.bytes",
}
# Properties of membership, which is the reader's matter and not the tasks'.
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


# Java's names where kafka-python has another one than the same with underscores, or none.
_PYTHON_RENAMED = {"sasl.username": "sasl_plain_username", "sasl.password": "sasl_plain_password"}
_PYTHON_NUMBERS = (".ms", ".bytes", ".records", ".connection")


def kafka_python_config(kafka: Mapping[str, str]) -> dict[str, Any]:
    """The properties for a consumer of kafka-python; what it does not know (the tasks' matters) is left out."""
    from kafka import KafkaConsumer  # noqa: PLC0415 -- no task needs it

    config: dict[str, Any] = {}
    for name, value in kafka.items():
        known = _PYTHON_RENAMED.get(name, name.replace(".", "_"))
        if known in KafkaConsumer.DEFAULT_CONFIG:
            config[known] = int(value) if name.endswith(_PYTHON_NUMBERS) else value
    config["bootstrap_servers"] = kafka["bootstrap.servers"].split(",")
    config["enable_auto_commit"] = False
    return config
