"""The workers topic: the current number of workers of each topic, as compacted records that agents follow.

There is one record per scaled topic. Its key identifies the topic, so compaction keeps the last number. A record
without a value withdraws the number, and followers use their own configuration.

    key    <cluster id>/<consumer group>/<topic>            UTF-8; cluster ids and topic names have no slash
    value  {"v": 1, "workers": 3, "at_ms": 1767225600000, "reason": "...", "policy": "capacity",
            "max_poll_records": 500, "poll_timeout_ms": 1000, "records_per_s": 40.5}    the last three are optional
"""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple, TypeGuard

DEFAULT_TOPIC = "azimuth.workers"
VERSION = 1
MOST = (1 << 31) - 1
"""Largest number of workers, records or milliseconds that readers accept."""


class ScaledTopic(NamedTuple):
    """The topic, group and cluster of a number of workers."""

    cluster: str
    group: str
    topic: str


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkersRecord:
    """The number of workers of a topic from now on.

    Attributes:
        workers: agents that may join the topic's group, 1 or more.
        at_ms: time of the decision, milliseconds since 1970.
        reason: the sentence of the policy.
        policy: name of the policy.
        max_poll_records: maximum number of records of a worker's poll; None for its own setting.
        poll_timeout_ms: longest time of a worker's poll; None for its own setting.
        records_per_s: rate of arrivals relative to the other topics of the group (`topic_rates`); None if it is not
            published.
    """

    workers: int
    at_ms: int
    reason: str = ""
    policy: str = ""
    max_poll_records: int | None = None
    poll_timeout_ms: int | None = None
    records_per_s: float | None = None


def encode_key(name: ScaledTopic) -> bytes:
    """Write the key of a record."""
    return "/".join(name).encode()


def decode_key(key: bytes | None) -> ScaledTopic | None:
    """Read a key; None for a foreign key, which readers ignore."""
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
    for name in ("max_poll_records", "poll_timeout_ms", "records_per_s"):
        if (given := getattr(record, name)) is not None:
            value[name] = given
    return json.dumps(value, separators=(",", ":")).encode()


def decode(value: bytes | None) -> WorkersRecord | None:
    """Read a value; None for a tombstone, a later version, or a foreign value.

    Unknown fields are ignored, so that a later writer may add fields within the version.
    """
    try:
        read = json.loads(value or b"null")
    except (ValueError, RecursionError):  # other programs may write to the topic
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
        records_per_s=_rate(read.get("records_per_s")),
    )


def _whole(value: object, least: int, most: int) -> TypeGuard[int]:
    return isinstance(value, int) and not isinstance(value, bool) and least <= value <= most


def _rate(value: Any) -> float | None:  # noqa: ANN401 -- what JSON holds
    if not isinstance(value, int | float) or isinstance(value, bool):
        return None
    # Also refuses nan and infinity, which Python's JSON accepts.
    return (
        float(value) if isinstance(value, int | float) and not isinstance(value, bool) and 0 <= value <= MOST else None
    )


def _optional(value: Any) -> int | None:  # noqa: ANN401 -- what JSON holds
    return value if _whole(value, 1, MOST) else None
