"""Many records in one call: which message goes to which partition.

confluent-kafka's `produce_batch` ignores the partition of a message (2.16.1) and takes one for the whole call: messages
are grouped by partition first, and keep their order within one.
"""

from collections.abc import Callable, Sequence
from typing import Any

from producer._route import Route, Tally

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


def group(route: Route, messages: Sequence[dict[str, Any]], switch: Switch) -> dict[Tally, Messages]:
    """Choose a partition for each message and count it.

    Args:
        route: of the topic.
        messages: as `produce_batch` takes them; a message's own `partition` is kept.
        switch: called when a sticky run is full.

    Returns:
        Messages by the tally of their partition, in their order.
    """
    groups: dict[Tally, Messages] = {}
    for message in messages:
        size, key = size_of(message), message.get("key")
        own = message.get("partition", -1)
        if own is not None and own >= 0:
            tally = route.explicit_tally(own)
        elif key is None:
            tally = route.sticky
        else:
            tally = route.place(key.encode() if isinstance(key, str) else key)
        tally.records += 1
        tally.bytes += size
        if tally is route.sticky and tally.bytes >= tally.switch_at:
            switch(route, tally)
        groups.setdefault(tally, []).append(message)
    return groups


def uncount(tally: Tally, messages: Sequence[dict[str, Any]]) -> None:
    """Take back the count of messages that were not sent."""
    for message in messages:
        tally.records -= 1
        tally.bytes -= size_of(message)


def size_of(message: dict[str, Any]) -> int:
    """Measure key and value in bytes."""
    return byte_length(message.get("value")) + byte_length(message.get("key"))


def byte_length(data: str | bytes | None) -> int:
    """Measure what will be on the wire for a key or a value, in bytes; None has none."""
    return 0 if data is None else len(data.encode() if isinstance(data, str) else data)
