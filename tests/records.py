"""Helpers to read records from a `GroupConsumer`."""

import time

from confluent_kafka import Message

from assignors import GroupConsumer


def read(one: GroupConsumer, count: int, timeout_s: float = 30.0) -> list[Message]:
    """Read this number of records."""
    found: list[Message] = []
    until = time.monotonic() + timeout_s
    while len(found) < count:
        assert time.monotonic() < until, f"{len(found)} of {count} records"
        found += one.consume(count - len(found), 0.2)
    assert not [m.error() for m in found if m.error() is not None]
    return found


def offsets(messages: list[Message]) -> dict[int, list[int]]:
    """Return the offsets of each partition in the order of delivery."""
    found: dict[int, list[int]] = {}
    for one in messages:
        found.setdefault(one.partition() or 0, []).append(one.offset() or 0)
    return found
