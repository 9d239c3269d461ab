"""Brokers that keep their connections and answer nothing, on librdkafka's mock cluster."""

from collections.abc import Iterator

import pytest
from confluent_kafka.admin import AdminClient

from assignors.clients.silent_brokers import any_broker_answers, leaving_silent_brokers, list_cluster
from producer.testing import MockCluster
from tests.silent_broker import SILENT_MS, silence_used_broker

pytestmark = pytest.mark.long


@pytest.fixture
def cluster() -> Iterator[MockCluster]:
    """Three brokers."""
    with MockCluster() as made:
        made.create("t", [1, 2, 3])
        yield made


def test_a_silent_broker_is_left_for_another_one(cluster: MockCluster) -> None:
    """Librdkafka's default is a minute, in which two of three brokers count for nothing."""
    admin = AdminClient({**leaving_silent_brokers({"bootstrap.servers": cluster.bootstrap_servers}), "log_level": 0})
    silence_used_broker(cluster, admin)
    assert list_cluster(admin, 5.0).topics.keys() == {"t"}


def test_the_users_own_time_stays() -> None:
    """It may be long on purpose, for a slow line."""
    assert leaving_silent_brokers({"socket.timeout.ms": 30_000}) == {"socket.timeout.ms": 30_000}


def test_a_cluster_answers_while_one_of_its_brokers_does(cluster: MockCluster) -> None:
    """A probe has two seconds, less than it takes a client to leave a broker; an agent without an answer stops."""
    kafka = {"bootstrap.servers": cluster.bootstrap_servers}
    admin = AdminClient({**kafka, "log_level": 0})
    silence_used_broker(cluster, admin)
    brokers = cluster.bootstrap_servers.split(",")
    assert any_broker_answers(admin, kafka, brokers, 10.0)
    for broker in (1, 2, 3):
        cluster.delay(broker, SILENT_MS)
    assert not any_broker_answers(admin, kafka, brokers, 1.0)
