"""The consumer of a lane with its properties, on librdkafka's mock cluster."""

import uuid
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from confluent_kafka import OFFSET_BEGINNING, Consumer, KafkaException, Producer, TopicPartition

from producer.testing import MockCluster
from spark_sink.fleet.lane_configuration import lane_config
from tests.waiting import wait_until


@pytest.fixture
def cluster() -> Iterator[MockCluster]:
    """Three brokers."""
    with MockCluster() as made:
        yield made


def value_read(consumer: Consumer) -> Callable[[bytes], bool]:
    """Return whether the next message is a record with this value."""

    def read(value: bytes) -> bool:
        message = consumer.poll(0.1)
        return message is not None and message.error() is None and message.value() == value

    return read


@pytest.mark.parametrize(
    "given",
    [
        {},
        {"message.max.bytes": "20000000"},
        {"message.max.bytes": 10_485_760, "receive.message.max.bytes": 20_000_000},
        {"fetch.max.bytes": "30000000", "message.max.bytes": "20000000"},
        {"receive.message.max.bytes": "10000000"},
    ],
    ids=["none", "message", "message and response", "message and fetch", "response"],
)
def test_librdkafka_accepts_the_users_sizes_beside_ours(given: dict[str, Any]) -> None:
    """It refuses a fetch.max.bytes below message.max.bytes: an agent with larger records would read nothing."""
    Consumer(lane_config({"bootstrap.servers": "127.0.0.1:1", "group.id": "g", **given})).close()


def test_a_response_is_no_larger_than_the_queue_for_it() -> None:
    """The memory of an agent is divided by its lanes: each broker's response would be beyond the share of a lane."""
    common = {"bootstrap.servers": "127.0.0.1:1", "group.id": "g"}
    assert lane_config({**common, "queued.max.messages.kbytes": 2048})["fetch.max.bytes"] == str(2 << 20)
    Consumer(lane_config({**common, "queued.max.messages.kbytes": 1})).close()


def test_librdkafka_itself_names_a_size_that_is_no_number() -> None:
    """Ours would not know the user's spelling of the setting."""
    with pytest.raises(KafkaException, match=r"message\.max\.bytes"):
        Consumer(lane_config({"bootstrap.servers": "127.0.0.1:1", "group.id": "g", "message.max.bytes": "20 MB"}))


@pytest.mark.slow
def test_a_partition_is_read_from_its_new_leader_although_the_old_one_keeps_its_connection(
    cluster: MockCluster,
) -> None:
    """The client knows leaders from the broker that is silent now, and would ask it again for a minute."""
    topic = f"t{uuid.uuid4().hex[:8]}"
    cluster.create(topic, [1])
    first = cluster.bootstrap_servers.split(",")[0]
    consumer = Consumer(lane_config({"bootstrap.servers": first, "group.id": "g"}))
    try:
        consumer.assign([TopicPartition(topic, 0, OFFSET_BEGINNING)])
        read = value_read(consumer)
        send(cluster, topic, b"before")
        wait_until(lambda: read(b"before"), 30)
        cluster.delay(1, 600_000)
        cluster.lead(topic, [2])
        send(cluster, topic, b"after", brokers=1)
        wait_until(lambda: read(b"after"), 40, "a record of the new leader")
    finally:
        cluster.delay(1, 0)
        consumer.close()


def send(cluster: MockCluster, topic: str, value: bytes, brokers: int = 0) -> None:
    """Write a record by a client of the brokers from this position on."""
    servers = ",".join(cluster.bootstrap_servers.split(",")[brokers:])
    producer = Producer({"bootstrap.servers": servers, "log_level": 0})
    producer.produce(topic, value)
    assert producer.flush(30) == 0


@pytest.mark.parametrize(
    "given",
    [
        {"auto.offset.reset": "latest", "topic.auto.offset.reset": "latest"},
        {"topic.auto.offset.reset": "latest", "auto.offset.reset": "latest"},
        {"default.topic.config": {"auto.offset.reset": "latest", "enable.auto.commit": True}},
    ],
)
def test_no_name_of_a_required_property_overrides_it(given: dict[str, Any]) -> None:
    """A lane that goes to the end of a partition by itself would skip records."""
    config = lane_config({"bootstrap.servers": "127.0.0.1:1", "group.id": "g", **given})
    assert config["auto.offset.reset"] == "error"
    assert config["enable.auto.commit"] is False
    assert not {"topic.auto.offset.reset", "default.topic.config"} & config.keys()
