"""Leaders and first offsets are requested before partitions are assigned, on a cluster inside the process."""

import logging
from collections.abc import Iterator

import pytest
from confluent_kafka import OFFSET_BEGINNING, Consumer, Producer
from confluent_kafka import TopicPartition as KafkaPartition

from assignors.fleet import FleetTopic, Lane
from producer.testing import MockCluster
from spark_sink.fleet.first_offsets import located
from spark_sink.fleet.lane_consumer import LaneConsumer, LaneParts
from tests.waiting import wait_until


class Lines(logging.Handler):
    """Keeps the text of each line."""

    def __init__(self) -> None:
        super().__init__()
        self.texts: list[str] = []

    def emit(self, record: logging.LogRecord) -> None:
        """Keep it."""
        self.texts.append(record.getMessage())


@pytest.fixture
def mock() -> Iterator[MockCluster]:
    """A topic of three partitions with five records each, on three brokers."""
    with MockCluster() as made:
        made.create("x", [1, 2, 3])
        producer = Producer({"bootstrap.servers": made.bootstrap_servers, "log_level": 0})
        for number in range(15):
            producer.produce("x", b"v", partition=number % 3)
        assert producer.flush(30) == 0
        yield made


def _client(servers: str) -> Consumer:
    return Consumer({"bootstrap.servers": servers, "group.id": "g", "log_level": 0})


def _offsets(partitions: list[KafkaPartition]) -> list[tuple[str, int, int]]:
    return [(one.topic, one.partition, one.offset) for one in partitions]


def test_only_unknown_offsets_are_replaced(mock: MockCluster) -> None:
    """A position of the table stays, and so does a partition that does not exist (yet)."""
    client = _client(mock.bootstrap_servers)
    client.list_topics(timeout=30)  # connected, so that half a second is enough on a busy machine
    wanted = [KafkaPartition("x", 0, OFFSET_BEGINNING), KafkaPartition("x", 1, 3), KafkaPartition("x", 2, 0)]
    wait_until(lambda: _offsets(located(client, wanted)) == [("x", 0, 0), ("x", 1, 3), ("x", 2, 0)])
    absent = [KafkaPartition("no", 0, OFFSET_BEGINNING), KafkaPartition("no", 1, 2)]
    assert _offsets(located(client, absent)) == _offsets(absent)
    client.close()


def test_without_an_answer_nothing_changes() -> None:
    """The client finds leaders and offsets by itself when brokers are back."""
    client = _client("127.0.0.1:1")
    wanted = [KafkaPartition("x", 0, OFFSET_BEGINNING), KafkaPartition("x", 1, 3)]
    assert _offsets(located(client, wanted)) == _offsets(wanted)
    client.close()


def test_a_seated_lane_knows_the_leaders_when_it_begins(mock: MockCluster) -> None:
    """Otherwise librdkafka looks for them up to a second later, and for the first offsets half a second after that."""
    lines = Lines()
    logger = logging.getLogger("tests.first_offsets")
    logger.addHandler(lines)
    logger.setLevel(logging.DEBUG)
    logger.propagate = False
    config = {"bootstrap.servers": mock.bootstrap_servers, "group.id": "g", "debug": "topic,fetch", "log_level": 7}
    parts = LaneParts(positions=lambda _: {}, before_revoked=lambda: None, look_again=lambda: None)
    lane = LaneConsumer(Lane("s", 0, seated=True), {**config, "logger": logger}, parts)
    lane._consumer.list_topics("y", timeout=30)  # connected, without the topic's leaders
    seen: list[int] = []

    def read() -> bool:
        lane.read(lambda _, message: seen.append(message.partition()), 100, 0.05)
        return len(seen) == 15

    lane.subscribe({FleetTopic("c", "1", "x", "s", 3, share=(0, 1, 2)): "x"})
    wait_until(read)
    lane.close()
    assert any("Start fetch for x" in text for text in lines.texts)
    assert not [text for text in lines.texts if "no current leader for partition" in text]
