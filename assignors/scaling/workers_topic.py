"""The workers topic: how many workers each topic has now, as compacted records that agents follow.

One record a scaled topic. Its key says whose number it is, so compaction keeps the last one; a record without a value
takes the number back, and a follower uses its own configuration.

    key    <cluster id>/<consumer group>/<topic>            UTF-8; cluster ids and topic names have no slash
    value  {"v": 1, "workers": 3, "at_ms": 1767225600000, "reason": "...", "policy": "capacity",
            "max_poll_records": 500, "poll_timeout_ms": 1000}        the last two are optional
"""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple, TypeGuard

DEFAULT_TOPIC = "azimuth.workers"
VERSION = 1
MOST = (1 << 31) - 1
"""Workers, records or milliseconds: no reader counts further."""


class ScaledTopic(NamedTuple):
    """Whose number of workers it is."""

    cluster: str
    group: str
    topic: str


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkersRecord:
    """The number of workers that a topic has from now on.

    Attributes:
        workers: agents that may join the topic's group, 1 or more.
        at_ms: when it was decided, milliseconds since 1970.
        reason: the sentence of the policy.
        policy: its name.
        max_poll_records: what a worker asks for at once; None leaves its own setting.
        poll_timeout_ms: how long a worker waits for that; None leaves its own setting.
    """

    workers: int
    at_ms: int
    reason: str = ""
    policy: str = ""
    max_poll_records: int | None = None
    poll_timeout_ms: int | None = None


def encode_key(name: ScaledTopic) -> bytes:
    """Write the key of a record."""
    return "/".join(name).encode()


def decode_key(key: bytes | None) -> ScaledTopic | None:
    """Read a key; None for one that is not ours, which a reader passes over."""
    try:
        cluster, rest = (key or b"").decode().split("/", 1)
        group, topic = rest.rsplit("/", 1)
    except ValueError:  # also a UnicodeDecodeError
        return None
    return ScaledTopic(cluster, group, topic) if cluster and topic else None


def encode(record: WorkersRecord) -> bytes:
    """Write the value of a record."""
    value: dict[str, Any] = {
        "v": VERSION,
        "workers": record.workers,
        "at_ms": record.at_ms,
        "reason": record.reason,
        "policy": record.policy,
    }
    for name in ("max_poll_records", "poll_timeout_ms"):
        if (given := getattr(record, name)) is not None:
            value[name] = given
    return json.dumps(value, separators=(",", ":")).encode()


def decode(value: bytes | None) -> WorkersRecord | None:
    """Read a value; None for a tombstone, a later version, or anything that is not ours.

    Fields that are not known are passed over, so that a later writer may add some within the version.
    """
    try:
        read = json.loads(value or b"null")
    except (ValueError, RecursionError):  # anybody may write to a topic
        return None
    if not isinstance(read, Mapping) or read.get("v") != VERSION:
        return None
    workers, at_ms = read.get("workers"), read.get("at_ms")
    if not _whole(workers, 1, MOST) or not _whole(at_ms, 0, MOST**2):
        return None
    return WorkersRecord(
        workers=workers,
        at_ms=at_ms,
        reason=str(read.get("reason", "")),
        policy=str(read.get("policy", "")),
        max_poll_records=_optional(read.get("max_poll_records")),
        poll_timeout_ms=_optional(read.get("poll_timeout_ms")),
    )


def _whole(value: object, least: int, most: int) -> TypeGuard[int]:
    return isinstance(value, int) and not isinstance(value, bool) and least <= value <= most


def _optional(value: Any) -> int | None:  # noqa: ANN401 -- what JSON holds
    return value if _whole(value, 1, MOST) else None
