"""The topic of pauses: the topics that readers of a group do not read for now, as compacted records.

There is one record for each paused topic. A record without a value resumes the topic.

    key    <consumer group>/<topic>              UTF-8; names of topics have no slash
    value  {"v": 1, "paused": true, "at_ms": 1767225600000, "by": "ops@host", "reason": "..."}

The name of the topic begins with two underscores, so that no fleet that reads every topic by a pattern reads it.
"""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final, NamedTuple

TOPIC: Final = "__azimuth_paused"
_VERSION: Final = 1
_LATEST_MS: Final = 1 << 53


class PausedTopic(NamedTuple):
    """The group and the topic of a pause, on the cluster that has both."""

    group: str
    topic: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Pause:
    """A pause.

    Attributes:
        at_ms: its beginning, milliseconds since 1970.
        by: the person or host that paused the topic.
        reason: why, in the words of that person.
    """

    at_ms: int
    by: str = ""
    reason: str = ""


def encode_key(name: PausedTopic) -> bytes:
    """Write the key of a record."""
    return "/".join(name).encode()


def decode_key(key: bytes | None) -> PausedTopic | None:
    """Read a key; None for a foreign key, which readers ignore."""
    try:
        group, topic = (key or b"").decode().rsplit("/", 1)
    except ValueError:  # also a UnicodeDecodeError
        return None
    return PausedTopic(group, topic) if group and topic else None


def encode(pause: Pause) -> bytes:
    """Write the value of a record."""
    value = {"v": _VERSION, "paused": True, "at_ms": pause.at_ms, "by": pause.by, "reason": pause.reason}
    return json.dumps(value, separators=(",", ":")).encode()


def decode(value: bytes | None) -> Pause | None:
    """Read a value; None for a tombstone, a later version, or a foreign value. Unknown fields are ignored."""
    try:
        read = json.loads(value or b"null")
    except (ValueError, RecursionError):  # other programs may write to the topic
        return None
    if not isinstance(read, Mapping) or read.get("v") != _VERSION or read.get("paused") is not True:
        return None
    at_ms = read.get("at_ms")
    if not isinstance(at_ms, int) or isinstance(at_ms, bool) or not 0 <= at_ms <= _LATEST_MS:
        return None
    return Pause(at_ms=at_ms, by=str(read.get("by", "")), reason=str(read.get("reason", "")))
