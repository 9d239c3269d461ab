"""GroupConsumer, confluent-kafka's consumer and kafka-python's: 336,776 records in 672 partitions, interleaved.

Seconds count from the assignment (of all partitions, to one consumer) to the last record. The peers are assigned
manually, so they join no group; the report has the time of GroupConsumer's join separately. Its librdkafka is created
before the join and may be connected by then; the peers connect within their seconds, so add the join for the strictest
ratio.
"""

import statistics
import time
import uuid
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from confluent_kafka import OFFSET_BEGINNING, Consumer, Producer, TopicPartition
from confluent_kafka.admin import AdminClient
from confluent_kafka.cimpl import NewTopic
from kafka import KafkaConsumer
from kafka import TopicPartition as KafkaPartition

from assignors import GroupConsumer, HRWAssignor
from assignors.consumer.split_configuration import FETCHING
from spark_sink.demo.cluster import Cluster
from spark_sink.demo.flights import load_flights
from tests.benchmarks.assignors_report import save

pytestmark = [pytest.mark.benchmark, pytest.mark.filterwarnings("ignore::ResourceWarning")]
RUNS = 3
PARTITIONS = 3
AT_ONCE = 10_000
Topics = tuple[str, list[str], int]
Read = Callable[[str, Topics], dict[str, float]]


@pytest.fixture(scope="module")
def topics(cluster: Cluster) -> Iterator[Topics]:
    """Every flight of a year, in 224 topics of three partitions: servers, names, records."""
    prefix = f"consumer-{uuid.uuid4().hex[:6]}"
    rows = load_flights()
    routes = [f"{prefix}.{route}" for route in rows["topic"].unique().to_pylist()]
    admin = AdminClient({"bootstrap.servers": cluster.bootstrap_servers})
    for made in admin.create_topics([NewTopic(name, PARTITIONS, 1) for name in routes]).values():
        made.result(120)
    limits = {"queue.buffering.max.messages": 1_000_000, "queue.buffering.max.kbytes": 1_000_000}
    producer = Producer({"bootstrap.servers": cluster.bootstrap_servers, "linger.ms": 100, **limits})
    for topic, key, value in zip(*(rows[column].to_pylist() for column in ("topic", "key", "value")), strict=True):
        producer.produce(f"{prefix}.{topic}", value, key)
    assert producer.flush(300) == 0
    yield cluster.bootstrap_servers, routes, rows.num_rows
    for gone in admin.delete_topics(routes).values():
        gone.result(120)


def drain(consume: Callable[[], int], records: int) -> float:
    """Read all records, and return the time of the last one."""
    count = 0
    while count < records:
        count += consume()
    assert count == records
    return time.perf_counter()


def ours(group: str, topics: Topics) -> dict[str, float]:
    """GroupConsumer."""
    servers, names, records = topics
    assigned_at: list[float] = []
    config = {"bootstrap.servers": servers, "group.id": group, "auto.offset.reset": "earliest"}
    begun = time.perf_counter()
    with GroupConsumer(config, assignors=[HRWAssignor(agent="a")]) as consumer:
        consumer.subscribe(names, on_assign=lambda *_: assigned_at.append(time.perf_counter()))
        end = drain(lambda: len(consumer.consume(AT_ONCE, 1.0)), records)
    return {"seconds": end - assigned_at[0], "joining": assigned_at[0] - begun}


def plain(**more: object) -> Read:
    """confluent-kafka's consumer."""

    def read(group: str, topics: Topics) -> dict[str, float]:
        servers, names, records = topics
        consumer = Consumer({"bootstrap.servers": servers, "group.id": group, "enable.auto.commit": False, **more})
        begun = time.perf_counter()
        consumer.assign([TopicPartition(name, n, OFFSET_BEGINNING) for name in names for n in range(PARTITIONS)])
        end = drain(lambda: len(consumer.consume(AT_ONCE, 1.0)), records)
        consumer.close()
        return {"seconds": end - begun}

    return read


def kafka_python(group: str, topics: Topics) -> dict[str, float]:
    """kafka-python's consumer."""
    servers, names, records = topics
    consumer: Any = KafkaConsumer(bootstrap_servers=servers.split(","), group_id=group, enable_auto_commit=False)
    begun = time.perf_counter()
    consumer.assign([KafkaPartition(name, n) for name in names for n in range(PARTITIONS)])
    consumer.seek_to_beginning()
    end = drain(lambda: sum(map(len, consumer.poll(1000, max_records=AT_ONCE).values())), records)
    consumer.close()
    return {"seconds": end - begun}


def test_rate_beside_the_clients_it_is_made_of(topics: Topics) -> None:
    """Medians of interleaved runs; ratios above 1 mean that GroupConsumer is faster."""
    readers: dict[str, Read] = {
        "GroupConsumer": ours,
        "confluent-kafka, same settings": plain(**FETCHING),
        "confluent-kafka, defaults": plain(),
        "kafka-python": kafka_python,
    }
    found: dict[str, list[dict[str, float]]] = {name: [] for name in readers}
    for run in range(RUNS):
        for name, reader in readers.items():
            found[name].append(reader(f"bench-{uuid.uuid4().hex[:8]}-{run}", topics))
    seconds = {name: statistics.median(one["seconds"] for one in runs) for name, runs in found.items()}
    save(
        "group consumer: 224 topics x 3 partitions",
        {
            "records": topics[2],
            "runs": RUNS,
            "seconds": seconds,
            "all seconds": {name: [round(one["seconds"], 2) for one in runs] for name, runs in found.items()},
            "records per second": {name: round(topics[2] / one) for name, one in seconds.items()},
            "times the rate of": {name: one / seconds["GroupConsumer"] for name, one in seconds.items()},
            "joining, seconds": statistics.median(one["joining"] for one in found["GroupConsumer"]),
        },
    )
