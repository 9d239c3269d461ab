"""Readers of running queries take up the numbers that the autoscaler publishes."""

import uuid
from collections.abc import Iterator

import pytest
from confluent_kafka.admin import AdminClient

from assignors.scaling import ScaledTopic, WorkersRecord
from assignors.scaling.workers_topic_client import WorkersPublisher
from spark_sink.demo.cluster import Cluster
from spark_sink.options.source_options import SourceOptions
from spark_sink.source.group_membership import KafkaMembership
from tests.integration.spark_sink.fleet.fleet_process import delete_topics, make_topics, wait_until

pytestmark = [pytest.mark.integration, pytest.mark.slow]
READERS, PARTITIONS = 3, 6


@pytest.fixture
def topic(cluster: Cluster) -> Iterator[str]:
    """A topic that all could share."""
    name = f"followed-{uuid.uuid4().hex[:8]}"
    make_topics(cluster.bootstrap_servers, [name], partitions=PARTITIONS)
    yield name
    delete_topics(cluster.bootstrap_servers, [name, f"{name}.workers"])


def test_running_readers_take_up_a_new_number_and_its_end(cluster: Cluster, topic: str) -> None:
    """One reader as configured, three as published, one again when that is withdrawn; no process restarts."""
    options = {
        "kafka.bootstrap.servers": cluster.bootstrap_servers,
        "kafka.group.id": topic,
        "kafka.session.timeout.ms": "10000",
        "subscribe": topic,
        "workers": "1",
        "workersTopic": f"{topic}.workers",
    }
    readers = [KafkaMembership(SourceOptions.parse({**options, "agent": f"agent-{n}"})) for n in range(READERS)]
    admin = AdminClient({"bootstrap.servers": cluster.bootstrap_servers})
    name = ScaledTopic(admin.list_topics(timeout=10).cluster_id or "", topic, topic)

    def shares() -> list[int]:
        return sorted(len(reader.assignment(20).partitions) for reader in readers)

    try:
        wait_until(lambda: shares() == [0, 0, PARTITIONS], 60, "one reader has all")
        publisher = WorkersPublisher({"bootstrap.servers": cluster.bootstrap_servers}, f"{topic}.workers")
        publisher.publish(name, WorkersRecord(workers=READERS, at_ms=1))
        wait_until(lambda: shares() == [PARTITIONS // READERS] * READERS, 60, "all readers have a share")
        publisher.publish(name, None)
        wait_until(lambda: shares() == [0, 0, PARTITIONS], 60, "one reader has all again")
    finally:
        for reader in readers:
            reader.leave()
