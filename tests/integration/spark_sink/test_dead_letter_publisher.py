"""Quarantined records on a Kafka topic: each once, although publishers are killed."""

import json
import random
import subprocess
import sys
from functools import partial
from pathlib import Path

import pyarrow as pa
import pytest
from confluent_kafka import OFFSET_BEGINNING, Consumer, Message
from confluent_kafka import TopicPartition as KafkaPartition
from deltalake import CommitProperties, Transaction, write_deltalake

from spark_sink.demo.cluster import Cluster
from spark_sink.errors import DeadLetterError
from spark_sink.formats.bad_values_quarantined import SCHEMA
from spark_sink.formats.quarantine_addresses import quarantine_of
from spark_sink.sink.quarantine.dead_letter_publisher import Publisher, Sent
from spark_sink.sink.quarantine.dead_letter_records import letter, wire_bytes
from tests.integration.spark_sink.conftest import MakeTopic
from tests.waiting import wait_until

pytestmark = [pytest.mark.integration, pytest.mark.long]

RECORDS, PARTITIONS = 30_000, 3
_PUBLISH = """
import sys
from spark_sink.sink.quarantine import dead_letter_publisher

dead_letter_publisher._PART = 2_000
servers, topic, table = sys.argv[1:]
print(dead_letter_publisher.Publisher({"bootstrap.servers": servers}, topic).publish(table, "g"))
"""

Place = tuple[str, int, int]


def add(table: str, begin: int, end: int) -> None:
    """Add records to the quarantine of a table."""
    rows = [
        {"topic": "t", "partition": n % PARTITIONS, "offset": n, "value": b"%d" % n, "error_class": "Bad"}
        for n in range(begin, end)
    ]
    write_deltalake(quarantine_of(table), pa.Table.from_pylist(rows, schema=SCHEMA), mode="append")


def messages(cluster: Cluster, topic: str) -> list[Message]:
    """The dead letters that a consumer sees with `isolation.level=read_committed`."""
    reader = Consumer({"bootstrap.servers": cluster.bootstrap_servers, "group.id": topic, "enable.partition.eof": True})
    reader.assign([KafkaPartition(topic, 0, OFFSET_BEGINNING)])
    found: list[Message] = []
    try:
        while (message := reader.poll(60)) is not None and message.error() is None:
            found.append(message)
    finally:
        reader.close()
    return found


def texts(message: Message) -> dict[str, str]:
    """The headers of a dead letter."""
    return {name: value.decode() for name, value in dict(message.headers() or []).items() if isinstance(value, bytes)}


def committed(cluster: Cluster, topic: str) -> list[Place]:
    """The sources of the dead letters."""
    found: list[Place] = []
    for message in messages(cluster, topic):
        named = {name.removeprefix("__connect.errors."): text for name, text in texts(message).items()}
        assert message.value() == named["offset"].encode()
        found.append((named["topic"], int(named["partition"]), int(named["offset"])))
    return found


def _went_on(cluster: Cluster, topic: str, before: int, process: "subprocess.Popen[bytes]") -> bool:
    return len(committed(cluster, topic)) > before or process.poll() == 0


@pytest.mark.slow
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
    assert publisher.publish(table, "g").records >= 10
    found = committed(cluster, letters)
    assert len(found) == RECORDS + 10
    assert set(found) == {("t", n % PARTITIONS, n) for n in range(RECORDS + 10)}
    assert publisher.publish(table, "g") == Sent(0)


def test_a_topic_that_is_missing_is_one_sentence(cluster: Cluster, tmp_path: Path) -> None:
    """A mistyped name must not make a topic that no person reads."""
    add(str(tmp_path / "t"), 0, 1)
    publisher = Publisher({"bootstrap.servers": cluster.bootstrap_servers}, "no-such-topic")
    with pytest.raises(DeadLetterError, match="there is no topic 'no-such-topic'"):
        publisher.publish(str(tmp_path / "t"), "g")


LIMIT = 20_000
BATCH_HEADER = 61  # bytes, of Kafka's record format of version 2


