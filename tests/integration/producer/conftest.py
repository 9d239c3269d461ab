"""Topics on the shared three-zone cluster."""

import uuid
from collections.abc import Callable, Iterator

import pytest
from confluent_kafka.admin import AdminClient

from spark_sink.demo.cluster import Cluster
from spark_sink.demo.topics import create_topics

MakeTopic = Callable[[int, int], str]


@pytest.fixture
def admin(cluster: Cluster) -> AdminClient:
    """An admin client of the cluster."""
    return AdminClient({"bootstrap.servers": cluster.bootstrap_servers, "log_level": 0})


@pytest.fixture
def make_topic(cluster: Cluster, admin: AdminClient) -> Iterator[MakeTopic]:
    """Make topics (partitions, replication factor) that have leaders, and remove them at the end."""
    made: list[str] = []

    def make(partitions: int, replication: int) -> str:
        cluster.wait_until_up(60)  # a broker that is fenced for a moment would get no partition
        name = f"producer.{uuid.uuid4().hex[:12]}"
        # Known to every broker when this returns: a producer that asks a late one begins away from home, and
        # stays away for as long as a returned leader has to hold.
        create_topics(cluster.bootstrap_servers, [name], partitions=partitions, replicas=replication, config={})
        made.append(name)
        return name

    yield make
    for future in admin.delete_topics(made).values() if made else ():
        future.result(30)


def leaders(admin: AdminClient, topic: str) -> list[int]:
    """Leader per partition as the cluster says now; -1 without one."""
    found = admin.list_topics(topic, timeout=10).topics[topic].partitions
    return [found[number].leader for number in sorted(found)]
