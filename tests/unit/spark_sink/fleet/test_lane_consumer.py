"""One lane's consumer against a client that behaves as brokers make it behave."""

import time
from pathlib import Path
from typing import Any, cast

import pytest
from confluent_kafka import KafkaError, KafkaException
from confluent_kafka import TopicPartition as KafkaPartition

from assignors.fleet import FleetTopic
from spark_sink.fleet import lane_consumer as lane_module
from spark_sink.fleet import lane_lag
from spark_sink.fleet.lane_consumer import LaneConsumer, LaneParts
from spark_sink.fleet.table_writer import TableWriter
from spark_sink.fleet.unwritten_records import RecordBuffer
from spark_sink.ranges.batch_offset import Range, TopicPartition
from tests.unit.spark_sink.fleet.scripted import LANE, Client, Record, gains, returns, some


def test_a_topic_that_is_always_behind_is_as_late_as_its_oldest_unread_record(monkeypatch: pytest.MonkeyPatch) -> None:
    """Seconds behind come from ends that were seen, so a topic with a few new records at each look is not late."""
    monkeypatch.setattr(lane_lag, "_LAG_S", 0.0)
    monkeypatch.setattr(lane_module, "Consumer", Client)
    ends = [0]
    monkeypatch.setattr(Client, "get_watermark_offsets", lambda *_, **__: (0, ends[-1]))

    join = gains("x", records=[])

    def more(_client: Client) -> list[Record]:
        time.sleep(0.01)
        ends.append(ends[-1] + 5)
        return some("x", ends[-3], ends[-2]) if len(ends) > 2 else []

    Client.script = iter([join, *[more] * 50])
    parts = LaneParts(
        positions=lambda _: {TopicPartition("x", 0): 0}, before_revoked=lambda: None, look_again=lambda: None
    )
    lane = LaneConsumer(LANE, {}, parts)
    lane.subscribe({FleetTopic("c", "1", "x", "s"): "x"})
    began, late = time.monotonic(), []
    for _ in range(51):
        lane.read(lambda *_: None, 100, 0.0)
        ranges, _ = lane.hand_over()
        lane.settle({one.key: one.end for one in ranges}, {})
        late.append(lane.lag_s()["x"])
    assert lane.lag()["x"] == 10, "as of the look before the last batch was written"
    assert late[0] == 0
    assert max(late) < (time.monotonic() - began) / 2


class LogEnd(Record):
    """The event with which librdkafka says that a partition is read to its end."""

    def error(self) -> KafkaError:  # type: ignore[override]  # that is the difference
        """The event."""
        return KafkaError(KafkaError._PARTITION_EOF)


def test_a_topic_whose_last_offset_ends_a_transaction_is_not_late(monkeypatch: pytest.MonkeyPatch) -> None:
    """The mark that ends a transaction is no record: without the event the age of an idle topic grows forever."""
    monkeypatch.setattr(lane_lag, "_LAG_S", 0.0)
    monkeypatch.setattr(lane_module, "Consumer", Client)
    monkeypatch.setattr(Client, "get_watermark_offsets", lambda *_, **__: (0, 6))

    join = gains("x", records=[*some("x", 0, 5), LogEnd("x", 6)])

    Client.script = iter([join])
    parts = LaneParts(
        positions=lambda _: {TopicPartition("x", 0): 0}, before_revoked=lambda: None, look_again=lambda: None
    )
    lane = LaneConsumer(LANE, {}, parts)
    assert cast("Client", lane._consumer).config["enable.partition.eof"]
    lane.subscribe({FleetTopic("c", "1", "x", "s"): "x"})
    lane.read(lambda *_: None, 100, 0.0)
    assert (lane.lag()["x"], lane.problems) == (6, {}), "nothing is in the table yet"
    ranges, _ = lane.hand_over()
    lane.read(lambda *_: None, 100, 0.0)
    assert lane.lag()["x"] == 6, "it is being written"
    lane.settle({one.key: one.end for one in ranges}, {})
    lane.read(lambda *_: None, 100, 0.0)
    assert (lane.lag()["x"], lane.lag_s()["x"]) == (0, 0.0)


