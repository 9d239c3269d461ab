"""The options of a batch read with its offsets as numbers: what the read and the write make of them is the same."""

import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from spark_sink.errors import DataLossError, OptionError
from spark_sink.options.source_options import SourceOptions
from spark_sink.ranges.batch_offset import Offset, Range
from spark_sink.sink.range_write import ranges_of_write
from spark_sink.source.batch_reader import batch_ranges, refuse_recreated
from spark_sink.source.fixed_offsets import after, parse, with_offsets
from tests.unit.spark_sink.source.test_batch_reader import Logs

SERVERS = {"kafka.bootstrap.servers": "one:9092"}
RANGES = st.builds(
    lambda topic, partition, begin, length: Range(topic, partition, begin, begin + length),
    st.sampled_from(["a", "b.c", "d-e"]),
    st.integers(0, 3),
    st.integers(0, 2**40),
    st.integers(0, 2**40),
)


@given(st.lists(RANGES, min_size=1, unique_by=lambda one: one.key))
def test_the_write_and_the_read_find_the_ranges_in_the_options(ranges: list[Range]) -> None:
    """Whatever options led to them."""
    offset = Offset.of(ranges, {one.topic: f"cluster/{one.topic}" for one in ranges})
    asked = {**SERVERS, "SubscribePattern": ".*", "startingTimestamp": "1", "EndingOffsets": "latest", "positions": "p"}
    options = with_offsets(asked, offset)
    assert ranges_of_write(options) == offset
    parsed = SourceOptions.parse(options, stream=False)
    assert parsed.starting.offsets == {one.key: one.begin for one in ranges}
    assert parsed.ending is not None
    assert parsed.ending.offsets == {one.key: one.end for one in ranges}
    assert (parsed.topic_ids, parsed.topics) == (offset.identities, tuple(sorted({one.topic for one in ranges})))
    assert with_offsets(options, offset) == options


def test_partitions_that_were_added_since_are_not_read() -> None:
    """The write would refuse their rows."""
    logs = Logs()
    present = sorted(logs.subscribed())
    one = present[0]
    fixed = with_offsets({**SERVERS, "subscribe": one.topic}, Offset.of([Range(*one, 0, 0)]))
    found = batch_ranges(logs, SourceOptions.parse(fixed, stream=False))
    assert [each.key for each in found] == [one] != present


def test_a_topic_that_was_recreated_since_is_not_read() -> None:
    """Its offsets mean other records; topics whose id is unknown are read."""
    refuse_recreated({"t": "c/1", "u": "c/2"}, {"t": "c/1"})
    with pytest.raises(DataLossError, match=r"t: the topic was deleted and recreated .*fixed_offsets again"):
        refuse_recreated({"t": "c/1"}, {"t": "c/0"})


def test_a_range_begins_at_the_tables_position() -> None:
    """Where it has one; a table ahead of the log is refused."""
    one = Range("t", 0, 3, 9)
    assert [after(one, at) for at in (None, 5, 9)] == [one, Range("t", 0, 5, 9), Range("t", 0, 9, 9)]
    with pytest.raises(OptionError, match=r"t/0: the table has come to offset 10, and the batch ends before it, at 9"):
        after(one, 10)


def test_positions_of_a_table_need_a_group(tmp_path: Path) -> None:
    """And a table that does not exist has none."""
    asked = {**SERVERS, "subscribe": "t", "positions": str(tmp_path / "table")}
    with pytest.raises(OptionError, match=r"option 'positions' needs the option 'kafka\.group\.id'"):
        parse(asked)
    parsed, known = parse({**asked, "kafka.group.id": "g"})
    assert (parsed.group, known) == ("g", {})


@pytest.mark.parametrize("text", ["[]", "x", json.dumps({"t": 1})])
def test_topic_ids_of_another_form_are_one_sentence(text: str) -> None:
    """It names the option."""
    with pytest.raises(OptionError, match="option 'topicIds'"):
        SourceOptions.parse({**SERVERS, "subscribe": "t", "topicIds": text}, stream=False)
