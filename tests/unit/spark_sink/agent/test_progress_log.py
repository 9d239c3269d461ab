"""What is told of a query's reading."""

import logging

import pytest

from spark_sink.agent.progress_log import EVERY_S, ProgressLog
from spark_sink.ranges.batch_offset import Offset, Range


class Clock:
    """A clock that is set."""

    now = 0.0

    def __call__(self) -> float:
        """What it says."""
        return self.now


def batch(*ranges: tuple[int, int, int, int]) -> Offset:
    """An offset of ranges: partition, begin, end, generation."""
    return Offset.of(Range("t", *one) for one in ranges)


def told(caplog: pytest.LogCaptureFixture) -> list[str]:
    """The lines since the last call."""
    lines = [record.getMessage() for record in caplog.records]
    caplog.clear()
    return lines


def test_what_was_read_is_told_once_with_its_rate(caplog: pytest.LogCaptureFixture) -> None:
    """Batches that were not looked at in between are counted too, and nothing is said where nothing was read."""
    caplog.set_level(logging.INFO, "azimuth.sink")
    clock = Clock()
    narrator = ProgressLog("lake/flights", clock)
    narrator.look(lambda: None)
    narrator.look(lambda: batch((0, 100, 150, 1), (1, 0, 50, 1)))
    narrator.look(lambda: pytest.fail("asked again before it is time"))
    clock.now = EVERY_S
    narrator.look(lambda: batch((0, 150, 150, 1), (1, 50, 50, 1)))
    assert told(caplog) == ["lake/flights: 100 records of 2 partitions (10 a second), 100 so far"]
    clock.now += EVERY_S
    for _ in range(2):
        narrator.look(lambda: batch((0, 1_140, 1_150, 1), (1, 50, 50, 1)))
    assert told(caplog) == ["lake/flights: 1,000 records of 2 partitions (100 a second), 1,100 so far"]
    clock.now += EVERY_S
    narrator.look(lambda: batch((0, 1_140, 1_150, 1), (1, 50, 50, 1)))
    assert told(caplog) == []


def test_what_another_member_read_is_not_counted(caplog: pytest.LogCaptureFixture) -> None:
    """A partition that went and came back: only the batch at hand is known to be this member's."""
    caplog.set_level(logging.INFO, "azimuth.sink")
    narrator = ProgressLog("t", Clock())
    narrator.hear(batch((0, 0, 10, 1)))
    narrator.hear(batch((0, 5_000, 5_007, 3)))
    narrator.hear(batch((0, 3, 5, 3)))  # the log began anew
    narrator.tell()
    assert narrator.records == 10 + 7 + 2
