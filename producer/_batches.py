"""Many records in one call: which message goes to which partition.

confluent-kafka's `produce_batch` ignores the partition of a message (2.16.1) and takes one for the whole call: messages
are grouped by partition first, and keep their order within one.
"""

from collections.abc import Callable, Sequence
from typing import Any

from producer._route import RECORD, Route, Tally

Messages = list[dict[str, Any]]
Switch = Callable[[Route, Tally], None]


def are_valid(messages: object) -> bool:
    """Tell whether confluent-kafka accepts every message; if not, it says what is wrong before any is sent."""
    return isinstance(messages, list) and all(
        isinstance(message, dict)
        and isinstance(message.get("value"), str | bytes | None)
        and isinstance(message.get("key"), str | bytes | None)
        for message in messages
    )


def group(route: Route, messages: Sequence[dict[str, Any]], switch: Switch) -> dict[int, Messages]:
    """Choose a partition for each message and count it.

    Args:
        route: of the topic.
        messages: as `produce_batch` takes them; a message's own `partition` is kept.
        switch: called when a sticky run is full.

    Returns:
        Messages by partition, in their order.
    """
    groups: dict[int, Messages] = {}
    for message in messages:
        partition = choose(route, message)
        count(route, message, partition)
        tally = route.sticky
        if tally.bytes >= tally.switch_at:
            switch(route, tally)
        groups.setdefault(partition, []).append(message)
    return groups


def choose(route: Route, message: dict[str, Any]) -> int:
    """Find where a message goes: its own partition, else as its key says."""
    own, key = message.get("partition"), message.get("key")
    if own is not None and own >= 0:
        return int(own)
    if key is None:
        return route.sticky.partition
    return route.place(key.encode() if isinstance(key, str) else key)


def count(route: Route, message: dict[str, Any], partition: int, sign: int = 1) -> None:
    """Count a message that goes to a partition, or with a sign of -1 take that back."""
    size = size_of(message)
    own = message.get("partition")
    if message.get("key") is not None and (own is None or own < 0):
        route.lane.sent[partition] += sign * (RECORD + size)
        return
    tally = route.tallies[partition] if own is None or own < 0 else route.explicit_tally(partition)
    tally.records += sign
    tally.bytes += sign * size


def size_of(message: dict[str, Any]) -> int:
    """Measure key and value in bytes."""
    return byte_length(message.get("value")) + byte_length(message.get("key"))


def byte_length(data: str | bytes | None) -> int:
    """Measure what will be on the wire for a key or a value, in bytes; None has none."""
    return 0 if data is None else len(data.encode() if isinstance(data, str) else data)