def filled(size: int) -> bytes:
    """A value that makes a dead letter of this size, in bytes with the header of its batch."""
    row = dict.fromkeys(SCHEMA.names) | {"topic": "t", "partition": 0, "offset": 1000, "error_class": "Bad"}
    frame = BATCH_HEADER + wire_bytes(letter({**row, "value": b"v" * (size - 400)}, "g"))
    return b"v" * (size - 400 + size - frame)


@pytest.mark.parametrize("codec", ["none", "gzip"])
def test_a_record_that_the_topic_does_not_take_is_a_stub_and_the_others_continue(
    cluster: Cluster, topic: MakeTopic, tmp_path: Path, codec: str
) -> None:
    """Such a record stopped the publisher for ever, and all quarantined records behind it."""
    letters, table = topic("letters", config={"max.message.bytes": str(LIMIT)}), str(tmp_path / "t")
    noise = random.Random(1).randbytes(LIMIT)  # stays as large when compressed
    values = [b"v" * 300] * 200 + [noise, filled(LIMIT), filled(LIMIT + 1), b"v" * 2_000_000] + [b"v" * 300] * 200
    rows = [{"topic": "t", "partition": 0, "offset": 5, "value": value, "error_class": "Bad"} for value in values]
    rows = [{**row, "offset": 1_000 + number} for number, row in enumerate(rows)]
    write_deltalake(quarantine_of(table), pa.Table.from_pylist(rows, schema=SCHEMA))
    publisher = Publisher({"bootstrap.servers": cluster.bootstrap_servers, "compression.type": codec}, letters)
    stubs = {200, 202, 203} if codec == "none" else {200}
    assert publisher.publish(table, "g") == Sent(len(rows), len(stubs))
    found = messages(cluster, letters)
    assert [one.value() for one in found] == [b"" if n in stubs else value for n, value in enumerate(values)]
    assert [texts(one)["__connect.errors.offset"] for one in found] == [str(row["offset"]) for row in rows]
    assert [texts(one).get("__azimuth.errors.value.bytes") for one in found] == [
        str(len(value)) if n in stubs else None for n, value in enumerate(values)
    ]
    add(table, RECORDS, RECORDS + 10)  # the client that met it is still of use
    assert publisher.publish(table, "g") == Sent(10)


def test_a_publisher_that_repeats_writes_json_until_sigterm(cluster: Cluster, topic: MakeTopic, tmp_path: Path) -> None:
    """It is a container beside the agents, and one collector reads the lines of all of them."""
    letters, table = topic("letters", config={"max.message.bytes": str(LIMIT)}), str(tmp_path / "t")
    group = CommitProperties(app_transactions=[Transaction("g/t/0", 0)])
    write_deltalake(table, pa.table({"topic": ["t"], "partition": [0], "offset": [0]}), commit_properties=group)
    add(table, 0, 2)
    rows = [{"topic": "t", "partition": 0, "offset": 9, "value": b"v" * LIMIT, "error_class": "Bad"}]
    write_deltalake(quarantine_of(table), pa.Table.from_pylist(rows, schema=SCHEMA), mode="append")
    command = [sys.executable, "-m", "spark_sink", "quarantine", "publish", table, "--topic", letters, "--group", "g"]
    command += ["--bootstrap-servers", cluster.bootstrap_servers, "--every", "0.2", "--log-format", "json"]
    with (tmp_path / "log").open("wb") as log:
        process = subprocess.Popen(command, stdout=log, stderr=log)
    try:
        wait_until(
            lambda: process.poll() or b" 0 records published" in (tmp_path / "log").read_bytes(), what="2 rounds"
        )
        assert len(messages(cluster, letters)) == 3
        process.terminate()
        assert process.wait(30) == 0
    finally:
        process.kill()
        process.wait()
    lines = [json.loads(line) for line in (tmp_path / "log").read_text().splitlines()]
    kept = f"topic {letters!r} takes no record as large as t/0 offset 9: published without the value, which"
    assert [(one["level"], one["message"].replace(table, "TABLE")) for one in lines[:2]] == [
        ("warning", f"{kept} TABLE_quarantine keeps"),
        ("info", "TABLE: 3 records published, 1 of them without the value, which is too large for the topic"),
    ]
