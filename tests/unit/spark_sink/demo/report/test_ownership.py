"""Segments and blocks represent exactly the changes of ownership."""

from collections.abc import Sequence
from itertools import pairwise
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from spark_sink.demo.report.ownership import Segment, arrange, blocks, owned_at, segments
from spark_sink.demo.report.run_record import Event, Ownership, Run, Timeline

PARTITIONS = [(f"topic-{i // 2}", i % 2) for i in range(8)]
AGENTS = ("a", "b", "c")
changes = st.lists(
    st.tuples(st.sampled_from(AGENTS), st.sets(st.integers(0, len(PARTITIONS) - 1))), min_size=1, max_size=8
)


def timeline(found: Sequence[tuple[str, set[int]]], *events: Event) -> Timeline:
    """One change a second."""
    ownership = [Ownership(t=t, agent=agent, partitions=sorted(owned)) for t, (agent, owned) in enumerate(found)]
    return Timeline(partitions=PARTITIONS, ownership=ownership, events=[Event(t=len(found), kind="done"), *events])


def owner_of(row: Sequence[Segment], t: float) -> str | None:
    """Return the owner in a row."""
    found = [segment.agent for segment in row if segment.begin_s <= t < segment.end_s]
    assert len(found) <= 1
    return found[0] if found else None


@given(changes)
def test_the_newest_claim_counts(found: list[tuple[str, set[int]]]) -> None:
    """The oracle replays the changes one after the other and looks at each half second."""
    rows = segments(timeline(found))
    owner: dict[int, str] = {}
    for t, (agent, owned) in enumerate(found):
        owner = {p: holder for p, holder in owner.items() if holder != agent} | dict.fromkeys(owned, agent)
        assert [owner_of(row, t + 0.5) for row in rows] == [owner.get(p) for p in range(len(PARTITIONS))]


@given(changes)
def test_blocks_cover_what_the_segments_cover(found: list[tuple[str, set[int]]]) -> None:
    """Merging rows for the picture neither loses nor adds a second of ownership."""
    rows = segments(timeline(found))
    order = arrange(PARTITIONS, rows)
    drawn = sorted(
        (place, block.segment.begin_s, block.segment.agent)
        for block in blocks(rows, order)
        for place in range(block.top, block.bottom)
    )
    told = sorted((i, s.begin_s, s.agent) for i, place in enumerate(order) for s in rows[place])
    assert drawn == told


@given(changes)
def test_rows_with_the_same_owners_stand_together(found: list[tuple[str, set[int]]]) -> None:
    """The picture has every row once, and no more blocks than there are histories."""
    rows = segments(timeline(found))
    order = arrange(PARTITIONS, rows)
    assert sorted(order) == list(range(len(PARTITIONS)))
    histories = [tuple(segment.agent for segment in rows[place]) for place in order]
    assert sum(a != b for a, b in pairwise(histories)) == len(set(histories)) - 1
    for history in set(histories):
        same = [PARTITIONS[place] for place, of_row in zip(order, histories, strict=True) if of_row == history]
        assert same == sorted(same)


def test_ownership_after_a_kill_is_that_of_a_dead_agent() -> None:
    """The group learns of a death late; until then the picture must not show a healthy owner."""
    rows = segments(timeline([("a", {0}), ("b", {1}), ("b", {1}), ("b", {0, 1})], Event(t=1.5, kind="kill", agent="a")))
    assert rows[0] == [Segment(0, 1.5, "a"), Segment(1.5, 3, "a", alive=False), Segment(3, 4, "b")]
    assert owned_at(rows, 2) == {"b": 1}


def test_an_agent_started_again_is_alive() -> None:
    """A kill affects only the segments that span it."""
    rows = segments(timeline([("a", {0}), ("a", set()), ("a", {0})], Event(t=0.5, kind="kill", agent="a")))
    assert rows[0][-1] == Segment(2, 3, "a")


def test_a_real_run_needs_few_blocks(report: dict[str, Any]) -> None:
    """The page stays small because rows are ordered by owner before they are merged."""
    run = Run.parse(report).timeline
    rows = segments(run)
    assert len(rows) == 672
    assert len(blocks(rows, arrange(run.partitions, rows))) < 200


def test_a_place_that_no_partition_has_is_ignored() -> None:
    """A report cut short must still give a page."""
    assert segments(timeline([("a", {0, 7})]).model_copy(update={"partitions": PARTITIONS[:2]}))[1] == []
