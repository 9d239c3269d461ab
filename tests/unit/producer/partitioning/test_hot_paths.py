"""The two hot paths, interpreted and compiled, do the same."""

import ctypes
import json
import shutil
import sysconfig
from collections.abc import Mapping
from pathlib import Path
from random import Random
from types import ModuleType
from typing import Any

import numpy as np
import pytest
from confluent_kafka import KafkaError, KafkaException, Message, murmur2
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from producer import AZAwareProducer, Count, Reason
from producer.decisions.partitioner_names import ClientPartitioner
from producer.decisions.rendezvous_slots import Table, hrw_table, packed_table
from producer.partitioning import produce_interpreted
from producer.partitioning.hrw_slot_table import slot_table
from producer.testing import MockCluster, librdkafka
from tests.unit.producer.deliveries import TOPIC, config

DATA = Path(__file__).parents[3] / "data"
TABLES = {
    "all of 1": (0,),
    "all of 7": tuple(range(7)),
    "local of 120": tuple(range(1, 120, 3)),
    "bytes": hrw_table(120, tuple(range(1, 120, 3))),
    "many": hrw_table(1_000, tuple(range(2, 1_000, 3))),
    "drawn where compiled": slot_table(10_000, tuple(range(2, 10_000, 3))),
    "all of 10,000": packed_table(range(10_000), 10_000),
    "all of 65,537": packed_table(range(65_537), 65_537),
}


def destinations(path: ModuleType, table: Table) -> Any:
    """A destinations with that table."""
    return path.Destinations(table, path.PartitionCounts(), 0, path.PartitionCounts(), 0)


@pytest.mark.parametrize("table", TABLES.values(), ids=TABLES)
def test_keys_land_where_librdkafkas_hash_says(hot: ModuleType, table: Table) -> None:
    """100,000 random keys of every length up to 40 bytes against the client's own function."""
    random, found = Random(7), destinations(hot, table)
    for _ in range(100_000):
        key = random.randbytes(random.randrange(40))
        assert found.keyed_partition(key) == table[murmur2(key, len(table))]


@pytest.mark.parametrize("name", [name for name in ClientPartitioner if name != "random"])
def test_each_hash_is_librdkafkas_own_over_random_keys_and_partitions(hot: ModuleType, name: ClientPartitioner) -> None:
    """The functions that a bare client calls, in the library that it calls them in."""
    function = getattr(librdkafka(), f"rd_kafka_msg_partitioner_{name}")
    function.restype = ctypes.c_int32
    function.argtypes = [ctypes.c_void_p, ctypes.c_char_p, ctypes.c_size_t, ctypes.c_int32] + [ctypes.c_void_p] * 2
    random = Random(11)
    for count in (1, 2, 3, 255, 256, *(random.randrange(1, 10_000) for _ in range(20))):
        found = hot.Destinations(tuple(range(count)), hot.PartitionCounts(), 0, hot.PartitionCounts(), 0, name)
        for _ in range(500):
            key = random.randbytes(random.randrange(1, 60))
            expected = function(None, key, len(key), count, None, None)
            assert found.keyed_partition(key) == expected, (key, count)


def test_keys_land_where_javas_do(hot: ModuleType) -> None:
    """The vectors of Java's mapping, each at its own number of partitions."""
    rows = json.loads((DATA / "partition_murmur2.json").read_text())["vectors"]
    assert len(rows) > 10
    for row in rows:
        assert (
            destinations(hot, tuple(range(row["partitions"]))).keyed_partition(bytes.fromhex(row["key_hex"]))
            == row["partition"]
        ), row


@given(
    records=st.lists(st.tuples(st.integers(0, 9), st.integers(0, 1 << 40)), max_size=200),
    sizes=st.lists(st.integers(0, 10), min_size=1, max_size=4),
)
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)
def test_counts_add_up_and_can_be_taken_back(hot: ModuleType, records: list[tuple[int, int]], sizes: list[int]) -> None:
    """Records and bytes of each partition, whatever room was made in between; room made once stays."""
    sent = hot.PartitionCounts()
    for size in [*sizes, 10]:
        sent.grow(size)
        assert len(sent) >= size
    for partition, size in records:
        sent.add(partition, size)
    for partition in range(10):
        mine = [size for where, size in records if where == partition]
        assert sent.of(partition) == (len(mine), sum(mine))
    for partition, size in records:
        sent.add(partition, -size, -1)
    assert {sent.of(partition) for partition in range(10)} == {(0, 0)}


