"""The rate at which agents land records while they have a backlog, without the time in which they wait or start."""

from collections.abc import Iterable, Sequence
from typing import NamedTuple

from spark_sink.demo.timeline import Commit, Ownership


class BusyRate(NamedTuple):
    """The rate of the busy seconds.

    Attributes:
        busy_s: seconds in which at least one agent landed more records than arrived.
        records: landed by the commits of these seconds.
        start_s: from the start of the agents to the first commit.
    """

    busy_s: float
    records: int
    start_s: float


def busy_rate(
    commits: Sequence[Commit], ownership: Iterable[Ownership], *, began: float, arriving: float
) -> BusyRate | None:
    """Find the busy seconds of a run; None if no agent was busy.

    A batch lasts from its agent's previous commit, or from the time at which the agent owned its first partition.

    Args:
        commits: of all agents, by time.
        ownership: of all agents.
        began: start of the agents, unix seconds.
        arriving: records that arrive a second while the agents work.
    """
    since: dict[str, float] = {}
    for one in sorted(ownership, key=lambda one: one.time):
        if one.partitions:
            since.setdefault(one.agent, one.time)
    spans, records = [], 0
    for commit in commits:
        begin = min(since.get(commit.agent, commit.time), commit.time)
        if commit.rows > arriving * (commit.time - begin):
            spans.append((begin, commit.time))
            records += commit.rows
        since[commit.agent] = commit.time
    busy_s = _covered(spans)
    return BusyRate(busy_s, records, commits[0].time - began) if busy_s else None


def _covered(spans: Iterable[tuple[float, float]]) -> float:
    """Return the length of the union of time spans."""
    total, reached = 0.0, float("-inf")
    for begin, end in sorted(spans):
        total += max(0.0, end - max(begin, reached))
        reached = max(reached, end)
    return total
