"""Both copy records out of librdkafka's memory with the same bytes: the compiled code and the interpreted code."""

import ctypes
import mmap
import shutil
import sysconfig
import time
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from confluent_kafka import KafkaError, Producer
from hypothesis import given, settings
from hypothesis import strategies as st

from producer.testing import MockCluster
from spark_sink.fetch import copy_interpreted, message_copy
from spark_sink.fetch.copy_interpreted import structs
from spark_sink.fetch.librdkafka import NativeConsumer
from spark_sink.fetch.librdkafka_symbols import library
from spark_sink.fetch.raw_columns import arrow_schema
from spark_sink.ranges.batch_offset import Range

try:
    from spark_sink.fetch import copy_compiled
except ImportError:  # built without a C compiler
    copy_compiled = None  # type: ignore[assignment]

HEADERS = arrow_schema(headers=True).field("headers").type
# Around the twelve bytes that fit into Arrow's view itself, and longer than a page.
VALUES = st.one_of(
    st.none(), st.binary(max_size=40), st.binary(min_size=10, max_size=14), st.just(b"long" * 5_000), st.just(b"")
)
NAMES = st.one_of(
    st.sampled_from(["trace", "", "\u00e9"]), st.text(st.characters(codec="utf-8", exclude_characters="\0"), max_size=5)
)
PAIRS = st.lists(st.tuples(NAMES, st.one_of(st.none(), st.binary(max_size=20))), max_size=30)
STAMPS = st.sampled_from([1, 1_700_000_000_000, 2**62])
RECORDS = st.lists(st.tuples(VALUES, VALUES, st.one_of(st.none(), PAIRS), STAMPS), min_size=1, max_size=12)


@pytest.fixture(
    params=[pytest.param(copy_interpreted, id="interpreted"), pytest.param(copy_compiled, id="compiled")],
    scope="module",
)
def copy(request: pytest.FixtureRequest) -> ModuleType:
    """Each of the two."""
    if request.param is None:
        pytest.skip("the copying is not compiled here: it takes a C compiler and another install")
    found: ModuleType = request.param
    return found


@pytest.fixture(scope="module")
def mock() -> Iterator[MockCluster]:
    """A broker in this process."""
    with MockCluster((None,)) as cluster:
        cluster.create("t", [1])
        yield cluster


@pytest.fixture(scope="module")
def producer(mock: MockCluster) -> Producer:
    """A client that sends at once."""
    return Producer({"bootstrap.servers": mock.bootstrap_servers, "linger.ms": 0})


@pytest.fixture(scope="module")
def consumer(mock: MockCluster) -> Iterator[NativeConsumer]:
    """A client that reports the end of the log among the records."""
    config = {
        "bootstrap.servers": mock.bootstrap_servers,
        "group.id": "g",
        "enable.partition.eof": True,
        "fetch.wait.max.ms": 5,
        "fetch.queue.backoff.ms": 1,
    }
    with closing(NativeConsumer(config)) as opened:
        yield opened


def send(producer: Producer, records: list[Any]) -> int:
    """Write records; return the offset of the first."""
    offsets: list[int] = []
    for key, value, pairs, stamp in records:
        producer.produce(
            "t",
            value,
            key,
            0,
            timestamp=stamp,
            headers=pairs,
            on_delivery=lambda _, sent: offsets.append(sent.offset() or 0),
        )
    assert producer.flush(20) == 0
    return min(offsets)


def place(values: list[bytes | None]) -> tuple[list[ctypes.Array[ctypes.c_char]], list[int], list[int]]:
    """Put each value at a separate address; None is at address 0."""
    held = [ctypes.create_string_buffer(value, len(value)) for value in values if value is not None]
    rest = iter(held)
    addresses = [0 if value is None else ctypes.addressof(next(rest)) for value in values]
    return held, addresses, [len(value or b"") for value in values]


def read(consumer: NativeConsumer, copy: ModuleType, begin: int, count: int) -> tuple[list[Any], int]:
    """Copy these records and then free them; return them, and the number of ends of the log among them."""
    consumer.assign([Range("t", 0, begin, begin + count)])
    found: list[Any] = []
    ends, deadline = 0, time.monotonic() + 30
    while len(found) < count or not ends:
        assert time.monotonic() < deadline, f"{len(found)} of {count} records came"
        messages = consumer.consume(100, 0.02)
        addresses = messages.addresses
        try:
            structs_found = copy.records(addresses)
            failed = structs_found["error"] != 0
            ends += int((structs_found["error"][failed] == KafkaError._PARTITION_EOF).sum())
            assert (structs_found["timestamp"][failed] == -1).all()
            kept = structs_found[~failed]
            columns = [
                copy.binary(kept["key"], kept["key_bytes"]),
                copy.binary(kept["value"], kept["value_bytes"]),
                copy.headers(addresses[~failed], HEADERS),
            ]
        finally:  # else a failing test would hang, as its consumer waits for its records
            copy.destroy(addresses)
        for column in columns:
            column.validate(full=True)
        lists = [column.to_pylist() for column in columns]
        found += zip(*lists, kept["timestamp"].tolist(), kept["offset"].tolist(), strict=True)
    return found, ends