@pytest.mark.parametrize("table", TABLES.values(), ids=TABLES)
def test_a_record_is_counted_where_its_key_belongs(hot: ModuleType, table: Table) -> None:
    """One call in place of a look-up and an addition, for kafka-python."""
    found = destinations(hot, table)
    for counts in (found.keyed, found.unkeyed):
        counts.grow(65_537)
    random = Random(5)
    for _ in range(200):
        key = random.randbytes(12)
        before = found.keyed.of(found.keyed_partition(key))
        chosen = found.take_keyed(key, 7)
        assert chosen == found.keyed_partition(key)
        assert found.keyed.of(chosen) == (before.records + 1, before.bytes + 7)


def test_a_run_is_full_with_the_record_that_reaches_its_end(hot: ModuleType) -> None:
    """Not one record later, and whatever went to other partitions."""
    found = hot.Destinations((0, 1), hot.PartitionCounts(), 1, hot.PartitionCounts(), 100)
    found.unkeyed.grow(2)
    found.unkeyed.add(0, 1_000)
    assert [found.take_unkeyed(40) for _ in range(3)] == [False, False, True]
    assert found.unkeyed.of(1) == (3, 120)


@pytest.mark.parametrize("table", TABLES.values(), ids=TABLES)
def test_a_next_run_differs_in_the_partition_without_a_key_alone(hot: ModuleType, table: Table) -> None:
    """Keys keep their partitions and both their counts; the run ends when its own bytes are there."""
    before = hot.Destinations(table, hot.PartitionCounts(), 0, hot.PartitionCounts(), 50, shortest_key=1)
    for counts in (before.keyed, before.unkeyed):
        counts.grow(max(table) + 2)
    after = before.next_run(max(table) + 1, 100)
    assert [after.take_unkeyed(size) for size in (99, 1)] == [False, True]
    assert after.next_run(after.partition, 100).switch_at == 200
    assert [after.is_full(), before.is_full(), before.take_unkeyed(50)] == [True, False, True]
    keys = [b"%d" % number for number in range(1_000)]
    assert [after.take_keyed(key, 1) for key in keys] == [before.keyed_partition(key) for key in keys]
    assert (after.shortest_key, after.slots, after.table) == (1, before.slots, before.table)
    assert after.keyed is before.keyed
    assert before.unkeyed.of(after.partition) == Count(2, 100)


@pytest.mark.parametrize("partitions", [1, 6, 256, 257, 10_000, 70_000])
def test_each_partition_is_its_own_slot_where_all_take_part(hot: ModuleType, partitions: int) -> None:
    """The table of global keys: the compiled path needs none."""
    table = hot.Destinations.all_of(partitions)
    assert len(table) == partitions
    found = destinations(hot, table)
    random = Random(6)
    for _ in range(200):
        key = random.randbytes(12)
        assert found.keyed_partition(key) == murmur2(key, partitions)


def test_a_partition_may_have_had_a_petabyte(hot: ModuleType) -> None:
    """A month at 100 MB/s is 256 TB: the bytes must not run over into the records, nor a run last for ever."""
    found = hot.Destinations((0,), hot.PartitionCounts(), 0, hot.PartitionCounts(), (1 << 50) + 100)
    found.unkeyed.grow(1)
    for size in (1 << 50, 60):
        found.unkeyed.add(0, size)
    assert not found.is_full()
    found.unkeyed.add(0, 60)
    assert found.is_full()
    assert found.unkeyed.of(0) == (3, (1 << 50) + 120)


ARGUMENTS: list[dict[str, Any]] = [
    {"value": b"v"},
    {"value": "Zürich", "key": "ä"},
    {"value": b"", "key": b""},
    {"key": b"tombstone"},
    {"value": b"v", "key": "k", "partition": 1},
    {"value": b"v", "key": "k", "partition": 99},
    {"value": b"v", "partition": -2},
    {"value": b"v", "key": b"k", "headers": {"h": b"v"}, "timestamp": 5},
    {"value": b"v", "timestamp": "now"},
    {"value": b"v", "headers": 5},
    {"value": 5, "key": b"k"},
    {"value": 5},
    {"value": bytearray(b"v"), "key": b"k"},
    {"value": memoryview(b"v")},
    {"value": b"v", "key": 5},
    {"value": b"v", "key": bytearray(b"k")},
    {"value": b"v", "key": memoryview(b"k")},
    {"value": "\ud800"},
    {"value": "\ud800", "key": b"k"},
    {"value": b"v", "key": "\ud800"},
    {"value": b"v", "partition": "x"},
    {"value": b"v", "partition": None},
    {"value": b"v", "nonsense": 1},
    {"value": np.int64(5)},
    {"value": np.arange(3), "key": b"k"},
    {"value": np.arange(9)[::3]},
    {"value": b"v", "key": np.int64(5)},
    {"value": b"v", "key": np.arange(9)[::3]},
]


