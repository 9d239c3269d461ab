"""Spans of rows, beside a count of every row."""

from typing import Any

import pyarrow as pa
from hypothesis import given
from hypothesis import strategies as st

from spark_sink.lake.row_offsets import spans_of
from spark_sink.lake.table_contract import Span
from spark_sink.ranges.batch_offset import TopicPartition

KEYS = pa.schema([("topic", pa.string()), ("partition", pa.int32()), ("offset", pa.int64())])
RUNS = st.lists(
    st.tuples(st.sampled_from("abé"), st.integers(0, 2), st.integers(0, 2**40), st.integers(1, 40), st.booleans()),
    max_size=40,
)


@given(RUNS, st.integers(1, 50), st.integers(0, 3))
def test_spans_are_those_of_a_count_of_every_row(
    runs: list[tuple[str, int, int, int, bool]], chunk: int, skipped: int
) -> None:
    """Long runs, rows that alternate, descending offsets, a slice, and rows in several batches."""
    rows: list[dict[str, Any]] = [
        {"topic": topic, "partition": number, "offset": begin + (count - at if turned else at)}
        for topic, number, begin, count, turned in runs
        for at in range(count)
    ][skipped:]
    expected: dict[TopicPartition, Span] = {}
    for row in rows:
        key, offset = TopicPartition(row["topic"], row["partition"]), row["offset"]
        old = expected.get(key, Span(offset, offset, 0))
        expected[key] = Span(min(old.first, offset), max(old.last, offset), old.rows + 1)
    batches = [pa.RecordBatch.from_pylist(rows[at : at + chunk], schema=KEYS) for at in range(0, len(rows), chunk)]
    table = pa.Table.from_batches(batches, schema=KEYS)
    assert spans_of(table) == expected
    whole = pa.RecordBatch.from_pylist([{"topic": "z", "partition": 9, "offset": -1}, *rows], schema=KEYS).slice(1)
    assert spans_of(pa.Table.from_batches([whole])) == expected