@settings(max_examples=15, deadline=None)
@given(records=RECORDS)
def test_records_are_copied_as_they_were_sent(
    copy: ModuleType, producer: Producer, consumer: NativeConsumer, records: list[Any]
) -> None:
    """Tombstones, empty and null keys, large values, no, empty and many headers, and an event among the records."""
    begin = send(producer, records)
    found, ends = read(consumer, copy, begin, len(records))
    assert ends
    assert found == [
        (key, value, [{"key": name, "value": one} for name, one in pairs] if pairs else None, stamp, begin + number)
        for number, (key, value, pairs, stamp) in enumerate(records)
    ]


def test_a_header_name_that_is_not_text_is_replaced(
    copy: ModuleType, producer: Producer, consumer: NativeConsumer
) -> None:
    """A producer in another language may write any bytes; such a name must not stop its topic."""
    begin = send(producer, [(None, b"v", [("plain", b"1")], 1), (None, b"v", [("caf?", None), ("after", b"")], 1)])
    consumer.assign([Range("t", 0, begin, begin + 2)])
    kept: list[int] = []
    deadline = time.monotonic() + 30
    while len(kept) < 2:
        assert time.monotonic() < deadline
        addresses = consumer.consume(100, 0.02).addresses
        failed = copy.records(addresses)["error"] != 0
        kept += addresses[~failed].tolist()
        copy.destroy(addresses[failed])
    try:
        _spoil(kept[1])
        found = copy.headers(np.array(kept, np.uint64), HEADERS).to_pylist()
    finally:
        copy.destroy(np.array(kept, np.uint64))
    assert found == [
        [{"key": "plain", "value": b"1"}],
        [{"key": "caf\ufffd", "value": None}, {"key": "after", "value": b""}],
    ]


def _spoil(address: int) -> None:
    """Change the question mark in the first header's name to a byte that is not UTF-8."""
    functions = library()
    handle, name, value, size = ctypes.c_void_p(), ctypes.c_void_p(), ctypes.c_void_p(), ctypes.c_size_t()
    assert functions.rd_kafka_message_headers(address, ctypes.byref(handle)) == 0
    pointers = ctypes.byref(name), ctypes.byref(value), ctypes.byref(size)
    assert functions.rd_kafka_header_get_all(handle, 0, *pointers) == 0
    assert name.value is not None
    ctypes.memset(name.value + 3, 0xE9, 1)


@given(values=st.lists(VALUES))
def test_values_come_back_as_they_were(copy: ModuleType, values: list[bytes | None]) -> None:
    """Nulls, empty values, and lengths around the twelve bytes that fit into a view itself."""
    held, addresses, lengths = place(values)
    found = copy.binary(np.array(addresses, np.uint64), np.array(lengths, np.int64))
    found.validate(full=True)
    assert found.to_pylist() == values
    del held


def test_the_copy_outlives_the_memory(copy: ModuleType) -> None:
    """Librdkafka frees its records right after."""
    held, addresses, lengths = place([b"x" * 100, b"short"])
    found = copy.binary(np.array(addresses, np.uint64), np.array(lengths))
    for one in held:
        ctypes.memset(one, 0, len(one))
    assert found.to_pylist() == [b"x" * 100, b"short"]


def test_nothing_behind_a_value_is_read(copy: ModuleType) -> None:
    """The value ends where the process's memory does: one byte more would end the process."""
    area = mmap.mmap(-1, 2 * mmap.PAGESIZE)
    base = ctypes.addressof(ctypes.c_char.from_buffer(area))
    libc = ctypes.CDLL(None)
    edge = base + mmap.PAGESIZE
    assert libc.mprotect(ctypes.c_void_p(edge), mmap.PAGESIZE, 0) == 0
    try:
        for length in (1, 5, 12, 13, 72, 200):
            ctypes.memset(edge - length, 65, length)
            found = copy.binary(np.array([edge - length], np.uint64), np.array([length]))
            assert found.to_pylist() == [b"A" * length]
    finally:
        libc.mprotect(ctypes.c_void_p(edge), mmap.PAGESIZE, mmap.PROT_READ | mmap.PROT_WRITE)


@pytest.mark.skipif(copy_compiled is None, reason="the copying is not compiled here")
@pytest.mark.parametrize("lengths", [[2**30, 2**30], [2**31], [2**63, 2**63]], ids=["together", "one", "wrapping"])
def test_more_than_an_array_holds_is_refused_before_it_is_read(lengths: list[int]) -> None:
    """Offsets of Arrow's binary arrays have 31 bits: a wrapped one would read another record's bytes."""
    with pytest.raises(pa.ArrowInvalid, match="2 GiB"):
        copy_compiled.binary(np.full(len(lengths), 8, np.uint64), np.array(lengths, np.uint64))


def test_structs_are_read_by_their_layout() -> None:
    """As C lays them out, padding included."""
    layout = np.dtype({"names": ["a", "b"], "formats": ["i4", "i8"], "offsets": [0, 8], "itemsize": 16})
    held = [np.array([(n, -n)], layout) for n in range(50)]
    found = structs(np.array([one.ctypes.data for one in held], np.uint64), layout)
    assert found["a"].tolist() == list(range(50))
    assert found["b"].tolist() == [-n for n in range(50)]
    assert len(structs(np.empty(0, np.uint64), layout)) == 0


def test_the_copying_is_compiled_where_there_is_a_compiler() -> None:
    """An install that could have compiled it and did not takes more time for each record, without a word."""
    compiler = shutil.which((sysconfig.get_config_var("CC") or "cc").split()[0])
    if compiler is None or not Path(sysconfig.get_path("include"), "Python.h").exists():
        pytest.skip("no C compiler, or no headers of Python's")
    assert message_copy.COMPILED