@pytest.mark.parametrize("count", ["queued", "delivered"])
@pytest.mark.parametrize("arguments", [pytest.param(one, id=f"{n}") for n, one in enumerate(ARGUMENTS)])
def test_whatever_is_refused_is_refused_alike_and_not_counted(
    mock: MockCluster, arguments: dict[str, Any], count: str
) -> None:
    """The same records, counts, and errors to the letter."""
    mock.create(TOPIC, [1, 2, 3])
    compiled = pytest.importorskip("producer.partitioning.produce_compiled", reason="the hot path is not compiled here")
    outcomes = [outcome(path, mock, arguments, count) for path in (produce_interpreted, compiled)]
    assert outcomes[0] == outcomes[1]
    error, reasons = outcomes[0]
    assert sum(count.records for count in reasons.values()) == (1 if error else 2)


def outcome(
    path: ModuleType, mock: MockCluster, arguments: dict[str, Any], count: str
) -> tuple[tuple[str, str] | None, Mapping[Reason, Count]]:
    """Send one more record, and return the error and the counts."""
    kind = type("Taking", (AZAwareProducer,), {"__slots__": (), "_kafka_azimuth_hot": path, "produce": path.produce})
    error = None
    with kind(config(mock), keys="local-hrw", count=count) as producer:
        producer.produce(TOPIC, b"first", b"first")
        try:
            producer.produce(TOPIC, **arguments)
        except (TypeError, ValueError, KafkaException) as refusal:
            error = type(refusal).__name__, str(refusal)
        assert producer.flush(10) == 0
        return error, producer.traffic().reasons


class Unusual(bytes):
    """Bytes that say something else of themselves."""

    def __len__(self) -> int:
        return 1


BUFFERS: dict[str, Any] = {
    "number of numpy's": np.int64(5),
    "array of numpy's": np.arange(3),
    "moments of numpy's": np.array(["2013-01-01"], "datetime64[D]"),
    "array of ctypes": ctypes.create_string_buffer(b"text"),
    "bytes of another class": Unusual(b"text"),
}


@pytest.mark.usefixtures("hot")
@pytest.mark.parametrize("data", BUFFERS.values(), ids=BUFFERS)
@pytest.mark.parametrize("name", ["value", "key"])
def test_whatever_the_base_class_sends_is_sent_and_counted_as_sent(
    mock: MockCluster,
    name: str,
    data: Any,
) -> None:
    """It takes all that holds bytes. An error after the record was queued would have the caller send it twice."""
    mock.create(TOPIC, [1, 2, 3] * 5)
    sent: list[tuple[bytes | None, bytes | None, int | None]] = []

    def delivered(_error: KafkaError | None, message: Message) -> None:
        sent.append((message.value(), message.key(), message.partition()))

    producer = AZAwareProducer(config(mock), keys="local-hrw")
    for _ in range(2):  # the first of a topic goes another way than the rest
        producer.produce(TOPIC, **{name: data}, on_delivery=delivered)
    assert producer.flush(10) == 0
    assert sent[0] == sent[1] or (name == "value" and sent[0][:2] == sent[1][:2])
    assert producer.traffic().local == (2, 2 * len(sent[0][0] or sent[0][1] or b""))
    assert producer.traffic().cross == (0, 0)
    producer.close()


class Collected(list[bytes | None]):
    """A callable that is false until it was called."""

    def __call__(self, _error: KafkaError | None, message: Message) -> None:
        """Take a report."""
        self.append(message.value())


@pytest.mark.usefixtures("hot")
@pytest.mark.parametrize("way", ["produce", "aside", "batch"])
def test_a_callback_is_called_also_where_it_is_false(mock: MockCluster, way: str) -> None:
    """As by the base class: what collects reports in itself is false before the first one."""
    mock.create(TOPIC, [1, 2, 3])
    producer = AZAwareProducer(config(mock))
    producer.produce(TOPIC, b"first")
    reports = Collected()
    if way == "batch":
        producer.produce_batch(TOPIC, [{"value": b"v"}], callback=reports)
    else:
        producer.produce(TOPIC, b"v", callback=reports, partition=1 if way == "aside" else -1)
    assert producer.flush(10) == 0
    assert reports == [b"v"]
    producer.close()


