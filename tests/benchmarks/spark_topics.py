"""Topics for the benchmarks of the Spark source and sink: the flights of a year, once or ten times."""

import uuid
from collections.abc import Iterable, Mapping

from confluent_kafka import Producer
from confluent_kafka.admin import AdminClient
from confluent_kafka.cimpl import NewTopic

from spark_sink.demo.cluster import Cluster
from spark_sink.demo.flights import load_flights

Records = list[tuple[str, bytes | None, bytes]]


def flights() -> Records:
    """Topic, key, value."""
    return [(row["topic"], row["key"], row["value"]) for row in load_flights().to_pylist()]


def make(cluster: Cluster, topics: Mapping[str, int]) -> Producer:
    """Create topics with these numbers of partitions, and return a producer for them."""
    admin = AdminClient({"bootstrap.servers": cluster.bootstrap_servers})
    for done in admin.create_topics([NewTopic(name, count, 1) for name, count in topics.items()]).values():
        done.result(120)
    limits = {"queue.buffering.max.messages": 1_000_000, "queue.buffering.max.kbytes": 1_000_000}
    return Producer(
        {"bootstrap.servers": cluster.bootstrap_servers, "linger.ms": 50, "batch.size": 1_000_000, **limits}
    )


def one_large_topic(cluster: Cluster, records: Records, times: int, partitions: int = 6) -> str:
    """Create a topic with the flights `times` times, distributed over partitions, and return its name."""
    name = f"large-{uuid.uuid4().hex[:6]}"
    producer = make(cluster, {name: partitions})
    for _ in range(times):
        for number, (_, key, value) in enumerate(records):
            send(producer, name, value, key, number % partitions)
    producer.flush()
    return name


def send(producer: Producer, topic: str, value: bytes, key: bytes | None, partition: int) -> None:
    """Produce one record; wait if the queue is full."""
    while True:
        try:
            producer.produce(topic, value, key, partition=partition)
        except BufferError:
            producer.poll(0.1)
        else:
            return


def delete(cluster: Cluster, topics: Iterable[str]) -> None:
    """Delete topics to free the disk."""
    admin = AdminClient({"bootstrap.servers": cluster.bootstrap_servers})
    for done in admin.delete_topics(list(topics)).values():
        done.result(60)
