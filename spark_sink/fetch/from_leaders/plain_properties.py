"""Whether a task may read from the leaders itself: only with properties whose effect is the same there."""

import random
from collections.abc import Mapping, Sequence

Address = tuple[str, int]
_PORT = 9092  # librdkafka's default
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
_SIZES = ("fetch.max.bytes", "fetch.message.max.bytes", "max.partition.fetch.bytes")


def plain(properties: Mapping[str, object]) -> bool:
    """Return whether the properties ask for nothing that only librdkafka does.

    Args:
        properties: the user's, with librdkafka's names.
    """
    protocol = str(properties.get("security.protocol", "plaintext"))
    # librdkafka's numbers may be hexadecimal, and it ignores what follows one.
    decimal = all(str(properties.get(name, 0)).isdecimal() for name in _SIZES)
    return properties.keys() <= _KNOWN and protocol.lower() == "plaintext" and decimal


def read_committed(properties: Mapping[str, object]) -> bool:
    """Return whether records of open and aborted transactions are left out, unless the properties clearly want them."""
    return str(properties.get("isolation.level", "")).strip().lower() != "read_uncommitted"


def bootstrap_addresses(properties: Mapping[str, object]) -> list[Address]:
    """Return host and port of each of the bootstrap servers, without those that have no number as their port."""
    named = properties.get("bootstrap.servers") or properties.get("metadata.broker.list") or ""
    return [found for one in str(named).split(",") if (found := _address(one.strip())) is not None]


def bootstrap_order(addresses: Sequence[Address], failed: Mapping[Address, float]) -> list[Address]:
    """Return the servers at random, as librdkafka asks them, and last those that failed, the longest ago first.

    Each task waits for a silent server, so a server that did not answer must not be the first one again.
    """
    shuffled = random.sample(addresses, len(addresses))
    return sorted(shuffled, key=lambda one: failed.get(one, 0.0))


def _address(text: str) -> Address | None:
    server = text.rpartition("://")[2].partition("/")[0].strip()
    if server.endswith("]") or ":" not in server:
        server = f"{server}:{_PORT}"
    host, _, port = server.rpartition(":")
    return (host.strip("[]"), int(port)) if port.isdecimal() else None