def test_a_lane_outlives_what_replaces_it(hot: ModuleType, mock: MockCluster) -> None:
    """The compiled path took it from the dictionary without holding it, and then compared in Python."""
    mock.create(TOPIC, [1, 2, 3])
    kind = type("Taking", (AZAwareProducer,), {"__slots__": (), "_kafka_azimuth_hot": hot, "produce": hot.produce})
    producer = kind(config(mock), keys="local-hrw")
    producer.produce(TOPIC, b"first")

    class Replacing(int):
        __hash__ = None  # type: ignore[assignment]

        def __ne__(self, other: object) -> bool:
            producer._kafka_azimuth.topics_in_use.partitioners[TOPIC].advance()
            producer._kafka_azimuth_destinations[TOPIC] = producer._kafka_azimuth.topics_in_use.partitioners[
                TOPIC
            ].destinations
            return False

    for _ in range(100):
        producer.produce(TOPIC, b"v", b"k", partition=Replacing(-1))
    assert producer.flush(10) == 0
    assert producer.traffic().local.records == 101
    producer.close()


@pytest.mark.usefixtures("hot")
@pytest.mark.parametrize("name", ["callback", "on_delivery"])
@pytest.mark.parametrize("key", [None, b"k"], ids=["null", "key"])
def test_a_delivery_is_reported_to_whichever_callback_was_given(
    mock: MockCluster, name: str, key: bytes | None
) -> None:
    """The base class does not see `on_delivery` behind a `callback` of None."""
    mock.create(TOPIC, [1, 2, 3])
    reports: list[tuple[KafkaError | None, bytes | None]] = []

    def delivered(error: KafkaError | None, message: Message) -> None:
        reports.append((error, message.value()))

    producer = AZAwareProducer(config(mock))
    to: dict[str, Any] = {name: delivered}
    for number in range(3):
        producer.produce(TOPIC, b"%d" % number, key, **to)
    assert producer.flush(10) == 0
    assert reports == [(None, b"0"), (None, b"1"), (None, b"2")]
    producer.close()


@pytest.mark.usefixtures("hot")
def test_a_full_queue_counts_nothing(mock: MockCluster) -> None:
    """The caller is delivered, polls and calls again: one record, one count."""
    mock.create(TOPIC, [1, 2, 3])
    producer = AZAwareProducer(
        config(mock, **{"queue.buffering.max.messages": 10, "linger.ms": 10_000}), count="queued"
    )
    producer.produce(TOPIC, b"first")
    for _ in range(9):
        producer.produce(TOPIC, b"v", b"k")
    with pytest.raises(BufferError):
        producer.produce(TOPIC, b"v", b"k")
    with pytest.raises(BufferError):
        producer.produce(TOPIC, b"v")
    assert sum(count.records for count in producer.traffic().reasons.values()) == len(producer) == 10
    producer.purge()
    producer.close()


@pytest.mark.usefixtures("hot")
@pytest.mark.parametrize("keys", ["global", "local-hrw", "ignore"])
def test_a_record_of_any_length_counts_its_bytes(mock: MockCluster, keys: str) -> None:
    """Weights of short records are stored: the longest of these, the next one, and one that is far beyond."""
    mock.create(TOPIC, [1])
    producer = AZAwareProducer(config(mock), keys=keys, count="queued")
    total = 0
    for length in (0, 1, 4_093, 4_094, 4_095, 4_096, 4_097, 100_000):
        for key in (None, b"", b"k", b"key"):
            producer.produce(TOPIC, b"v" * length, key)
            total += length + len(key or b"")
    assert producer.traffic().local == (32, total)
    assert producer.flush(30) == 0
    producer.close()


@pytest.mark.usefixtures("hot")
def test_a_subclass_sees_each_record_once(mock: MockCluster) -> None:
    """Also the first of a topic, which is sent when the topic's leaders are known."""
    mock.create(TOPIC, [1, 2, 3])
    seen: list[str] = []

    class Noting(AZAwareProducer):
        def produce(self, topic: str, *args: Any, **kwargs: Any) -> None:
            seen.append(topic)
            super().produce(topic, *args, **kwargs)

    producer = Noting(config(mock))
    producer.produce(TOPIC, b"first")
    producer.produce(TOPIC, b"second", "key")
    assert producer.flush(10) == 0
    assert seen == [TOPIC, TOPIC]
    assert sum(count.records for count in producer.traffic().reasons.values()) == 2
    producer.close()


def test_the_hot_path_is_compiled_where_there_is_a_compiler() -> None:
    """An install that could have compiled it and did not is three tenths of a microsecond slower, without a word."""
    compiler = shutil.which((sysconfig.get_config_var("CC") or "cc").split()[0])
    headers = Path(sysconfig.get_path("include"), "Python.h")
    if compiler is None or not headers.exists():
        pytest.skip("no C compiler, or no headers of Python's")
    assert AZAwareProducer.compiled
