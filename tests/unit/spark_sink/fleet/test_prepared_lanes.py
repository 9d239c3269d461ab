"""Clients that are created before their lanes are read."""

import pytest
from confluent_kafka import KafkaError, KafkaException

from assignors.fleet import Lane
from spark_sink.fleet.lane_consumer import LaneConsumer
from spark_sink.fleet.prepared_lanes import PreparedLanes

A, B, C = (Lane("s", number) for number in range(3))


class Made:
    """Creates consumers, of which it keeps what happens to them."""

    def __init__(self) -> None:
        self.lanes: list[Lane] = []
        self.closed: list[Lane] = []
        self.refused: set[Lane] = set()

    def make(self, lane: Lane) -> LaneConsumer:
        """Create one without a client."""
        if lane in self.refused:
            raise KafkaException(KafkaError(KafkaError._INVALID_ARG))
        self.lanes.append(lane)
        made = LaneConsumer.__new__(LaneConsumer)
        made.lane = lane
        made.close = lambda: self.closed.append(lane)  # type: ignore[method-assign]  # it has no client
        return made


def test_a_prepared_consumer_is_used_once_and_the_others_are_closed() -> None:
    """A lane that is read again later needs a client that was not closed."""
    made = Made()
    lanes = PreparedLanes(made.make)
    lanes.open([A, B])
    one, other = lanes.take(A), lanes.take(C)
    assert (one.lane, other.lane, made.lanes) == (A, C, [A, B, C])
    lanes.close()
    lanes.close()
    assert made.closed == [B]
    assert lanes.take(A) is not one
    assert made.lanes == [A, B, C, A]


def test_refused_settings_are_reported_when_the_lane_is_read() -> None:
    """The reader reports errors of its lanes, and tries again; nothing may end its thread before."""
    made = Made()
    made.refused = {A}
    lanes = PreparedLanes(made.make)
    lanes.open([A, B])
    assert made.lanes == [B]
    with pytest.raises(KafkaException):
        lanes.take(A)


def test_an_agent_without_topics_closes_them_after_a_while() -> None:
    """A spare agent may wait for days."""
    now, made = [0.0], Made()
    lanes = PreparedLanes(made.make, lambda: now[0])
    now[0] = 100.0
    lanes.open([A, B])
    now[0] = 129.0
    lanes.close_old()
    assert not made.closed
    now[0] = 131.0
    lanes.close_old()
    assert sorted(made.closed) == [A, B]
