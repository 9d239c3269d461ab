"""A limit is used up, no partition gets more than its backlog, and large backlogs do not delay small ones."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from spark_sink.ranges.batch_ends_within_limits import Limit, admit, waited
from spark_sink.ranges.batch_offset import TopicPartition

BACKLOGS = st.dictionaries(
    st.builds(TopicPartition, st.sampled_from("abcd"), st.integers(0, 9)), st.one_of(st.just(0), st.integers(0, 10**6))
)


@given(BACKLOGS, st.integers(0, 10**6))
def test_the_limit_is_used_up_and_never_passed(backlog: dict[TopicPartition, int], limit: int) -> None:
    """A batch reads min(limit, everything) and of no partition more than it has."""
    granted = admit(backlog, limit)
    assert granted.keys() == backlog.keys()
    assert sum(granted.values()) == min(limit, sum(backlog.values()))
    assert all(0 <= granted[key] <= backlog[key] for key in backlog)


@given(BACKLOGS, st.integers(0, 10**6))
def test_shares_are_max_min_fair(backlog: dict[TopicPartition, int], limit: int) -> None:
    """Whoever did not get all it has got at most one less than the most that anybody got."""
    granted = admit(backlog, limit)
    most = max(granted.values(), default=0)
    assert all(granted[key] >= most - 1 for key in backlog if granted[key] < backlog[key])


@given(BACKLOGS, st.integers(1, 10**6), st.integers(0, 10**6), st.data())
def test_bytes_are_limited_and_something_is_always_read(
    backlog: dict[TopicPartition, int], most: int, offsets: int, data: st.DataObject
) -> None:
    """A batch keeps both limits; a record larger than the limit in bytes is read alone and does not stop the query."""
    sizes = {topic: data.draw(st.floats(1, 10**7)) for topic in "abcd"}
    granted = Limit(offsets=offsets, bytes=most, sizes=sizes).admit(backlog)
    assert granted.keys() == backlog.keys()
    assert sum(granted.values()) <= offsets
    assert all(0 <= granted[key] <= backlog[key] for key in backlog)
    assert any(granted.values()) == (offsets > 0 and any(backlog.values()))
    size = sum(records * sizes[key.topic] for key, records in granted.items())
    assert size <= most * (1 + 1e-9) or sum(granted.values()) == 1


@given(
    st.sets(st.builds(TopicPartition, st.sampled_from("abcd"), st.integers(0, 5)), min_size=1),
    st.one_of(st.none(), st.integers(1, 30)),
    st.one_of(st.none(), st.integers(1, 1000)),
    st.data(),
)
def test_every_partition_with_a_backlog_advances_within_a_bounded_number_of_batches(
    keys: set[TopicPartition], offsets: int | None, most: int | None, data: st.DataObject
) -> None:
    """Whatever arrives elsewhere: at least once in ceil(partitions / records that the limits let through) batches."""
    sizes = {topic: float(data.draw(st.integers(1, 300))) for topic in "abcd"}
    limit = Limit(offsets=offsets, bytes=most, sizes=sizes)
    largest = max(sizes[key.topic] for key in keys)
    records = min(offsets or len(keys), max(1, int(most // largest)) if most else len(keys))
    bound = -(-len(keys) // records)
    backlog = dict.fromkeys(keys, 0)
    without = dict.fromkeys(keys, 0)  # batches that a partition has had a backlog in, without advancing
    waits: dict[TopicPartition, int] = {}
    for _ in range(2 * bound + 2):
        for key in keys:
            backlog[key] += data.draw(st.sampled_from([0, 1, 10**6]))
        granted = limit.admit(backlog, waits)
        waits = waited(waits, backlog, granted)
        for key in keys:
            without[key] = without[key] + 1 if backlog[key] and not granted[key] else 0
            backlog[key] -= granted[key]
        assert max(without.values()) < bound


@given(BACKLOGS)
def test_without_a_limit_everything_is_read(backlog: dict[TopicPartition, int]) -> None:
    """None and a limit above the backlog are the same."""
    assert admit(backlog, None) == backlog == admit(backlog, sum(backlog.values()))


def test_a_large_topic_does_not_hold_small_ones_back() -> None:
    """300 topics with 10 records each are read completely, next to one with a backlog of a million."""
    rng = np.random.default_rng(7)
    backlog = {TopicPartition(f"small{n}", 0): int(rng.integers(1, 11)) for n in range(300)}
    backlog[TopicPartition("large", 0)] = 1_000_000
    granted = admit(backlog, 10_000)
    assert all(granted[key] == count for key, count in backlog.items() if key.topic != "large")
