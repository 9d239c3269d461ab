"""Whether a task may read from the leaders itself: only with properties whose effect is the same there."""

from collections.abc import Mapping

# With TLS or SASL, and with any property that is not known here, librdkafka reads.
_KNOWN = frozenset(
    {
        "bootstrap.servers",
        "client.id",
        "client.rack",
        "fetch.max.bytes",
        "fetch.message.max.bytes",
        "fetch.min.bytes",
        "fetch.queue.backoff.ms",
        "fetch.wait.max.ms",
        "group.id",
        "group.instance.id",
        "heartbeat.interval.ms",
        "isolation.level",
        "max.partition.fetch.bytes",
        "max.poll.interval.ms",
        "metadata.broker.list",
        "queued.max.messages.kbytes",
        "queued.min.messages",
        "security.protocol",
        "session.timeout.ms",
    }
)


def plain(properties: Mapping[str, object]) -> bool:
    """Return whether the properties ask for nothing that only librdkafka does.

    Args:
        properties: the user's, with librdkafka's names.
    """
    protocol = str(properties.get("security.protocol", "plaintext"))
    return properties.keys() <= _KNOWN and protocol.lower() == "plaintext"


def bootstrap_addresses(properties: Mapping[str, object]) -> list[tuple[str, int]]:
    """Return host and port of each of the bootstrap servers; 9092 where none is given, as in librdkafka."""
    named = properties.get("bootstrap.servers") or properties.get("metadata.broker.list") or ""
    found = []
    for one in str(named).split(","):
        host, colon, port = one.strip().rpartition("://")[2].rpartition(":")
        found.append((host.strip("[]"), int(port)) if colon else (port.strip("[]"), 9092))
    return found
