"""Translates Kafka properties, given as `kafka.` options, into the names of each client library; some defaults."""

from collections.abc import Mapping
from typing import Any, Final

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
_SILENT_MS: Final = 10_000
_FETCH_BYTES: Final = 8 << 20
_QUEUE_KB, _MESSAGE_BYTES = 65_536, 1_000_000  # librdkafka's defaults
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


def leaving_silent_leaders(kafka: Mapping[str, Any]) -> dict[str, str]:
    """Return the defaults of a client that reads and leaves a silent broker after 10 s; the user's own override them.

    Another broker is asked for the current leaders only after that time. With librdkafka's default of a minute the
    broker's partitions are not read for that long, although other brokers lead them after nine seconds. A response has
    to arrive within that time, even over a slow line: 8 MiB, instead of 50 MiB within a minute.
    """
    # As librdkafka limits its own default: no more than the queue takes, and no less than a message, which it refuses.
    queue_kb = _number(kafka.get("queued.max.messages.kbytes"), _QUEUE_KB)
    most = max(min(_FETCH_BYTES, queue_kb << 10), _number(kafka.get("message.max.bytes"), _MESSAGE_BYTES))
    return {"socket.timeout.ms": str(_SILENT_MS), "fetch.max.bytes": str(most)}


def _number(given: Any, default: int) -> int:  # noqa: ANN401 -- of a user's property, which librdkafka checks
    try:
        return int(given)
    except (TypeError, ValueError):
        return default


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
    """Explain why librdkafka cannot reach the brokers; it shows a refused password, which kafka-python does not.

    Returns:
        One clause, empty if the brokers answer.
    """
    return assignors_why(librdkafka_config(kafka))
