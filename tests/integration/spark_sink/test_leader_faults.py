"""Tasks that fetch from leaders return what librdkafka returns, also where brokers fail in the middle of a range."""

import os
import signal
import socket
import struct
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import replace

import psutil
import pyarrow as pa
import pytest
from confluent_kafka import ElectionType, Producer
from confluent_kafka import TopicPartition as KafkaPartition
from confluent_kafka.admin import AdminClient
from confluent_kafka.cimpl import NewTopic
from kafka.admin import KafkaAdminClient
from kafka.structs import TopicPartition as Reassigned

pytest.importorskip("spark_sink.fetch.from_leaders.batch_decoder_compiled", reason="needs a C compiler at the build")

from spark_sink.demo.cluster import Cluster
from spark_sink.errors import DataLossError
from spark_sink.fetch.from_leaders.leader_fetching import LeaderFetching
from spark_sink.fetch.range_reader import fetch
from spark_sink.fetch.raw_columns import arrow_schema
from spark_sink.kafka.partition_offsets import PartitionOffsets
from spark_sink.options.fetch_settings import FetchSettings
from spark_sink.options.source_options import SourceOptions
from spark_sink.ranges.batch_offset import Range
from spark_sink.ranges.range_completion import TaskProgress
from tests.waiting import wait_until

pytestmark = [pytest.mark.integration, pytest.mark.slow, pytest.mark.usefixtures("no_consumer_is_left")]
MakeTopic = Callable[..., str]
Identify = Callable[[str], dict[str, str]]
RECORDS, PARTITIONS = 12_000, 3
CODECS = ("none", "gzip", "snappy", "lz4", "zstd")
SCHEMA = arrow_schema(headers=True, timestamp_type=True)


@pytest.fixture
def settings(cluster: Cluster) -> FetchSettings:
    """Read from the shared cluster, with all columns."""
    kafka = {"bootstrap.servers": cluster.bootstrap_servers, "group.id": "faults"}
    return FetchSettings(kafka=kafka, poll_timeout_s=60.0, record_batches=True, headers=True, timestamp_type=True)


@pytest.fixture
def long(topic: MakeTopic, producer: Producer) -> str:
    """Ten megabytes in each of three partitions with three replicas: several responses of each leader."""
    name = topic("long", partitions=PARTITIONS, replication=3)
    fill(producer, name)
    return name


def fill(producer: Producer, topic: str) -> None:
    """Write records that no compression makes small."""
    for number in range(RECORDS):
        for partition in range(PARTITIONS):
            producer.produce(topic, os.urandom(800), b"%d" % number, partition)
            producer.poll(0)
    assert not producer.flush(60)


def whole(topic: str) -> list[Range]:
    """All of it."""
    return [Range(topic, partition, 0, RECORDS) for partition in range(PARTITIONS)]


def table(batches: Iterator[pa.RecordBatch]) -> pa.Table:
    """All rows by partition, in the order in which they came within each."""
    found = pa.Table.from_batches(batches, SCHEMA)
    order = pa.array(range(len(found)))
    by_partition = found.append_column("order", order).sort_by(
        [("topic", "ascending"), ("partition", "ascending"), ("order", "ascending")]
    )
    return by_partition.drop_columns(["order"]).combine_chunks()


def identities_of(cluster: Cluster, topic: str) -> dict[str, str]:
    """Return the topic's id as a plan has it."""
    options = {"kafka.bootstrap.servers": cluster.bootstrap_servers, "kafka.group.id": "ids", "subscribe": topic}
    return dict(PartitionOffsets(SourceOptions.parse(options)).identities([topic]))


@pytest.fixture(params=[False, True], ids=["by name", "by id"])
def identify(cluster: Cluster, request: pytest.FixtureRequest) -> Identify:
    """Find the id of a topic, or none: then its name is sent to the brokers, as to those before 3.1."""
    return lambda topic: identities_of(cluster, topic) if request.param else {}


def read_around(settings: FetchSettings, topic: str, fault: Callable[[], None], identities: dict[str, str]) -> pa.Table:
    """Read a topic, with a fault after the first batch."""
    batches = fetch(whole(topic), replace(settings, batch_bytes=1 << 18), identities)

    def rows() -> Iterator[pa.RecordBatch]:
        yield next(batches)
        fault()
        yield from batches

    return table(rows())


def by_librdkafka(settings: FetchSettings, pieces: list[Range]) -> pa.Table:
    """Read the same ranges the other way."""
    return table(fetch(pieces, replace(settings, record_batches=False)))


def leader(admin: AdminClient, topic: str, partition: int = 0) -> int:
    """Return who leads."""
    return int(admin.list_topics(topic, timeout=20).topics[topic].partitions[partition].leader)


