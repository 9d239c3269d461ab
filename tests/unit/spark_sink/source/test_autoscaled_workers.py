"""Workers of a query that follow the autoscaler's topic."""

import time
from collections.abc import Callable, Iterator

import pytest
from confluent_kafka import Producer

from assignors.planner.worker_caps import Workers
from assignors.scaling import ScaledTopic, WorkersRecord
from assignors.scaling.workers_records import encode, encode_key
from producer.testing import MockCluster
from spark_sink.source.autoscaled_workers import FollowedWorkers, above

NUMBERS = "numbers"
Publish = Callable[[ScaledTopic, int | None], None]


@pytest.mark.parametrize(
    ("configured", "published", "expected"),
    [
        (None, {}, None),
        (2, {}, 2),
        ({"a": 1}, {}, {"a": 1}),
        (None, {"a": 3}, {"a": 3}),
        (2, {"a": 3}, {"a": 3, "*": 2}),
        ({"a": 1, "b.*": 2}, {"a": 3, "b1": 4}, {"a": 1, "b1": 4, "b.*": 2}),
    ],
)
def test_a_published_number_wins_but_over_a_topics_own_name(
    configured: Workers, published: dict[str, int], expected: Workers
) -> None:
    """A number for a topic's name is final; a pattern, or a number for all, applies until the topic is scaled."""
    assert above(configured, published) == expected


@pytest.fixture
def mock() -> Iterator[MockCluster]:
    """A cluster with a workers topic."""
    with MockCluster() as made:
        yield made


@pytest.fixture
def publish(mock: MockCluster) -> Publish:
    """Writes numbers."""
    producer = Producer({"bootstrap.servers": mock.bootstrap_servers, "log_level": 0})

    def write(name: ScaledTopic, workers: int | None) -> None:
        value = None if workers is None else encode(WorkersRecord(workers=workers, at_ms=1))
        producer.produce(NUMBERS, key=encode_key(name), value=value)
        assert producer.flush(10) == 0

    return write


def test_numbers_of_its_own_group_and_cluster_are_followed(mock: MockCluster, publish: Publish) -> None:
    """Before the workers topic exists, and after a number was withdrawn, the configuration applies."""
    followed = FollowedWorkers({"bootstrap.servers": mock.bootstrap_servers, "log_level": "0"}, NUMBERS, "g", 1)
    assert followed() == 1
    mock.create(NUMBERS, [1])
    cluster = followed._feed.cluster
    mine = ScaledTopic(cluster, "g", "flights")
    for name in (mine, mine._replace(group="other", topic="trains"), mine._replace(cluster="far", topic="ships")):
        publish(name, 3)
    assert followed() == {"flights": 3, "*": 1}
    for number, expected in ((5, {"flights": 5, "*": 1}), (None, 1)):
        publish(mine, number)
        until = time.monotonic() + 20
        while (seen := followed()) != expected and time.monotonic() < until:
            time.sleep(0.01)
        assert seen == expected
