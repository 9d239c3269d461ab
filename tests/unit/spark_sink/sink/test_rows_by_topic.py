"""Rows grouped in one pass are the rows of a plain filter."""

import pyarrow as pa
import pyarrow.compute as pc
import pytest
from hypothesis import given
from hypothesis import strategies as st

from spark_sink.errors import TableError
from spark_sink.sink import rows_by_topic
from spark_sink.sink.rows_by_topic import RowsByTopic

NAMES = st.sampled_from(["a", "b", "b.c", "", "\u00e9", "long" * 20])
# Long runs of one topic as a consumer returns them, and short ones in any order.
TOPICS = st.lists(st.tuples(NAMES, st.integers(1, 5) | st.sampled_from([40, 90])), max_size=12).map(
    lambda runs: [name for name, length in runs for _ in range(length)]
)


def table(topics: list[str], cut: int) -> pa.Table:
    """A row of each topic, with nulls and lists beside it, in two chunks."""
    numbers = range(len(topics))
    rows = pa.table(
        {
            "topic": pa.array(topics, pa.string()),
            "value": pa.array([None if n % 3 == 0 else b"v" * n for n in numbers], pa.binary()),
            "headers": pa.array([None if n % 4 == 0 else ["h"] * (n % 3) for n in numbers], pa.list_(pa.string())),
        }
    )
    return pa.concat_tables([rows.slice(0, cut), rows.slice(cut)])


@given(topics=TOPICS, wanted=st.sets(NAMES), cut=st.integers(0, 60))
def test_the_rows_are_those_of_a_filter_in_the_same_order(topics: list[str], wanted: set[str], cut: int) -> None:
    """Offsets ascend within a file; a row in a second table, or in none, would be double or lost."""
    rows = table(topics, min(cut, len(topics)))
    by_topic = RowsByTopic(rows)
    expected = rows.filter(pc.is_in(rows.column("topic"), pa.array(sorted(wanted), pa.string())))
    assert sorted(by_topic.topics) == sorted(set(topics))
    assert by_topic.of(wanted).equals(expected)


@given(topics=TOPICS, wanted=st.sets(NAMES), cut=st.integers(0, 60))
def test_no_row_is_lost_if_the_rows_do_not_fit_into_one_batch(topics: list[str], wanted: set[str], cut: int) -> None:
    """A column of values has at most 2 GiB: rows of a second batch were once left out, and their range committed."""
    rows = table(topics, min(cut, len(topics)))
    expected = rows.filter(pc.is_in(rows.column("topic"), pa.array(sorted(wanted), pa.string())))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(rows_by_topic, "_COMBINED_BYTES", 0)
        assert RowsByTopic(rows).of(wanted).equals(expected)


def test_a_row_without_a_topic_is_refused() -> None:
    """It would land in no table."""
    rows = pa.table({"topic": pa.array(["a", None], pa.string())})
    with pytest.raises(TableError, match="no topic"):
        RowsByTopic(rows)


def test_a_copy_does_not_keep_the_batch_in_memory() -> None:
    """A quiet table's few rows are held until the file ends; a view would hold all rows that were read with them."""
    rows = pa.table({"topic": ["busy"] * 999 + ["quiet"], "value": [b"v" * 1000] * 1000})
    held = RowsByTopic(rows).of({"quiet"})
    assert held.get_total_buffer_size() < 10_000