@pytest.mark.parametrize("silent_s", [1.0, 7.0], ids=["shorter", "longer"])
def test_a_leader_that_is_frozen_in_the_middle_doubles_and_loses_nothing(  # noqa: PLR0913, PLR0917 -- fixtures
    cluster: Cluster, admin: AdminClient, settings: FetchSettings, long: str, identify: Identify, silent_s: float
) -> None:
    """Shorter than a task waits, it goes on there; longer, librdkafka reads the rest, once the leader is back."""
    expected = by_librdkafka(settings, whole(long))
    number = leader(admin, long)
    later = threading.Timer(silent_s, lambda: cluster.kill(number, signal.SIGCONT))

    def freeze() -> None:
        cluster.kill(number, signal.SIGSTOP)
        later.start()

    try:
        assert read_around(settings, long, freeze, identify(long)).equals(expected)
    finally:
        later.join()


def test_a_leader_that_is_killed_and_comes_back_doubles_and_loses_nothing(
    cluster: Cluster, admin: AdminClient, settings: FetchSettings, long: str, identify: Identify
) -> None:
    """Another replica leads meanwhile; then leadership is moved back in the middle of a range, without a failure."""
    expected = by_librdkafka(settings, whole(long))
    number = leader(admin, long)
    try:
        assert read_around(settings, long, lambda: cluster.kill(number), identify(long)).equals(expected)
    finally:
        cluster.start(number)
    partitions = [KafkaPartition(long, partition) for partition in range(PARTITIONS)]

    def in_sync() -> bool:
        found = admin.list_topics(long, timeout=20).topics[long].partitions.values()
        return all(len(one.isrs) == PARTITIONS for one in found)

    wait_until(in_sync, what="the broker's replicas in sync")
    assert leader(admin, long) != number, "leadership must have moved"

    def elect() -> None:
        with suppress(Exception):  # the controller may have done it by itself
            admin.elect_leaders(ElectionType.PREFERRED, partitions).result(30)
        wait_until(lambda: leader(admin, long) == number, what="the election")

    assert read_around(settings, long, elect, identify(long)).equals(expected)


def test_a_partition_that_is_reassigned_in_the_middle_doubles_and_loses_nothing(  # noqa: PLR0913, PLR0917 -- fixtures
    cluster: Cluster,
    admin: AdminClient,
    settings: FetchSettings,
    topic: MakeTopic,
    producer: Producer,
    identify: Identify,
) -> None:
    """The old leader drops its replica, and does not know the partition any more."""
    name = topic("moved", partitions=PARTITIONS)
    fill(producer, name)
    expected = by_librdkafka(settings, whole(name))
    old = leader(admin, name)
    new = next(one.id for one in cluster.brokers if one.id != old)

    def move() -> None:
        client = KafkaAdminClient(bootstrap_servers=cluster.bootstrap_servers)
        client.alter_partition_reassignments({Reassigned(name, 0): [new]})
        client.close()
        wait_until(lambda: leader(admin, name) == new, what="the move")

    assert read_around(settings, name, move, identify(name)).equals(expected)


def test_a_topic_that_is_recreated_in_the_middle_stops_the_task(
    cluster: Cluster, admin: AdminClient, settings: FetchSettings, long: str, producer: Producer
) -> None:
    """The new records stand at offsets of the range; the topic's id tells them apart."""
    identities = identities_of(cluster, long)
    batches = fetch(whole(long), replace(settings, batch_bytes=1 << 18, poll_timeout_s=20.0), identities)
    next(batches)
    admin.delete_topics([long])[long].result(30)
    wait_until(lambda: long not in admin.list_topics(timeout=20).topics, what="the deletion")
    admin.create_topics([NewTopic(long, PARTITIONS, 3)])[long].result(30)
    fill(producer, long)
    with pytest.raises(DataLossError, match=r"recreated|deleted"):
        list(batches)


@pytest.mark.parametrize("time_type", ["CreateTime", "LogAppendTime"])
@pytest.mark.parametrize("level", ["read_committed", "read_uncommitted"])
def test_both_ways_return_the_same_rows_of_a_log_with_everything(
    cluster: Cluster, settings: FetchSettings, topic: MakeTopic, level: str, time_type: str
) -> None:
    """Each codec after each other, idempotent and transactional, committed, aborted and open, from each offset."""
    name = topic("everything", config={"message.timestamp.type": time_type})
    for round_, codec in enumerate(CODECS * 2):
        plain = {"bootstrap.servers": cluster.bootstrap_servers, "compression.type": codec, "enable.idempotence": True}
        write(Producer(plain), name, round_)
        transactional = Producer({**plain, "transactional.id": f"{name}-{codec}"})
        transactional.init_transactions(30)
        transactional.begin_transaction()
        write(transactional, name, round_)
        (transactional.abort_transaction if round_ >= 7 else transactional.commit_transaction)(30)
    opened = Producer({"bootstrap.servers": cluster.bootstrap_servers, "transactional.id": f"{name}-open"})
    opened.init_transactions(30)
    opened.begin_transaction()
    write(opened, name, 1)
    chosen = replace(settings, kafka={**settings.kafka, "isolation.level": level})
    stable = 10 * (6 + 6 + 1)  # six records each, and the transaction's marker
    end = stable + (6 if level == "read_uncommitted" else 0)
    for first in (0, 1, 5, 6, 12, 13, 40, 91, stable - 7, stable - 1):
        for last in sorted({first + 1, first + 7, min(first + 40, end), end}):
            if last <= end:
                pieces = [Range(name, 0, first, last)]
                ours = table(fetch(pieces, chosen))
                assert ours.equals(by_librdkafka(chosen, pieces)), (first, last)
    opened.abort_transaction(30)


