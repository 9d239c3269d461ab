"""Records of a response: exactly those that were written, and nothing of a damaged one."""

import contextlib
import struct
from typing import Any, cast

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pytest
from hypothesis import given
from hypothesis import strategies as st

pytest.importorskip("spark_sink.fetch.from_leaders.batch_decoder_compiled", reason="needs a C compiler at the build")

from spark_sink.fetch.from_leaders.fetch_format import Answered
from spark_sink.fetch.from_leaders.response_records import ResponseRecords
from spark_sink.fetch.from_leaders.wire_format import WireError
from spark_sink.fetch.raw_columns import arrow_schema
from spark_sink.ranges.batch_offset import TopicPartition
from tests.unit.spark_sink.fetch.from_leaders.batch_writer import Sent, written

SCHEMA = arrow_schema(headers=True, timestamp_type=True)
KEY = TopicPartition("t", 3)
CONTENT = st.one_of(st.none(), st.binary(max_size=20), st.binary(min_size=120, max_size=300))
HEADERS = st.lists(st.tuples(st.text(max_size=5), st.one_of(st.none(), st.binary(max_size=9))), max_size=3).map(tuple)


@st.composite
def batches(draw: st.DrawFn) -> list[tuple[list[Sent], int, dict[str, Any]]]:
    """Batches of ascending offsets with gaps, each with its last offset and its attributes."""
    found, at = [], draw(st.integers(0, 2**33))
    for _ in range(draw(st.integers(1, 4))):
        records = []
        for _ in range(draw(st.integers(1, 5))):
            stamp = draw(st.sampled_from([-1, 0, 5, 1_700_000_000_000, 2**53]))
            records.append(Sent(at, stamp, draw(CONTENT), draw(CONTENT), draw(HEADERS)))
            at += draw(st.integers(1, 3))
        last = at - 1 + draw(st.integers(0, 2))
        at = last + 1
        more = draw(
            st.fixed_dictionaries(
                {
                    "codec": st.sampled_from([0, 0, 1, 2, 3, 4]),
                    "append_time": st.sampled_from([None, None, 77]),
                    "control": st.sampled_from([False, False, False, True]),
                }
            )
        )
        found.append((records, last, more))
    return found


def answered(size: int, begin: int = 0) -> Answered:
    """A partition without an error."""
    return Answered(KEY, 0, aborted=False, replica=-1, begin=begin, size=size)


def rows(records: ResponseRecords, batch_bytes: int = 1 << 20) -> list[dict[str, Any]]:
    """All rows, checked by Arrow."""
    table = pa.Table.from_batches(records.batches(SCHEMA, batch_bytes), SCHEMA)
    table.validate(full=True)
    # Python has no times after the year 9999.
    milliseconds = pc.divide(table["timestamp"].cast(pa.int64()), 1000)
    return cast("list[dict[str, Any]]", table.set_column(3, "timestamp", milliseconds).to_pylist())


def expected(found: list[tuple[list[Sent], int, dict[str, Any]]], begin: int, end: int) -> list[tuple[Any, ...]]:
    """The records of a range, as rows show them."""
    return [
        (
            one.offset,
            more["append_time"] if more["append_time"] is not None else one.timestamp,
            int(more["append_time"] is not None),
            one.key,
            one.value,
            [{"key": name.partition("\0")[0], "value": value} for name, value in one.headers] or None,
        )
        for sent, _, more in found
        for one in sent
        if begin <= one.offset < end and not more["control"]
    ]


def shown(row: dict[str, Any]) -> tuple[Any, ...]:
    """A row in the form of `expected`."""
    stamp = -1 if row["timestamp"] is None else row["timestamp"]
    return row["offset"], stamp, row["timestampType"], row["key"], row["value"], row["headers"]


@given(batches(), st.data())
def test_the_records_of_a_range_are_those_that_were_written(
    found: list[tuple[list[Sent], int, dict[str, Any]]], data: st.DataObject
) -> None:
    """With gaps, markers, any codec, each kind of time, and a last batch that the response cuts off."""
    parts = [written(sent, last, **more) for sent, last, more in found]
    content = b"".join(parts)
    cut = data.draw(st.integers(0, len(content)))
    ends = [sum(map(len, parts[: n + 1])) for n in range(len(parts))]
    complete = found[: sum(end <= cut for end in ends)]
    first, last = found[0][0][0].offset, found[-1][1]
    begin = data.draw(st.integers(max(0, first - 1), last))
    end = data.draw(st.integers(begin + 1, last + 2))
    records = ResponseRecords(memoryview(content[:cut]), [(answered(cut), (begin, end))])
    read = rows(records, data.draw(st.sampled_from([1, 200, 1 << 20])))
    assert [shown(row) for row in read] == expected(complete, begin, end)
    (one,) = records.read
    assert one.whole
    reached = max(begin, complete[-1][1] + 1) if complete else begin
    assert one.position == reached or end <= one.position < reached  # batches behind the range may stay compressed
    assert {row["topic"] for row in read} <= {"t"}
    assert {row["partition"] for row in read} <= {3}


