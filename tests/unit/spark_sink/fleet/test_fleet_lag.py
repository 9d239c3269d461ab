"""The lag of a whole fleet, on tables and logs that are dictionaries."""

import time
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from typing import Any

import pytest

from assignors.errors import MembershipError
from assignors.fleet import FleetTopic
from spark_sink.errors import TableError
from spark_sink.fleet.fleet_lag import FleetLag, SourceLag, TopicFigures, by_topic, summary
from spark_sink.ranges.batch_offset import TopicPartition

T0, T1 = TopicPartition("t", 0), TopicPartition("t", 1)


@dataclass
class Model:
    """A source."""

    table: dict[TopicPartition, int] = field(default_factory=dict)
    last: dict[TopicPartition, int] = field(default_factory=dict)
    first: dict[TopicPartition, int] = field(default_factory=dict)
    error: Exception | None = None
    now: float = 100.0
    connected: int = 0

    def lag(self) -> SourceLag:
        """A look at it."""
        return SourceLag(lambda: dict(self.table), self._connect, lambda: self.now)

    def _connect(self) -> "Model":
        self.connected += 1
        return self

    def ends(self, partitions: Collection[TopicPartition], timeout_s: float) -> dict[Any, int]:
        """As the logs."""
        assert timeout_s > 0
        if self.error is not None:
            raise self.error
        return {tuple(key): self.last[key] for key in partitions if key in self.last}

    def beginnings(self, partitions: Collection[TopicPartition], timeout_s: float) -> dict[Any, int]:
        """As the logs."""
        assert timeout_s > 0
        return {tuple(key): self.first.get(key, 0) for key in partitions if key in self.last}

    def at_times(self, times_ms: Mapping[TopicPartition, int], timeout_s: float) -> dict[Any, int | None]:
        """No record is so late."""
        assert timeout_s > 0
        return dict.fromkeys(times_ms)

    def close(self) -> None:
        """Nothing to close."""


def topic(name: str = "t", partitions: int = 2, id_: str = "id") -> FleetTopic:
    """A topic of source s."""
    return FleetTopic("c", id_, name, "s", partitions)


def test_lag_age_and_rate_come_from_the_table_and_the_logs() -> None:
    """A rate needs two looks, and an age too, of records that came between them."""
    model = Model(table={T0: 10, T1: 5}, last={T0: 10, T1: 5})
    lag = model.lag()
    assert lag.look([topic()]) == {"t": TopicFigures(lag=0, lag_s=0.0, rate=None)}
    model.now, model.last, model.table = 102.0, {T0: 40, T1: 5}, {T0: 20, T1: 5}
    assert lag.look([topic()])["t"].lag == 20
    model.now = 107.0
    found = lag.look([topic()])["t"]
    assert found.lag_s == pytest.approx(6.33, abs=0.01)  # written 2/3 of the way between the first two looks
    assert found.rate == 0.0
    model.now, model.table = 109.0, {T0: 40, T1: 5}
    assert lag.look([topic()])["t"] == TopicFigures(lag=0, lag_s=0.0, rate=10.0)


def test_a_topic_that_no_agent_has_read_is_behind_by_its_whole_log() -> None:
    """It has no position, and its records are unread all the same."""
    assert Model(last={T0: 30, T1: 7}, first={T0: 20}).lag().look([topic()])["t"].lag == 17


def test_a_recreated_topic_has_its_own_positions() -> None:
    """Those of the earlier topic of this name would show no lag."""
    recreated = TopicPartition("t@new", 0)
    model = Model(table={T0: 500, recreated: 3}, last={T0: 10})
    assert model.lag().look([topic(partitions=1, id_="new")])["t"].lag == 7


def test_a_sum_without_one_partition_is_unknown() -> None:
    """It would be too small, as one with a position that is beyond the log."""
    assert by_topic({T0: 5, T1: 5}, {T0: 9}) == {}
    assert by_topic({T0: 5, T1: None}, {T0: 9, T1: 9}) == {}
    assert by_topic({T0: 10, T1: 5}, {T0: 9, T1: 9}) == {}
    assert by_topic({T0: 5, T1: 5}, {T0: 9, T1: 9}) == {"t": 8}


@pytest.mark.parametrize("error", [MembershipError("no broker answers"), TableError("no table")])
def test_a_source_that_does_not_answer_is_unknown_and_stops_no_other(error: Exception) -> None:
    """It is asked again with a new connection."""
    away, there = Model(last={T0: 3}, error=error), Model(last={T0: 3})
    fleet = FleetLag({"a": away.lag(), "b": there.lag(), "c": Model().lag()})
    topics = {"a": [topic(partitions=1)], "b": [topic(partitions=1)], "c": []}
    found = fleet.look(topics)
    assert found["a/t"] == TopicFigures()
    assert found["b/t"].lag == 3
    assert found.keys() == {"a/t", "b/t"}
    away.error = None
    assert fleet.look(topics)["a/t"].lag == 3
    assert away.connected == 2


def test_the_lag_of_a_fleet_is_one_line() -> None:
    """What is unknown is counted, and is no zero."""
    assert summary({}) == "lag: unknown"
    assert summary({"s/t": TopicFigures()}) == "lag: unknown"
    found = {
        "s/a": TopicFigures(lag=1200, lag_s=3.0, rate=10.0),
        "s/b": TopicFigures(lag=0, lag_s=0.0, rate=5.0),
        "s/c": TopicFigures(),
    }
    assert summary(found) == (
        "lag: 1,200 records in 1 of 3 topics, the oldest unread is 3 s old, 15 records a second written, the lag of 1 "
        "topic is unknown"
    )


def test_a_look_at_many_topics_costs_as_much_for_each_as_one_at_few() -> None:
    """The page of a fleet of thousands of topics must not take its agent's processor."""

    def cost(topics: int) -> float:
        names = [f"t{n}" for n in range(topics)]
        ends = {TopicPartition(name, n): 9 for name in names for n in range(2)}
        lag, seen = Model(table=ends, last=ends).lag(), [topic(name) for name in names]
        began = time.thread_time()
        lag.look(seen)
        return (time.thread_time() - began) / topics

    few, many = min(cost(200) for _ in range(5)), min(cost(3200) for _ in range(2))
    assert many < 4 * few, f"{many / few:.1f} times as much"
