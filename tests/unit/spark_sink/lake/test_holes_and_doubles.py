"""Holes and doubles, named."""

from collections import Counter
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from deltalake import write_deltalake
from hypothesis import given
from hypothesis import strategies as st

from spark_sink.errors import TableError
from spark_sink.lake.holes_and_doubles import Runs, judge, scan, verify
from spark_sink.ranges.batch_offset import TopicPartition

KEY = TopicPartition("t", 0)


def _batch(rows: list[tuple[str, int, int]]) -> pa.RecordBatch:
    topics, partitions, offsets = zip(*rows, strict=True) if rows else ((), (), ())
    return pa.record_batch(
        {
            "topic": pa.array(topics, pa.string()),
            "partition": pa.array(partitions, pa.int32()),
            "offset": pa.array(offsets, pa.int64()),
        }
    )


@given(st.lists(st.lists(st.integers(0, 30), max_size=12), max_size=8))
def test_runs_equal_a_plain_count(chunks: list[list[int]]) -> None:
    """For any order and chunks: the set of offsets, and each repetition of an offset."""
    runs = Runs()
    for chunk in chunks:
        runs.add(np.array(chunk, dtype=np.int64))
    counted = Counter(offset for chunk in chunks for offset in chunk)
    assert [offset for first, end in runs for offset in range(first, end)] == sorted(counted)
    assert all(a[1] < b[0] for a, b in zip(list(runs), list(runs)[1:], strict=False))
    doubles = Counter(offset for first, end in runs.doubles for offset in range(first, end))
    assert doubles == Counter({offset: count - 1 for offset, count in counted.items() if count > 1})
    assert runs.rows == counted.total()


@given(st.lists(st.tuples(st.sampled_from(["a", "b"]), st.integers(0, 2), st.integers(0, 9)), max_size=40))
def test_scan_keeps_partitions_apart(rows: list[tuple[str, int, int]]) -> None:
    """Topics and partitions that are mixed in one batch are separated."""
    found = scan([_batch(rows[::2]), _batch(rows[1::2])])
    assert {key: runs.rows for key, runs in found.items()} == Counter(
        (topic, partition) for topic, partition, _ in rows
    )


def test_findings_name_the_offsets() -> None:
    """The missing and the double offsets are named, not only counted."""
    found = scan([_batch([("t", 0, offset) for offset in (2, 3, 3, 5, 9)])])
    (one,) = judge(found, {KEY: 12}, {KEY: 0}).findings
    assert one.holes == ((0, 2), (4, 5), (6, 9), (10, 12))
    assert one.doubles == ((3, 4),)
    assert (one.rows, one.missing, one.duplicates) == (5, 8, 1)


def test_a_partition_with_a_position_and_no_row_is_missing_whole() -> None:
    """A commit that moved the position and lost its file."""
    report = judge({}, {KEY: 4}, {KEY: 1})
    assert (report.missing, report.ok) == (3, False)


def test_offsets_accounted_for_elsewhere_are_no_holes() -> None:
    """A quarantined record is not lost."""
    found, elsewhere = scan([_batch([("t", 0, 0), ("t", 0, 2)])]), scan([_batch([("t", 0, 1)])])
    assert judge(found, {KEY: 3}, {KEY: 0}, elsewhere).ok


def test_no_table_is_one_sentence(tmp_path: Path) -> None:
    """A wrong path is not an empty table."""
    with pytest.raises(TableError, match="there is no Delta table"):
        verify(str(tmp_path / "none"))


def test_a_table_of_another_kind_is_one_sentence(tmp_path: Path) -> None:
    """Some Delta table, but not one of ours."""
    write_deltalake(str(tmp_path), pa.table({"x": [1]}))
    with pytest.raises(TableError, match="cannot be read"):
        verify(str(tmp_path))


def test_bad_records_of_a_batch_that_is_still_to_come_are_no_hole() -> None:
    """The quarantine is committed first: looked at between the two, it is ahead of the table."""
    report = judge(scan([_batch([("t", 0, one) for one in (0, 1, 3)])]), {KEY: 4}, {KEY: 0}, _offsets(2, 9))
    assert report.ok
    (one,) = judge(scan([_batch([("t", 0, 0)])]), {KEY: 4}, {KEY: 0}, _offsets(2, 3, 4)).findings
    assert one.holes == ((1, 2),)


def _offsets(*offsets: int) -> dict[TopicPartition, Runs]:
    return scan([_batch([("t", 0, one) for one in offsets])])


@pytest.mark.parametrize("column", ["topic", "partition", "offset"])
def test_rows_that_do_not_say_which_record_they_are_are_told(tmp_path: Path, column: str) -> None:
    """Another program wrote them; a count of the other rows would look like a result."""
    rows = pa.Table.from_batches([_batch([("t", 0, 0), ("t", 0, 1)])])
    at = rows.column_names.index(column)
    write_deltalake(
        str(tmp_path), rows.set_column(at, rows.field(at), pa.array([rows[column][0].as_py(), None], rows[column].type))
    )
    with pytest.raises(TableError, match="which other program writes into the table"):
        verify(str(tmp_path))
