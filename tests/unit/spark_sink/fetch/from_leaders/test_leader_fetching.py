"""A task reads the same rows from the leaders as by librdkafka, and leaves to it what is not as expected."""

import gc
import socket
import threading
import weakref
from collections.abc import Iterator
from dataclasses import replace

import pyarrow as pa
import pytest
from confluent_kafka import Producer

pytest.importorskip("spark_sink.fetch.from_leaders.batch_decoder_compiled", reason="needs a C compiler at the build")

from producer.testing import MockCluster
from spark_sink.fetch.from_leaders import leader_fetching
from spark_sink.fetch.from_leaders.leader_connection import LeaderConnection
from spark_sink.fetch.from_leaders.leader_fetching import LeaderFetching
from spark_sink.fetch.range_reader import fetch
from spark_sink.fetch.raw_columns import arrow_schema
from spark_sink.fetch.received_files import Counts
from spark_sink.options.fetch_settings import FetchSettings
from spark_sink.ranges.batch_offset import Range
from spark_sink.ranges.range_completion import TaskProgress
from tests.unit.spark_sink.fetch.from_leaders.one_failure import OneFailure

RECORDS = 300
CODECS = ["none", "gzip", "lz4", "zstd", "snappy"]
SCHEMA = arrow_schema(headers=True)


@pytest.fixture(scope="module")
def mock() -> Iterator[MockCluster]:
    """Three brokers, and a topic of three partitions for each codec."""
    with MockCluster() as cluster:
        for codec in CODECS:
            cluster.create(codec, [1, 2, 3])
            producer = Producer(
                {"bootstrap.servers": cluster.bootstrap_servers, "compression.type": codec, "linger.ms": 20}
            )
            for number in range(RECORDS):
                producer.produce(
                    codec,
                    None if number % 7 == 0 else b"value %d" % number * (number % 40),
                    None if number % 5 == 0 else b"k%d" % number,
                    partition=number % 3,
                    headers=[("h", b"%d" % number), ("none", None)] if number % 4 == 0 else None,
                )
            producer.flush()
        yield cluster