def test_a_topic_that_leaves_and_comes_back_before_the_group_takes_it_leaves_no_hole(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """Its records from the meantime were left out, so they are read again from the table's position."""
    x, y = FleetTopic("c", "1", "x", "s"), FleetTopic("c", "2", "y", "s")
    table = TableWriter(str(tmp_path / "t"), "g", "a")
    table.label([x, y])
    flushed: list[Range] = []
    rows = RecordBuffer()

    def flush() -> None:
        ranges, _ = lane.hand_over()
        flushed.extend(ranges)
        if ranges:
            table.commit(table.land(rows, {"x", "y"}), ranges)

    join = gains("x", "y", records=some("x", 0, 5))

    left = returns(*some("x", 5, 9))

    def back(client: Client) -> list[Record]:
        assert client.held["x"] == 5
        return some("x", 5, 9)

    Client.script = iter([join, left, back])
    monkeypatch.setattr(lane_module, "Consumer", Client)
    lane = LaneConsumer(LANE, {}, LaneParts(positions=table.positions, before_revoked=flush, look_again=lambda: None))
    for labels in ({x: "x", y: "y"}, {y: "y"}, {x: "x", y: "y"}):
        lane.subscribe(labels)
        lane.read(rows.add, 100, 0.0)
    assert flushed == [Range("x", 0, 0, 5)]
    assert lane.hand_over()[0] == [Range("x", 0, 5, 9)]


class Trouble(Record):
    """The error with which librdkafka stops a partition: its offset is out of the log's range."""

    def error(self) -> KafkaError:  # type: ignore[override]  # that is the difference
        """Why."""
        return KafkaError(KafkaError._AUTO_OFFSET_RESET)


def test_a_partition_that_librdkafka_stopped_is_read_on_as_soon_as_its_offset_is_of_the_log(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A broker may not know a recreated topic yet: neither a wrong nor a missing answer stops it for ever."""
    answers: list[tuple[int, int] | None] = [None, (0, 2), (0, 40), (3, 40)]

    def marks(_client: Client, _partition: KafkaPartition, *, cached: bool = False, timeout: float = 0) -> Any:
        if cached:
            return -1001, -1001
        assert timeout < 5
        answer = answers.pop(0)
        if answer is None:
            raise KafkaException(KafkaError(KafkaError._TIMED_OUT))
        return answer

    monkeypatch.setattr(Client, "get_watermark_offsets", marks)
    monkeypatch.setattr(lane_module, "Consumer", Client)
    monkeypatch.setattr(lane_module, "_RESTART_S", 0.0)
    looks: list[int] = []

    join = gains("x", "y", records=[Trouble("x", 10)])

    Client.script = iter([join, lambda _: [], lambda _: [], lambda _: [Trouble("y", 0)]])
    x, y = FleetTopic("c", "1", "x", "s"), FleetTopic("c", "2", "y", "s")
    parts = LaneParts(
        positions=lambda _: {TopicPartition("x", 0): 10},
        before_revoked=lambda: None,
        look_again=lambda: looks.append(0),
    )
    lane = LaneConsumer(LANE, {}, parts)
    lane.subscribe({x: "x", y: "y"})
    client = cast("Client", lane._consumer)
    said = []
    for _ in range(4):
        lane.read(lambda *_: None, 10, 0.0)
        said.append((dict(client.held), " ".join(lane.problems.values())))
    assert "cannot be asked" in said[0][1]
    assert "the log ends at 2, before 10" in said[1][1]
    assert said[2][0]["x"] == 10
    assert not said[2][1]
    assert said[3][0]["y"] == 3, "of a partition without a position the first record there is"
    assert looks


def test_names_of_topics_that_left_are_not_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    """A lane lives for months, topics may not."""
    Client.script = iter([])
    monkeypatch.setattr(lane_module, "Consumer", Client)
    lane = LaneConsumer(
        LANE, {}, LaneParts(positions=lambda _: {}, before_revoked=lambda: None, look_again=lambda: None)
    )
    for number in range(5):
        lane.subscribe({FleetTopic("c", str(number), f"t{number}", "s"): f"t{number}"})
        cast("Client", lane._consumer).gain(f"t{number}")
    assert set(lane._positions_held._topics) == {"t4"}
    assert set(lane._positions_held._stands) == {TopicPartition("t4", 0)}
