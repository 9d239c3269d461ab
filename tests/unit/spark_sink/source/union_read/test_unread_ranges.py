"""The offsets that tables lack: from exactly their positions to the ends of the logs."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from spark_sink.errors import DataLossError
from spark_sink.ranges.batch_offset import TopicPartition
from spark_sink.source.union_read.unread_ranges import unread

KEYS = st.builds(TopicPartition, st.sampled_from(["a", "b"]), st.integers(0, 3))
LOGS = st.dictionaries(KEYS, st.tuples(st.integers(0, 9), st.integers(0, 9), st.integers(0, 9)).map(sorted))


@given(logs=LOGS, known=st.sets(KEYS))
def test_each_offset_is_below_the_position_or_in_one_range(
    logs: dict[TopicPartition, list[int]], known: set[TopicPartition]
) -> None:
    """A partition that the tables do not know is read from the beginning of its log; one without a log is left out."""
    positions = {key: middle for key, (_, middle, _) in logs.items() if key in known}
    beginnings = {key: first for key, (first, _, _) in logs.items()}
    ends = {key: end for key, (_, _, end) in logs.items()}
    found = unread(positions | {TopicPartition("deleted", 0): 7}, beginnings, ends)
    assert found == sorted(found)
    assert len({one.key for one in found}) == len(found)
    read = {(one.key, at) for one in found for at in range(one.begin, one.end)}
    assert read == {(key, at) for key, end in ends.items() for at in range(positions.get(key, beginnings[key]), end)}


def test_a_log_that_ends_before_the_position_is_refused() -> None:
    """Its offsets are those of other records."""
    key = TopicPartition("t", 1)
    with pytest.raises(DataLossError, match=r"t/1: the table has come to offset 5, and the log ends at 4: is it"):
        unread({key: 5}, {}, {key: 4})
