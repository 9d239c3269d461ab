"""Lag by topic."""

from hypothesis import given
from hypothesis import strategies as st

from spark_sink.kafka.group_lag import by_topic
from spark_sink.ranges.batch_offset import TopicPartition

KEYS = st.builds(TopicPartition, st.sampled_from(["a", "b"]), st.integers(0, 3))


@given(st.dictionaries(KEYS, st.integers(0, 50)), st.dictionaries(KEYS, st.integers(0, 50)))
def test_lag_is_never_negative_and_sums_up(
    positions: dict[TopicPartition, int], ends: dict[TopicPartition, int]
) -> None:
    """A recreated topic has ends below the positions."""
    known = positions.keys() & ends.keys()
    found = by_topic(positions, ends)
    assert [one.topic for one in found] == sorted({key.topic for key in known})
    assert sum(one.lag_records for one in found) == sum(max(0, ends[key] - positions[key]) for key in known)
    for one in found:
        partition, lag = one.worst
        assert lag == max(max(0, ends[key] - positions[key]) for key in known if key.topic == one.topic)
        assert (
            max(0, ends[TopicPartition(one.topic, partition)] - positions[TopicPartition(one.topic, partition)]) == lag
        )