@given(batches(), st.data())
def test_damage_stays_inside_the_response(
    found: list[tuple[list[Sent], int, dict[str, Any]]], data: st.DataObject
) -> None:
    """A length that a flipped bit makes larger would show memory of the process as a record."""
    content = bytearray(b"".join(written(sent, last, **{**more, "codec": 0}) for sent, last, more in found))
    for at in data.draw(st.lists(st.integers(0, len(content) - 1), min_size=1, max_size=8)):
        content[at] = data.draw(st.integers(0, 255))
    records = ResponseRecords(memoryview(content), [(answered(len(content)), (0, 2**62))])
    kept, begin = records.records[: records.read[0].last], np.frombuffer(content, np.uint8).ctypes.data
    for name in ("key", "value", "headers"):
        some = kept[kept[name] != 0]
        assert (some[name] >= begin).all()
        assert (some[name] + some[f"{name}_bytes"] <= begin + len(content)).all()
    with contextlib.suppress(WireError):  # the headers are read with the batches
        rows(records)


def test_what_cannot_be_read_here_is_said_and_the_rest_is_read() -> None:
    """A codec that is not known yet, and topics may still have messages in the format before 2017."""
    good = written([Sent(4, 1, b"k", b"v")], 4)
    later = bytearray(written([Sent(5, 1, b"k", b"v")], 5, codec=1))
    struct.pack_into(">h", later, 21, 5)
    old = bytearray(written([Sent(5, 1, b"k", b"v")], 5))
    old[16] = 1
    zipped = bytearray(written([Sent(5, 1, b"k", b"v")], 5, codec=1))
    zipped[-9] ^= 0xFF
    for bad, offsets in ((later, []), (old, [4]), (zipped, [])):
        content = memoryview(good + bytes(bad))
        records = ResponseRecords(content, [(answered(len(content)), (0, 9))])
        assert not records.read[0].whole
        assert [row["offset"] for row in rows(records)] == offsets
        assert records.read[0].position == (5 if offsets else 0)


def test_partitions_of_a_response_keep_their_names() -> None:
    """Batches hold records of several partitions, also of those without a record."""
    parts = [written([Sent(n, 1, None, bytes([n]))], n) for n in range(4)]
    content = b"".join(parts)
    places = [sum(map(len, parts[:n])) for n in range(4)]
    keys = [TopicPartition("a", 0), TopicPartition("b", 7), TopicPartition("b", 8), TopicPartition("c", 1)]
    asked = [
        (Answered(key, 0, aborted=False, replica=-1, begin=at, size=len(part)), (0, 9 if n != 2 else 1))
        for n, (key, at, part) in enumerate(zip(keys, places, parts, strict=True))
    ]
    read = rows(ResponseRecords(memoryview(content), asked))
    assert [(row["topic"], row["partition"], row["value"]) for row in read] == [
        ("a", 0, b"\0"),
        ("b", 7, b"\1"),
        ("c", 1, b"\3"),
    ]


@pytest.mark.parametrize(
    ("offsets", "last"),
    [([4, 5, 9], 8), ([4, 5, 5], 9), ([4, 6, 5], 9), ([4, 5], 3)],
    ids=["beyond its last", "twice", "not ascending", "negative"],
)
def test_a_batch_whose_offsets_do_not_ascend_is_not_read(offsets: list[int], last: int) -> None:
    """Its records would come twice, or be asked for again and again."""
    content = memoryview(written([Sent(at, 1, None, b"v") for at in offsets], last))
    records = ResponseRecords(content, [(answered(len(content)), (4, 99))])
    assert not records.read[0].whole
    assert records.read[0].position == 4
    assert rows(records) == []


def test_batches_that_overlap_are_read_once() -> None:
    """The second one is left to librdkafka."""
    content = memoryview(written([Sent(4, 1, None, b"v")], 6) + written([Sent(6, 1, None, b"v")], 6))
    records = ResponseRecords(content, [(answered(len(content)), (4, 99))])
    assert ([row["offset"] for row in rows(records)], records.read[0].whole) == ([4], False)


@pytest.mark.parametrize("count", [0, 1, 2])
@pytest.mark.parametrize("codec", [0, 4])
def test_a_batch_that_has_more_records_than_it_says_is_left_to_librdkafka(count: int, codec: int) -> None:
    """Librdkafka reads to the end of the batch; here the rest of it would be passed over."""
    batch = bytearray(written([Sent(at, 1, None, b"v") for at in (4, 5, 6)], 6, codec=codec))
    struct.pack_into(">i", batch, 57, count)
    records = ResponseRecords(memoryview(batch), [(answered(len(batch)), (4, 99))])
    assert (rows(records), records.read[0].position, records.read[0].whole) == ([], 4, False)
