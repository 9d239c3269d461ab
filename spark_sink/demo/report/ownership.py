"""The owner of each partition over time, and a small number of rectangles to draw it."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from spark_sink.demo.report.run_record import Timeline


@dataclass(frozen=True, slots=True)
class Segment:
    """One agent owned one partition during [begin_s, end_s); `alive` is False if the agent was dead then."""

    begin_s: float
    end_s: float
    agent: str
    alive: bool = True


@dataclass(frozen=True, slots=True)
class Block:
    """Neighbouring rows [top, bottom) of the picture that share a segment."""

    top: int
    bottom: int
    segment: Segment


def segments(timeline: Timeline) -> list[list[Segment]]:
    """Turn changes of ownership into segments.

    Returns:
        For every partition, in the order of `timeline.partitions`, its segments in time order. They never overlap: the
        newest claim counts, and a release by a previous owner changes nothing.
    """
    found: list[list[Segment]] = [[] for _ in timeline.partitions]
    owner: list[str | None] = [None] * len(found)
    since = [0.0] * len(found)

    def hand_over(partition: int, t: float, agent: str | None) -> None:
        before = owner[partition]
        if before is not None and t > since[partition]:
            _append(found[partition], Segment(since[partition], t, before))
        owner[partition], since[partition] = agent, t

    for entry in sorted(timeline.ownership, key=lambda e: e.t):
        claimed = {p for p in entry.partitions if 0 <= p < len(found)}
        for partition, holder in enumerate(owner):
            if partition in claimed and holder != entry.agent:
                hand_over(partition, entry.t, entry.agent)
            elif partition not in claimed and holder == entry.agent:
                hand_over(partition, entry.t, None)
    for partition in range(len(found)):
        hand_over(partition, timeline.end_s, None)
    killed = [(event.agent, event.t) for event in timeline.events if event.kind == "kill"]
    return [[part for whole in row for part in _split_by_death(whole, killed)] for row in found]


def _append(row: list[Segment], new: Segment) -> None:
    """Add a segment, or lengthen the last one if the same agent continues."""
    if row and row[-1].agent == new.agent and row[-1].end_s == new.begin_s:
        new = Segment(row.pop().begin_s, new.end_s, new.agent)
    row.append(new)


def _split_by_death(whole: Segment, killed: Iterable[tuple[str, float]]) -> list[Segment]:
    # An agent that owns partitions after its death was restarted, so only segments that span the death are split.
    deaths = [t for agent, t in killed if agent == whole.agent and whole.begin_s <= t < whole.end_s]
    if not deaths:
        return [whole]
    death = min(deaths)
    dead = Segment(death, whole.end_s, whole.agent, alive=False)
    return [Segment(whole.begin_s, death, whole.agent), dead] if death > whole.begin_s else [dead]


def arrange(partitions: Sequence[tuple[str, int]], rows: Sequence[Sequence[Segment]]) -> list[int]:
    """Order the rows of the picture by owners, then by topic.

    Returns:
        Indexes into `partitions`, top row first. Ordering only by topic would draw shared topics as fine stripes.
    """
    return sorted(
        range(len(partitions)), key=lambda place: (tuple(segment.agent for segment in rows[place]), partitions[place])
    )


def blocks(rows: Sequence[Sequence[Segment]], order: Sequence[int]) -> list[Block]:
    """Merge equal segments of neighbouring rows; the blocks cover exactly the area of the segments."""
    found: list[Block] = []
    open_since: dict[Segment, int] = {}
    for place in range(len(order) + 1):
        present = set(rows[order[place]]) if place < len(order) else set()
        ended = [segment for segment in open_since if segment not in present]
        found += [Block(open_since.pop(segment), place, segment) for segment in ended]
        for segment in present:
            open_since.setdefault(segment, place)
    return sorted(found, key=lambda b: (b.segment.begin_s, b.top, b.segment.agent))


def owned_at(rows: Sequence[Sequence[Segment]], t: float) -> dict[str, int]:
    """Count the partitions of each live agent at a time."""
    counts: dict[str, int] = {}
    for row in rows:
        for segment in row:
            if segment.alive and segment.begin_s <= t < segment.end_s:
                counts[segment.agent] = counts.get(segment.agent, 0) + 1
    return counts
