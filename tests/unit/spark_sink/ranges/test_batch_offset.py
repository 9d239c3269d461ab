"""The seam between source and sink: the offset's JSON."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from spark_sink.errors import OffsetError
from spark_sink.ranges.batch_offset import Offset, Range, TopicPartition

RANGES = st.dictionaries(
    st.tuples(st.text(min_size=1, max_size=5), st.integers(0, 20)),
    st.tuples(st.integers(0, 2**62), st.integers(0, 2**40), st.integers(-1, 1000)),
    max_size=20,
).map(lambda d: [Range(t, p, begin, begin + length, g) for (t, p), (begin, length, g) in d.items()])


@given(RANGES, st.randoms(use_true_random=False))
def test_reading_what_was_written_gives_the_same_and_order_means_nothing(ranges: list[Range], random: object) -> None:
    """Spark compares offsets as text: equal ranges must give equal text, whatever their order was."""
    offset = Offset.of(ranges)
    random.shuffle(ranges)  # type: ignore[attr-defined]  # hypothesis hands in a random.Random
    assert Offset.of(ranges).json() == offset.json()
    assert Offset.parse(offset.json()) == offset
    assert Offset.parse(offset.value()) == offset
    assert Offset.parse(json.dumps(offset.value())) == offset


def test_the_text_is_the_agreed_one() -> None:
    """Checkpoints outlive versions of this code: a change of the text is a change of the version."""
    offset = Offset.of([Range("b", 10, 5, 5, 3), Range("a", 2, 0, 7, 3), Range("b", 9, 1, 2, 3)])
    assert offset.json() == '{"v":1,"partitions":{"a":{"2":[0,7,3]},"b":{"9":[1,2,3],"10":[5,5,3]}}}'
    assert offset.ends == {TopicPartition("a", 2): 7, TopicPartition("b", 9): 2, TopicPartition("b", 10): 5}
    assert [one.records for one in offset] == [7, 1, 0]


def test_identities_stand_beside_the_ranges_and_may_be_missing() -> None:
    """Checkpoints that were written before there were identities are read, and give the same text again."""
    ranges = [Range("b", 0, 5, 5, 3), Range("a", 2, 0, 7, 3)]
    offset = Offset.of(ranges, {"b": "c/2", "a": "c/1", "gone": "c/3"})
    assert offset.json().endswith('"b":{"0":[5,5,3]}},"topics":{"a":"c/1","b":"c/2"}}')
    assert Offset.parse(offset.json()) == offset
    assert Offset.parse(offset.json()).json() == offset.json()
    assert offset.only({TopicPartition("b", 0)}) == Offset.of(ranges[:1], {"b": "c/2"})
    old = '{"v":1,"partitions":{"a":{"2":[0,7,3]}}}'
    assert Offset.parse(old).json() == old


@pytest.mark.parametrize(
    "text",
    [
        "",
        "[]",
        "null",
        "{}",
        '{"v": 2, "partitions": {}}',
        '{"v": 1}',
        '{"v": 1, "partitions": []}',
        '{"v": 1, "partitions": {"a": {"0": [1, 2]}}}',
        '{"v": 1, "partitions": {"a": {"x": [1, 2, 3]}}}',
        '{"v": 1, "partitions": {"a": {"0": [2, 1, 3]}}}',
        '{"v": 1, "partitions": {"a": {"0": [-1, 1, 3]}}}',
        '{"v": 1, "partitions": {"a": {"0": [0, 1, 3], "00": [0, 1, 3]}}}',
        '{"v": 1, "partitions": {"a": {"0": [0, 1, 3]}}, "topics": ["a"]}',
    ],
)
def test_what_is_no_offset_is_refused(text: str) -> None:
    """A checkpoint of another source, or a damaged one, is an error that says so and never an empty batch."""
    with pytest.raises(OffsetError):
        Offset.parse(text)
