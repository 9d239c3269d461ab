"""The next offsets to publish as dead letters, in a compacted topic."""

import json
from collections.abc import Iterable, Mapping
from typing import Any, Final, NamedTuple

from assignors.clients import TableTopic
from assignors.errors import AssignorError
from spark_sink.ranges.batch_offset import TopicPartition

PROGRESS: Final = "__azimuth_dead_letters"
"""The compacted topic, on the cluster of the dead letters."""


class Published(NamedTuple):
    """What a next offset belongs to."""

    topic: str
    """The topic of the dead letters."""
    table: str
    """Id of the quarantine, which stays when the table moves."""
    key: TopicPartition
    """The source."""


def encode_key(name: Published) -> bytes:
    """Write the key of a next offset; no part has a slash."""
    return "/".join((name.topic, name.table, name.key.topic, str(name.key.partition))).encode()


def decode_key(key: bytes | None) -> Published | None:
    """Read a key; None for a foreign one."""
    try:
        topic, table, source, partition = (key or b"").decode().split("/")
        return Published(topic, table, TopicPartition(source, int(partition)))
    except ValueError:  # also a UnicodeDecodeError
        return None


def decode(value: bytes | None) -> int | None:
    """Read a next offset; None for a foreign value."""
    try:
        found = json.loads(value or b"null")
    except (ValueError, RecursionError):
        return None
    at = found.get("next") if isinstance(found, Mapping) and found.get("v") == 1 else None
    return at if isinstance(at, int) and not isinstance(at, bool) and at >= 0 else None


HELD: Final = TableTopic(
    noun="dead-letters topic",
    client="quarantine",
    key=decode_key,
    record=decode,
    failure=AssignorError,
    refusal=AssignorError,
    transactions=True,
)


def next_offsets(rows: Iterable[Mapping[str, Any]]) -> dict[TopicPartition, int]:
    """Return the next offset of each partition after these rows."""
    found: dict[TopicPartition, int] = {}
    for row in rows:
        key = TopicPartition(row["topic"], row["partition"])
        found[key] = max(found.get(key, 0), row["offset"] + 1)
    return found
