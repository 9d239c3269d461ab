"""A batch read returns all that was asked for, or a sentence; never less."""

from collections.abc import Iterable, Mapping

import pytest
from hypothesis import given
from hypothesis import strategies as st

from spark_sink.errors import FetchError, OptionError
from spark_sink.options.source_options import SourceOptions
from spark_sink.ranges.batch_offset import TopicPartition
from spark_sink.source.batch_reader import batch_ranges, refuse_for_batch

A0, A1 = TopicPartition("a", 0), TopicPartition("a", 1)
BASE = {"kafka.bootstrap.servers": "x:1", "subscribe": "a"}


class Logs:
    """Two logs: a/0 holds [2, 10), with a record a ms from 102 on; a/1 holds [0, 5), from 100 on."""

    def __init__(self) -> None:
        self.held = {A0: (2, 10), A1: (0, 5)}
        self.silent: dict[TopicPartition, int] = {}  # answers that are missing because a leader is being elected

    def beginnings(self, keys: Iterable[TopicPartition]) -> dict[TopicPartition, int]:
        """Answer from the logs."""
        return {key: self.held[key][0] for key in keys}

    def ends(self, keys: Iterable[TopicPartition]) -> dict[TopicPartition, int]:
        """Answer for partitions with a leader."""
        asked = set(keys)
        for key in asked & self.silent.keys():
            self.silent[key] -= 1
        return {key: self.held[key][1] for key in asked if self.silent.get(key, 0) <= 0}

    def at_times(self, times_ms: Mapping[TopicPartition, int]) -> dict[TopicPartition, int | None]:
        """Answer from the logs."""
        found = {key: max(self.held[key][0], time - 100) for key, time in times_ms.items()}
        return {key: at if at < self.held[key][1] else None for key, at in found.items()}

    def subscribed(self) -> set[TopicPartition]:
        """Answer every partition."""
        return set(self.held)


def read(logs: Logs | None = None, /, **options: str) -> dict[TopicPartition, tuple[int, int]]:
    """Begin and end by partition."""
    parsed = SourceOptions.parse({**BASE, **options}, stream=False)
    refuse_for_batch(parsed)
    found = batch_ranges(logs or Logs(), parsed, sleep=lambda _: None)
    return {one.key: (one.begin, one.end) for one in found}


@pytest.mark.parametrize(
    ("options", "a0", "a1"),
    [
        ({}, (2, 10), (0, 5)),
        ({"startingOffsets": '{"a": {"0": 4}}', "endingOffsets": '{"a": {"1": 3}}'}, (4, 10), (0, 3)),
        ({"startingOffsets": '{"a": {"0": -2}}', "endingOffsets": '{"a": {"0": -1}}'}, (2, 10), (0, 5)),
        ({"startingTimestamp": "103", "endingTimestamp": "104"}, (3, 4), (3, 4)),
        ({"startingTimestamp": "1", "endingTimestamp": "900"}, (2, 10), (0, 5)),
        ({"endingOffsetsByTimestamp": '{"a": {"0": 104}}'}, (2, 4), (0, 5)),
        ({"startingTimestamp": "107", "startingOffsetsByTimestampStrategy": "latest"}, (7, 10), (5, 5)),
        ({"startingTimestamp": "0", "startingOffsets": "latest"}, (2, 10), (0, 5)),
        ({"startingTimestamp": "103", "startingOffsetsByTimestamp": '{"a": {"0": 105}}'}, (3, 10), (3, 5)),
        ({"endingTimestamp": "104", "endingOffsets": '{"a": {"0": 3}}'}, (2, 4), (0, 4)),
    ],
    ids=[
        "all",
        "offsets",
        "marks",
        "times",
        "wide times",
        "one time",
        "later than the last",
        "the time before offsets",
        "the time before times",
        "the last time before offsets",
    ],
)
def test_the_bounds_are_those_of_the_options(options: dict[str, str], a0: tuple[int, int], a1: tuple[int, int]) -> None:
    """In the forms of Spark's own source."""
    assert read(**options) == {A0: a0, A1: a1}


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"startingOffsets": "latest"}, "startingOffsets.*latest .*an empty batch"),
        ({"startingOffsets": '{"a": {"0": -1}}'}, "startingOffsets.*latest"),
        ({"endingOffsets": "earliest"}, "endingOffsets.*earliest"),
        ({"endingOffsets": '{"a": {"1": -2}}'}, "endingOffsets.*earliest"),
        ({"endingOffsets": '{"a": {"1": 6}}'}, "a/1: 6 is past the end of the log, 5"),
        (
            {"startingOffsets": '{"a": {"1": 4}}', "endingOffsets": '{"a": {"1": 3}}'},
            "a/1: the batch begins at offset 4",
        ),
        ({"startingOffsets": '{"a": {"1": 9}}'}, "a/1: the batch begins at offset 9 and ends before it, at 5"),
        ({"startingOffsets": '{"a": {"7": 1}}'}, "starting.* name a/7, which is not read"),
        ({"endingOffsetsByTimestamp": '{"b": {"0": 1}}'}, "ending.* name b/0, which is not read"),
        ({"subscribe": "a,c"}, "there is no topic 'c'"),
        ({"startingTimestamp": "104", "endingTimestamp": "103"}, "103 is before startingTimestamp, 104"),
        (
            {"startingOffsetsByTimestamp": '{"a": {"1": 104}}', "endingOffsetsByTimestamp": '{"a": {"1": 103}}'},
            "endingOffsetsByTimestamp': a/1: 103 is before startingOffsetsByTimestamp, 104",
        ),
        ({"startingTimestamp": "104", "endingOffsetsByTimestamp": '{"a": {"1": 9}}'}, "a/1: 9 is before startingTim"),
        ({"startingTimestamp": "900"}, "no record at or after 900"),
        ({"positions": "/t"}, "'positions' is for streams"),
        ({"landing": '{"path": "t"}'}, "'landing' is for streams"),
    ],
)
def test_what_makes_no_sense_is_refused(options: dict[str, str], words: str) -> None:
    """A batch with fewer rows than asked for looks like a batch without an error."""
    with pytest.raises(OptionError, match=words):
        read(**options)


def test_a_partition_without_a_leader_is_waited_for_and_never_left_out() -> None:
    """A batch is read once: no later trigger would read the rest."""
    logs = Logs()
    logs.silent = {A1: 7}
    assert read(logs) == {A0: (2, 10), A1: (0, 5)}
    logs.silent = {A1: 1_000}
    with pytest.raises(FetchError, match="a/1: no leader answers, and 1 of 2 partitions"):
        read(logs)


@given(st.integers(0, 12), st.integers(0, 12))
def test_offsets_are_read_exactly_or_refused(begin: int, end: int) -> None:
    """Whatever is asked of a log that holds [2, 10)."""
    offsets = {"startingOffsets": f'{{"a": {{"0": {begin}}}}}', "endingOffsets": f'{{"a": {{"0": {end}}}}}'}
    if begin <= end <= 10:
        assert read(**offsets)[A0] == (begin, end)  # the task refuses offsets that retention has deleted
    else:
        with pytest.raises(OptionError):
            read(**offsets)


def test_a_pattern_without_a_topic_is_refused() -> None:
    """A batch is read once, so a misspelled pattern would look like empty topics."""
    logs = Logs()
    logs.held = {}
    parsed = SourceOptions.parse({"kafka.bootstrap.servers": "x:1", "subscribePattern": "z.*"}, stream=False)
    with pytest.raises(OptionError, match=r"'subscribePattern': no topic matches 'z\.\*'"):
        batch_ranges(logs, parsed)
