"""The partitions of a lane whose lag is known."""

import pytest

from spark_sink.fleet.lane_lag import known_bounds
from spark_sink.ranges.batch_offset import TopicPartition

KEY = TopicPartition("t", 0)
UNKNOWN = -1001


@pytest.mark.parametrize(
    ("at", "log", "lag"),
    [
        pytest.param(5, (0, 9), 4, id="position and end"),
        pytest.param(5, (UNKNOWN, 9), 4, id="the beginning does not matter to a position"),
        pytest.param(5, (0, UNKNOWN), None, id="no end yet"),
        pytest.param(None, (2, 9), 7, id="nothing read yet: from the first record"),
        pytest.param(None, (UNKNOWN, 9), None, id="nothing read, and no beginning: it may be all or nothing"),
        pytest.param(None, (UNKNOWN, 0), 0, id="an empty log"),
        pytest.param(None, None, None, id="not asked"),
    ],
)
def test_lag_is_known_only_with_a_position_and_an_end(
    at: int | None, log: tuple[int, int] | None, lag: int | None
) -> None:
    """A fresh agent over 30,000 unread records reported no lag."""
    positions, ends = known_bounds({KEY: at}, {} if log is None else {KEY: log})
    assert {key: ends[key] - positions[key] for key in ends} == ({} if lag is None else {KEY: lag})
