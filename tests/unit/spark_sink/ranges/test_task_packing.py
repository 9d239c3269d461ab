"""Ranges become tasks: nothing lost, nothing twice, no task much longer than its share."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from spark_sink.errors import OptionError
from spark_sink.ranges.batch_offset import Range
from spark_sink.ranges.task_packing import Packing, pack

RANGES = st.dictionaries(
    st.tuples(st.sampled_from("abcdef"), st.integers(0, 9)),
    st.tuples(st.integers(0, 10**9), st.one_of(st.integers(0, 50), st.integers(0, 10_000))),
).map(lambda d: [Range(t, p, begin, begin + length, 7) for (t, p), (begin, length) in d.items()])
PACKINGS = st.builds(
    Packing,
    tasks=st.integers(1, 40),
    min_tasks=st.integers(1, 40),
    min_records=st.integers(1, 5_000),
    min_piece=st.integers(1, 2_000),
)


def joined(tasks: list[list[Range]]) -> list[Range]:
    """Glue pieces that follow each other back together."""
    found: list[Range] = []
    for one in (piece for task in tasks for piece in task):
        if found and found[-1].key == one.key and found[-1].end == one.begin:
            found[-1] = found[-1]._replace(end=one.end)
        else:
            found.append(one)
    return found


@given(RANGES, PACKINGS)
def test_every_offset_is_in_exactly_one_task(ranges: list[Range], packing: Packing) -> None:
    """The pieces, glued together, are the ranges that are not empty, generation included."""
    tasks = pack(ranges, packing)
    assert joined(tasks) == sorted(one for one in ranges if one.records)
    assert all(task for task in tasks)
    assert all(piece.records for task in tasks for piece in task)


@given(RANGES, PACKINGS)
def test_no_task_is_much_longer_than_its_share(ranges: list[Range], packing: Packing) -> None:
    """The bound of the wrap-around rule, and the two pieces at its ends that were too short to cut."""
    total = sum(one.records for one in ranges)
    bins = packing.bins(total)
    tasks = pack(ranges, packing)
    assert len(tasks) <= bins
    shortest = min(packing.min_piece, max(1, total // (2 * bins)))
    for task in tasks:
        assert sum(piece.records for piece in task) <= -(-total // bins) + 2 * shortest


@given(RANGES, PACKINGS, st.randoms(use_true_random=False))
def test_the_order_of_ranges_means_nothing(ranges: list[Range], packing: Packing, random: object) -> None:
    """A replayed batch gets the same tasks."""
    before = pack(ranges, packing)
    random.shuffle(ranges)  # type: ignore[attr-defined]  # hypothesis hands in a random.Random
    assert pack(ranges, packing) == before


def test_a_handful_of_records_is_one_task_and_many_small_ranges_are_one_a_core() -> None:
    """300 partitions of ten records are 3,000 records, not 300 tasks; one large partition is cut instead."""
    small = [Range(f"t{n}", 0, 0, 10) for n in range(300)]
    assert len(pack(small, Packing(tasks=2))) == 1
    assert len(pack([Range("t", 0, 0, 1_000_000)], Packing(tasks=2))) == 2
    assert [len(task) for task in pack(small, Packing(tasks=2, min_records=100, min_piece=5))] == [150, 150]


def test_min_partitions_is_kept_where_there_are_records() -> None:
    """`minPartitions` asks for tasks whatever they cost, but a task without a record is never made."""
    tasks = pack([Range("t", 0, 0, 1_000)], Packing(tasks=2, min_tasks=10))
    assert [sum(piece.records for piece in task) for task in tasks] == [100] * 10
    assert len(pack([Range("t", 0, 0, 3)], Packing(min_tasks=10))) == 3
    assert pack([Range("t", 0, 5, 5)], Packing(min_tasks=10)) == []


@pytest.mark.parametrize("name", ["tasks", "min_tasks", "min_records", "min_piece"])
def test_a_packing_of_nothing_is_refused(name: str) -> None:
    """Zero tasks would read nothing for ever."""
    with pytest.raises(OptionError, match=name):
        Packing(**{name: 0})
