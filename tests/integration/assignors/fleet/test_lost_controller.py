"""Requests for the controller while the broker that a client takes for it is away."""

import time

import pytest
from confluent_kafka import KafkaException
from confluent_kafka.admin import AdminClient

from assignors.clients.silent_brokers import admin_properties
from spark_sink.demo.cluster import Cluster

pytestmark = pytest.mark.integration


@pytest.mark.slow
def test_a_wait_for_a_lost_controller_takes_no_core(cluster: Cluster) -> None:
    """All agents of a fleet ask for topics in rounds, also while the controller is away: each would take a core."""
    admin = AdminClient({**admin_properties({"bootstrap.servers": cluster.bootstrap_servers}), "log_level": 0})
    admin.describe_cluster(request_timeout=10).result(10)
    lost = admin.list_topics(timeout=10).controller_id
    cluster.kill(lost)
    try:
        used = next((share for share in (_wait(admin) for _ in range(40)) if share is not None), 0.0)
    finally:
        cluster.start(lost)
    assert used < 0.5


def _wait(admin: AdminClient) -> float | None:
    """The share of a core that a request took until its time was out, or None for one that was answered."""
    began_s, used_s = time.monotonic(), time.process_time()
    try:
        admin.describe_cluster(request_timeout=3).result(10)
    except KafkaException:
        waited_s = time.monotonic() - began_s
        return (time.process_time() - used_s) / waited_s if waited_s > 2 else None
    return None
