"""A lane whose partitions are given by seats, with the real client on a cluster inside the process."""

from collections.abc import Iterator
from dataclasses import replace

import pytest
from confluent_kafka import Consumer, Producer
from confluent_kafka import TopicPartition as KafkaPartition

from assignors.fleet import FleetTopic, Lane
from producer.testing import MockCluster
from spark_sink.fleet.group_offset_commits import OffsetHints
from spark_sink.fleet.lane_consumer import LaneConsumer, LaneParts
from spark_sink.ranges.batch_offset import TopicPartition
from tests.waiting import wait_until

TOPIC = FleetTopic("c", "1", "x", "s", 4)
RECORDS = 5


@pytest.fixture
def mock() -> Iterator[MockCluster]:
    """A topic of four partitions with some records each."""
    with MockCluster(racks=("az-a",)) as made:
        made.create("x", [1, 1, 1, 1])
        producer = Producer({"bootstrap.servers": made.bootstrap_servers, "log_level": 0})
        for partition in range(4):
            for _ in range(RECORDS):
                producer.produce("x", b"v", partition=partition)
        assert producer.flush(30) == 0
        yield made


def _partitions(consumer: Consumer) -> set[int]:
    return {one.partition for one in consumer.assignment()}


def test_a_seated_lane_reads_its_share_and_writes_what_it_gives_up(mock: MockCluster) -> None:
    """No rebalance: partitions that stay are read on, those that leave are written while they are still held."""
    held_at_flush: list[set[int]] = []
    seen: list[tuple[int, int]] = []
    parts = LaneParts(
        positions=lambda _: {TopicPartition("x", 2): 3},
        before_revoked=lambda: held_at_flush.append(_partitions(lane._consumer)),
        look_again=lambda: None,
    )
    lane = LaneConsumer(
        Lane("s", 0, seated=True), {"bootstrap.servers": mock.bootstrap_servers, "group.id": "g.lane-0"}, parts
    )

    def read(count: int) -> bool:
        lane.read(lambda _, message: seen.append((message.partition(), message.offset())), 100, 0.05)
        return len(seen) >= count

    lane.subscribe({replace(TOPIC, share=(0, 1)): "x"})
    assert _partitions(lane._consumer) == {0, 1}
    assert not held_at_flush
    wait_until(lambda: read(2 * RECORDS))
    ranges, _ = lane.hand_over()
    lane.settle({one.key: one.end for one in ranges}, {})
    lane.subscribe({replace(TOPIC, share=(1, 2)): "x"})
    assert held_at_flush == [{0, 1}]
    assert _partitions(lane._consumer) == {1, 2}
    assert lane._positions_held.partitions() == {"x": [1, 2]}
    wait_until(lambda: read(2 * RECORDS + 2))
    assert sorted(seen[2 * RECORDS :]) == [(2, 3), (2, 4)], "the table's position, and nothing of partition 1 again"
    committed = Consumer({"bootstrap.servers": mock.bootstrap_servers, "group.id": "g.lane-0", "log_level": 0})
    wait_until(lambda: [one.offset for one in committed.committed([KafkaPartition("x", 0)])] == [RECORDS])
    committed.close()
    lane.subscribe({})
    assert not _partitions(lane._consumer)
    lane.close()


def test_offsets_of_idle_partitions_are_committed_again(monkeypatch: pytest.MonkeyPatch) -> None:
    """A group without members loses an offset a week after its last commit: lag tools would report the whole log."""
    now, commits = [0.0], list[dict[TopicPartition, int]]()
    monkeypatch.setattr(OffsetHints, "commit", lambda _, offsets: commits.append(offsets))
    consumer, positions = object(), {TopicPartition("x", 0): 5}
    seated = OffsetHints(consumer, seated=True, clock=lambda: now[0])  # type: ignore[arg-type]  # no call reaches it
    member = OffsetHints(consumer, seated=False, clock=lambda: now[0])  # type: ignore[arg-type]  # no call reaches it
    for at in (1.0, 3599.0, 3600.0, 3601.0, 7201.0):
        now[0] = at
        seated.renew(positions)
        member.renew(positions)
    assert commits == [positions, positions]