def write(producer: Producer, topic: str, round_: int) -> None:
    """Write six records: null, empty and filled keys and values, with and without headers."""
    rows: list[tuple[bytes | None, bytes | None, list[tuple[str, str | bytes | None]] | None]] = [
        (None, b"v" * 50, None),
        (b"", None, [("h", b"%d" % round_), ("h", None), ("", b"")]),
        (b"k", b"", None),
        (b"k" * 200, b"%d" % round_ * 300, [("é", b"x" * 100)]),
        (None, None, None),
        (b"k", b"v", [("a", b"")]),
    ]
    for key, value, headers in rows:
        producer.produce(topic, value, key, headers=headers)
    assert not producer.flush(30)


def test_a_quota_slows_a_task_and_changes_no_row(cluster: Cluster, settings: FetchSettings, long: str) -> None:
    """A broker that throttles answers without records, and reads the next request late (KIP-219)."""
    limit_bytes(cluster, "throttled", 500_000.0)
    chosen = replace(settings, kafka={**settings.kafka, "client.id": "throttled"})
    expected = by_librdkafka(settings, whole(long))
    deadline, took_s = time.monotonic() + 60, 0.0
    while took_s < 3:  # the other brokers learn of the quota after the one that was asked to set it
        assert time.monotonic() < deadline, "the quota does not slow down any read"
        began = time.monotonic()
        assert table(fetch(whole(long), chosen)).equals(expected)
        took_s = time.monotonic() - began


def limit_bytes(cluster: Cluster, client: str, rate: float) -> None:
    """Set the quota of a client id: no Python client can (AlterClientQuotas 0)."""

    def text(given: str) -> bytes:
        return struct.pack(">h", len(given)) + given.encode()

    entity = struct.pack(">i", 1) + text("client-id") + text(client)
    change = struct.pack(">i", 1) + text("consumer_byte_rate") + struct.pack(">d?", rate, False)  # noqa: FBT003 -- remove
    body = struct.pack(">hhi", 49, 0, 1) + text("test") + struct.pack(">i", 1) + entity + change + b"\0"
    with socket.create_connection(("127.0.0.1", cluster.brokers[0].port), 10) as connection:
        connection.sendall(struct.pack(">i", len(body)) + body)
        with connection.makefile("rb") as stream:
            (size,) = struct.unpack(">i", stream.read(4))
            answer = stream.read(size)
    assert struct.unpack_from(">h", answer, 12) == (0,)


def test_a_task_that_is_ended_closes_its_sockets(cluster: Cluster, long: str) -> None:
    """Spark raises KeyboardInterrupt where a task is, or closes its generator."""
    ours = {one.port for one in cluster.brokers}

    def sockets() -> int:
        found = psutil.Process().net_connections("tcp")
        return sum(
            one.status == psutil.CONN_ESTABLISHED and bool(one.raddr) and one.raddr.port in ours for one in found
        )

    before = sockets()
    for end in (KeyboardInterrupt, None):
        properties = {"bootstrap.servers": cluster.bootstrap_servers}
        batches = LeaderFetching(properties, TaskProgress(whole(long)), SCHEMA, 1 << 18, {}).batches()
        next(batches)
        assert sockets() > before
        if end is None:
            batches.close()  # type: ignore[attr-defined]  # a generator
        else:
            with pytest.raises(end):
                batches.throw(end())  # type: ignore[attr-defined]  # a generator
        assert sockets() <= before


def test_many_tasks_leave_no_descriptors_and_no_memory(settings: FetchSettings, long: str) -> None:
    """A Python worker of Spark runs thousands of tasks."""
    process = psutil.Process()

    def tasks(count: int) -> None:
        for number in range(count):
            begin = number * 7 % (RECORDS - 100)
            pieces = [Range(long, partition, begin, begin + 100) for partition in range(PARTITIONS)]
            assert sum(batch.num_rows for batch in fetch(pieces, settings)) == 100 * PARTITIONS

    tasks(50)
    descriptors, memory = process.num_fds(), process.memory_info().rss
    tasks(500)
    assert process.num_fds() <= descriptors + 2
    assert process.memory_info().rss < memory + (30 << 20)
