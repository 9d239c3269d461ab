"""Changes of a lane's topics, and changes of which a part fails."""

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

import pytest
from confluent_kafka import KafkaError, KafkaException
from confluent_kafka import TopicPartition as KafkaPartition

from assignors.fleet import FleetTopic, Lane
from spark_sink.fleet import lane_consumer as lane_module
from spark_sink.fleet.lane_consumer import LaneConsumer, LaneParts
from tests.unit.spark_sink.fleet.scripted import Record, some

X, Y = (FleetTopic("c", name, name, "s") for name in "xy")
Held = set[tuple[str, int]]


class Client:
    """A client whose assignments fail when a test wants it."""

    def __init__(self, _config: Mapping[str, Any]) -> None:
        self.held: Held = set()
        self.records: list[Record] = []
        self.committed: dict[tuple[str, int], int] = {}
        self.calls: dict[str, Callable[..., None]] = {}
        self.fails = 0

    def subscribe(self, _topics: list[str], **calls: Callable[..., None]) -> None:
        """Keep the callbacks."""
        self.calls = calls

    def consume(self, _most: int, _wait_s: float) -> list[Record]:
        """The records of the partitions that are held."""
        found, self.records = self.records, []
        return [one for one in found if (one.topic(), one.partition()) in self.held]

    def incremental_assign(self, partitions: list[KafkaPartition]) -> None:
        """Assign, or fail."""
        if self.fails:
            self.fails -= 1
            raise KafkaException(KafkaError(KafkaError._STATE))
        self.held |= {(one.topic, one.partition) for one in partitions}

    def incremental_unassign(self, partitions: list[KafkaPartition]) -> None:
        """Drop."""
        self.held -= {(one.topic, one.partition) for one in partitions}

    def assignment(self) -> list[KafkaPartition]:
        """Return the assignment."""
        return [KafkaPartition(*key) for key in self.held]

    def get_watermark_offsets(self, _partition: KafkaPartition, *, cached: bool) -> tuple[int, int]:
        """Unheard of."""
        assert cached
        return -1001, -1001

    def offsets_for_times(self, _times: list[KafkaPartition], _timeout_s: float) -> list[KafkaPartition]:
        """No broker answers."""
        raise KafkaException(KafkaError(KafkaError._TIMED_OUT))

    def commit(self, offsets: list[KafkaPartition], **_: object) -> None:
        """Keep."""
        self.committed |= {(one.topic, one.partition): one.offset for one in offsets}


class World:
    """A lane, its client and its table."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, *, seated: bool) -> None:
        monkeypatch.setattr(lane_module, "Consumer", Client)
        monkeypatch.setattr(lane_module, "_CORRECT_S", 0.0)
        self.table: dict[Any, int] = {}
        parts = LaneParts(positions=lambda _: self.table, before_revoked=self.flush, look_again=lambda: None)
        self.lane = LaneConsumer(Lane("s", 0, seated), {}, parts)
        self.client: Client = self.lane._consumer  # type: ignore[assignment]  # as set above
        self.seated = seated

    def flush(self) -> None:
        """Write what was read."""
        ranges, _ = self.lane.hand_over()
        self.table |= {one.key: one.end for one in ranges}
        self.lane.settle({one.key: one.end for one in ranges}, {})

    def follow(self, *topics: FleetTopic) -> None:
        """Read these topics; the group gives all of them."""
        self.lane.subscribe({replace(one, share=(0,)) if self.seated else one: one.name for one in topics})
        if not self.seated:
            names = {(one.name, 0) for one in topics}
            gone, new = self.client.held - names, names - self.client.held
            self.client.calls["on_revoke"](self.client, [KafkaPartition(*key) for key in gone])
            self.client.calls["on_assign"](self.client, [KafkaPartition(*key) for key in new])

    def read(self, *records: Record) -> int:
        """One round."""
        self.client.records = list(records)
        return self.lane.read(lambda *_: None, 100, 0.0)


@pytest.fixture(params=[True, False], ids=["seats", "group"])
def world(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> World:
    """A lane of each kind."""
    return World(monkeypatch, seated=request.param)


def test_the_last_offsets_of_a_topic_that_leaves_are_committed(world: World) -> None:
    """Lag tools and the autoscaler read the group: without them a topic that moved seems to be behind."""
    world.follow(X, Y)
    assert world.read(*some("x", 0, 3), *some("y", 0, 2)) == 5
    world.follow(Y)
    assert world.client.committed == {("x", 0): 3, ("y", 0): 2}
    assert world.client.held == {("y", 0)}
    assert world.read(*some("y", 2, 3), *some("x", 3, 5)) == 1


def test_a_change_of_which_a_part_failed_is_completed(world: World) -> None:
    """The client had given the partitions up and could not take them again: nothing would read them any more."""
    world.follow(X, Y)
    assert world.read(*some("x", 0, 3)) == 3
    world.flush()
    world.client.fails = 1
    world.lane.rewind()
    assert not world.client.held
    with pytest.raises(KafkaException):
        world.read()
    world.lane.rewind()
    world.read()
    assert world.client.held == {("x", 0), ("y", 0)}
    assert world.read(*some("x", 3, 5), *some("y", 0, 1)) == 3, "from the table's position on"


def test_a_partition_that_should_not_be_held_is_given_up_with_its_records_written(world: World) -> None:
    """Another agent reads it; what was read of it is not lost, and the table takes each record once."""
    world.follow(X)
    world.client.held.add(("y", 0))
    assert world.read(*some("x", 0, 2)) == 2
    world.client.held.add(("y", 0))
    world.read()
    assert world.client.held == {("x", 0)}
    assert world.client.committed == {("x", 0): 2}


def test_a_topic_that_left_and_returned_is_read_from_the_tables_position(world: World) -> None:
    """Also if the group did not revoke it in between: no record in between was taken."""
    world.follow(X, Y)
    assert world.read(*some("x", 0, 3)) == 3
    labels = [
        {replace(one, share=(0,)) if world.seated else one: one.name for one in topics} for topics in ([Y], [X, Y])
    ]
    world.lane.subscribe(labels[0])
    world.lane.subscribe(labels[1])
    assert world.read(*some("x", 2, 5)) == 2
    ranges, _ = world.lane.hand_over()
    assert [(one.topic, one.begin, one.end) for one in ranges] == [("x", 3, 5)]