def ranges(topic: str, begin: int = 0, end: int = RECORDS // 3) -> list[Range]:
    """The same offsets of each partition."""
    return [Range(topic, partition, begin, end) for partition in range(3)]


def read(mock: MockCluster, wanted: list[Range], *, from_leaders: bool) -> pa.Table:
    """The rows in order, by a task."""
    settings = FetchSettings(
        kafka={"bootstrap.servers": mock.bootstrap_servers, "group.id": "g"}, headers=True, poll_timeout_s=20
    )
    rows = fetch(wanted, replace(settings, record_batches=from_leaders), keep=False)
    table = pa.Table.from_batches(rows, SCHEMA)
    return table.sort_by([(name, "ascending") for name in ("topic", "partition", "offset")]).combine_chunks()


def leaders(mock: MockCluster, wanted: list[Range], **more: str) -> tuple[int, TaskProgress, Counts]:
    """Rows from leaders alone, and what is left of the ranges."""
    progress, received = TaskProgress(wanted), Counts()
    properties = {"bootstrap.servers": mock.bootstrap_servers, **more}
    found = LeaderFetching(properties, progress, SCHEMA, 1 << 20, received)
    return sum(batch.num_rows for batch in found.batches()), progress, received


@pytest.mark.parametrize("codec", CODECS)
@pytest.mark.parametrize(("begin", "end"), [(0, 100), (37, 38), (13, 81)])
def test_both_ways_return_the_same_rows(mock: MockCluster, codec: str, begin: int, end: int) -> None:
    """With keys, values and headers, or without; a range may begin and end within a batch."""
    wanted = ranges(codec, begin, end)
    ours = read(mock, wanted, from_leaders=True)
    assert ours.num_rows == 3 * (end - begin)
    assert ours.equals(read(mock, wanted, from_leaders=False))


@pytest.mark.parametrize("codec", CODECS)
def test_leaders_give_all_rows(mock: MockCluster, codec: str) -> None:
    """Else the test above would compare librdkafka with itself."""
    rows, progress, received = leaders(mock, ranges(codec))
    assert (rows, progress.left) == (RECORDS, [])
    assert {cell: count.records for cell, count in received.items()} == {
        (codec, broker): RECORDS // 3 for broker in (1, 2, 3)
    }


def test_a_range_beyond_the_log_is_left_with_what_is_missing(mock: MockCluster) -> None:
    """The broker's answer is empty and no error; only librdkafka reports that a log ends there."""
    rows, progress, _ = leaders(mock, ranges("none", 90, 103))
    assert rows == 30
    assert [(one.begin, one.end) for one in progress.left] == [(100, 103)] * 3


def test_partitions_that_are_refused_are_left_and_the_others_read(mock: MockCluster) -> None:
    """One topic that was deleted must not keep the others from being read this way."""
    rows, progress, _ = leaders(mock, [*ranges("none"), Range("absent", 0, 0, 5), Range("lz4", 1, 900, 905)])
    assert rows == RECORDS
    assert [(one.topic, one.begin) for one in progress.left] == [("absent", 0), ("lz4", 900)]


def test_without_brokers_nothing_is_read_and_nothing_raised(mock: MockCluster) -> None:
    """Librdkafka then says what is wrong, as it always has."""
    with socket.create_server(("127.0.0.1", 0)) as closed:
        port = closed.getsockname()[1]
    rows, progress, _ = leaders(mock, ranges("none"), **{"bootstrap.servers": f"127.0.0.1:{port}"})
    assert (rows, len(progress.left)) == (0, 3)
    rows, progress, _ = leaders(
        mock, ranges("none"), **{"bootstrap.servers": f"127.0.0.1:{port},{mock.bootstrap_servers}"}
    )
    assert (rows, len(progress.left)) == (RECORDS, 0)


def test_a_bootstrap_server_that_is_gone_does_not_keep_the_memory_of_a_task(mock: MockCluster) -> None:
    """An error that refers to its own frame would keep eight megabytes until Python looks for cycles."""
    with socket.create_server(("127.0.0.1", 0)) as closed:
        port = closed.getsockname()[1]
    for servers in (f"127.0.0.1:{port},{mock.bootstrap_servers}", f"127.0.0.1:{port}", mock.bootstrap_servers):
        leader_fetching._failed.clear()
        gc.collect()
        gc.disable()
        try:
            found = LeaderFetching({"bootstrap.servers": servers}, TaskProgress(ranges("none")), SCHEMA, 1 << 20, {})
            gone = weakref.ref(found)
            list(found.batches())
            del found
            assert gone() is None
        finally:
            gc.enable()


@pytest.mark.parametrize("answer", [b"", b"\0\0\0\4\0\0\0\1", b"\0\0\0\4\0\0\0\7", b"HTTP/1.1 400 Bad Request\r\n\r\n"])
def test_a_server_of_another_kind_is_left_to_librdkafka(mock: MockCluster, answer: bytes) -> None:
    """It closes, answers too little, to no question, or in another protocol."""
    with socket.create_server(("127.0.0.1", 0)) as server:

        def serve() -> None:
            connection, _ = server.accept()
            with connection:
                connection.recv(1 << 16)
                connection.sendall(answer)

        thread = threading.Thread(target=serve)
        thread.start()
        address = f"127.0.0.1:{server.getsockname()[1]}"
        rows, progress, _ = leaders(mock, ranges("none"), **{"bootstrap.servers": address})
        thread.join()
    assert (rows, len(progress.left)) == (0, 3)


def test_a_broker_that_is_lost_leaves_the_rest_of_its_ranges(mock: MockCluster) -> None:
    """What was read before stays read, and no record comes a second time."""
    progress, received = TaskProgress(ranges("none")), Counts()
    found = LeaderFetching({"bootstrap.servers": mock.bootstrap_servers}, progress, SCHEMA, 1, received).batches()
    rows = [next(found).num_rows]
    mock.down(2)
    try:
        rows += [batch.num_rows for batch in found]
    finally:
        mock.up(2)
    assert sum(rows) == RECORDS - sum(one.records for one in progress.left)


@pytest.mark.parametrize("method", ["__init__", "send", "receive"])
def test_no_record_is_lost_or_doubled_whichever_call_fails(
    mock: MockCluster, monkeypatch: pytest.MonkeyPatch, method: str
) -> None:
    """Each connect, request and response fails once; rows that were taken before must still be yielded."""
    one = OneFailure(getattr(LeaderConnection, method))
    monkeypatch.setattr(LeaderConnection, method, one.method())
    while one.calls >= one.failing:  # until no call is left that could fail
        one.calls, one.failing = 0, one.failing + 1
        progress = TaskProgress(ranges("none"))
        properties = {"bootstrap.servers": mock.bootstrap_servers, "fetch.message.max.bytes": 2_000}
        found = LeaderFetching(properties, progress, SCHEMA, 1 << 20, Counts()).batches()
        table = pa.Table.from_batches(found, SCHEMA)
        read = list(zip(table["partition"].to_pylist(), table["offset"].to_pylist(), strict=True))
        left = [(one.partition, at) for one in progress.left for at in range(one.begin, one.end)]
        assert sorted(read + left) == [(partition, at) for partition in range(3) for at in range(RECORDS // 3)]
    assert one.failing > 3
