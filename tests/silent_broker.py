"""Silences the broker of a mock cluster from which a client gets its metadata."""

import itertools

from confluent_kafka import Consumer, KafkaException
from confluent_kafka.admin import AdminClient

from producer.testing import MockCluster

SILENT_MS = 600_000


def silence_used_broker(cluster: MockCluster, client: AdminClient | Consumer) -> None:
    """Let the broker keep its connections and answer nothing from now on."""
    for _ in range(3):
        client.list_topics(timeout=10)
    # A client with a connection to each broker asks any of them.
    for broker in itertools.islice(itertools.cycle(cluster.racks), 20 * len(cluster.racks)):
        cluster.delay(broker, SILENT_MS)
        try:
            client.list_topics(timeout=1.0)
        except KafkaException:
            return
        cluster.delay(broker, 0)
    raise AssertionError("no broker is the one that the client uses")
