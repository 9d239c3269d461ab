"""The published settings of a worker's polls, and what follows for a reader of several topics. Pure."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from assignors.scaling.workers_records import ScaledTopic, WorkersRecord


@dataclass(frozen=True, slots=True, kw_only=True)
class PollSettings:
    """How a topic is polled.

    Attributes:
        records: maximum number of records of a poll; None for the reader's own setting.
        timeout_s: longest time of a poll, seconds; None for the reader's own setting.
    """

    records: int | None = None
    timeout_s: float | None = None


def published_polls(records: Mapping[ScaledTopic, WorkersRecord], cluster: str, group: str) -> dict[str, PollSettings]:
    """Return the published settings of a group's topics on a cluster; topics without any are left out."""
    return {
        name.topic: PollSettings(
            records=one.max_poll_records,
            timeout_s=None if one.poll_timeout_ms is None else one.poll_timeout_ms / 1000,
        )
        for name, one in records.items()
        if (name.cluster, name.group) == (cluster, group)
        and (one.max_poll_records is not None or one.poll_timeout_ms is not None)
    }


def narrowest(polls: Iterable[PollSettings], records: int, timeout_s: float, most_s: float) -> tuple[int, float]:
    """Return how a reader polls several topics at once: with the smallest of their settings.

    Args:
        polls: published settings of its topics.
        records: maximum number of records of a poll without a published number.
        timeout_s: time of a poll without a published time, seconds.
        most_s: longest poll that the reader tolerates, seconds.
    """
    given = list(polls)
    counts = [one.records for one in given if one.records is not None]
    times = [one.timeout_s for one in given if one.timeout_s is not None]
    return min(counts, default=records), min([*times, most_s]) if times else timeout_s
