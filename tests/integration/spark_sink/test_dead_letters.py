"""Quarantined records on a Kafka topic: each once, although publishers are killed."""

import subprocess
import sys
from functools import partial
from pathlib import Path

import pyarrow as pa
import pytest
from confluent_kafka import OFFSET_BEGINNING, Consumer
from confluent_kafka import TopicPartition as KafkaPartition
from deltalake import write_deltalake

from spark_sink.demo.cluster import Cluster
from spark_sink.errors import DeadLetterError
from spark_sink.formats.quarantined_rows import SCHEMA, quarantine_of
from spark_sink.sink.dead_letters import Publisher
from tests.integration.spark_sink.conftest import MakeTopic
from tests.waiting import wait_until

pytestmark = pytest.mark.integration

RECORDS, PARTITIONS = 30_000, 3
_PUBLISH = """
import sys
from spark_sink.sink import dead_letters

dead_letters._PART = 2_000
servers, topic, table = sys.argv[1:]
print(dead_letters.Publisher({"bootstrap.servers": servers}, topic).publish(table, "g"))
"""

Place = tuple[str, int, int]


def add(table: str, begin: int, end: int) -> None:
    """Add records to the quarantine of a table."""
    rows = [
        {"topic": "t", "partition": n % PARTITIONS, "offset": n, "value": b"%d" % n, "error_class": "Bad"}
        for n in range(begin, end)
    ]
    write_deltalake(quarantine_of(table), pa.Table.from_pylist(rows, schema=SCHEMA), mode="append")


def committed(cluster: Cluster, topic: str) -> list[Place]:
    """The sources of the dead letters that a consumer sees with `isolation.level=read_committed`."""
    reader = Consumer({"bootstrap.servers": cluster.bootstrap_servers, "group.id": topic, "enable.partition.eof": True})
    reader.assign([KafkaPartition(topic, 0, OFFSET_BEGINNING)])
    found: list[Place] = []
    try:
        while (message := reader.poll(60)) is not None and message.error() is None:
            named = dict(message.headers() or [])
            assert message.value() == named["__connect.errors.offset"]
            texts = [named[f"__connect.errors.{one}"] for one in ("topic", "partition", "offset")]
            source, partition, offset = (one.decode() for one in texts if isinstance(one, bytes))
            found.append((source, int(partition), int(offset)))
    finally:
        reader.close()
    return found


def _went_on(cluster: Cluster, topic: str, before: int, process: "subprocess.Popen[bytes]") -> bool:
    return len(committed(cluster, topic)) > before or process.poll() == 0


def test_each_record_is_published_once_although_publishers_are_killed(
    cluster: Cluster, topic: MakeTopic, tmp_path: Path
) -> None:
    """SIGKILL between and within transactions: the next one continues."""
    letters, table = topic("letters"), str(tmp_path / "t")
    add(table, 0, RECORDS)
    for kill in range(3):
        before = len(committed(cluster, letters))
        command = [sys.executable, "-c", _PUBLISH, cluster.bootstrap_servers, letters, table]
        with subprocess.Popen(command) as process:
            try:
                wait_until(partial(_went_on, cluster, letters, before, process), what=f"records before kill {kill}")
            finally:
                process.kill()
    add(table, RECORDS, RECORDS + 10)
    publisher = Publisher({"bootstrap.servers": cluster.bootstrap_servers}, letters)
    assert publisher.publish(table, "g") >= 10
    found = committed(cluster, letters)
    assert len(found) == RECORDS + 10
    assert set(found) == {("t", n % PARTITIONS, n) for n in range(RECORDS + 10)}
    assert publisher.publish(table, "g") == 0


def test_a_topic_that_is_missing_is_one_sentence(cluster: Cluster, tmp_path: Path) -> None:
    """A mistyped name must not make a topic that no person reads."""
    add(str(tmp_path / "t"), 0, 1)
    publisher = Publisher({"bootstrap.servers": cluster.bootstrap_servers}, "no-such-topic")
    with pytest.raises(DeadLetterError, match="there is no topic 'no-such-topic'"):
        publisher.publish(str(tmp_path / "t"), "g")
