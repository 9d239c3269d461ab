"""The partition of each row: the same as pyiceberg's, and each row in exactly one."""

import random
from collections import Counter
from datetime import date
from typing import Any

import pyarrow as pa
import pytest
from pyiceberg.transforms import BucketTransform, DayTransform, IdentityTransform
from pyiceberg.types import BinaryType, DateType, IcebergType, IntegerType, LongType, StringType, TimestamptzType

from spark_sink.errors import OptionError, SchemaError
from spark_sink.lake.iceberg.partition_terms import (
    check_terms,
    parse_terms,
    partitioned,
    spec_of,
    terms_of,
    transformed,
)
from spark_sink.lake.table_settings import Term

TIME = pa.timestamp("us", tz="UTC")
KINDS: dict[str, tuple[pa.DataType, IcebergType, list[Any]]] = {
    "text": (pa.string(), StringType(), ["", "a", "é", "x" * 40]),
    "bytes": (pa.binary(), BinaryType(), [b"", b"\xff", b"abc"]),
    "int": (pa.int32(), IntegerType(), [0, -1, 34, 2**31 - 1]),
    "long": (pa.int64(), LongType(), [0, -1, 34, 2**62]),
    "date": (pa.date32(), DateType(), [date(1970, 1, 1), date(1969, 12, 31), date(2026, 2, 1)]),
    "time": (TIME, TimestamptzType(), [0, -1, 86_400_000_000, -86_400_000_001, 2**60]),
}


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("count", [1, 16, 2**31 - 1])
def test_buckets_are_those_of_iceberg(kind: str, count: int) -> None:
    """Other engines prune by them, so another hash would hide rows."""
    arrow, own, values = KINDS[kind]
    column = pa.chunked_array([pa.array(values, arrow), pa.array([None], arrow)])
    peer = BucketTransform(count).transform(own)
    expected = [peer(one) for one in values]
    assert transformed(column, Term("x", "bucket", count)).to_pylist() == [*expected, None]


@pytest.mark.parametrize("kind", ["date", "time"])
def test_days_are_those_of_iceberg(kind: str) -> None:
    """Also before 1970 and after the year 9999, which Python's calendar lacks."""
    arrow, own, values = KINDS[kind]
    column = pa.chunked_array([pa.array([*values, None], arrow)])
    peer = DayTransform().transform(own)
    assert transformed(column, Term("x", "day")).to_pylist() == [*(peer(one) for one in values), None]


def test_each_row_is_in_the_partition_of_its_values() -> None:
    """No row is lost at a missing value, and none is in two partitions."""
    drawn = random.Random(7)
    rows = pa.table(
        {
            "topic": pa.array([drawn.choice(["a", "b", None]) for _ in range(200)], pa.string()),
            "offset": pa.array(range(200), pa.int64()),
            "timestamp": pa.array([drawn.choice([0, 86_400_000_000, None]) for _ in range(200)], TIME),
        }
    )
    found = list(partitioned(rows, parse_terms("topic, day(timestamp), bucket(3, offset)")))
    assert sum(part.num_rows for _, part in found) == 200
    assert Counter(one for _, part in found for one in part["offset"].to_pylist()) == Counter(range(200))
    for (topic, day, bucket), part in found:
        assert set(part["topic"].to_pylist()) == {topic}
        assert {None if one is None else one.timestamp() // 86_400 for one in part["timestamp"].to_pylist()} == {day}
        assert {BucketTransform(3).transform(LongType())(one) for one in part["offset"].to_pylist()} == {bucket}
    assert len({values for values, _ in found}) == len(found)


@pytest.mark.parametrize(
    ("text", "terms"),
    [
        ("", ()),
        ("topic", (Term("topic"),)),
        (
            " topic , days(timestamp),bucket( 16 , key)",
            (Term("topic"), Term("timestamp", "day"), Term("key", "bucket", 16)),
        ),
    ],
    ids=["none", "a column", "all"],
)
def test_terms_are_read_as_spark_and_pyiceberg_write_them(text: str, terms: tuple[Term, ...]) -> None:
    """And written back in one form."""
    assert parse_terms(text) == terms == parse_terms(", ".join(map(str, terms)))


@pytest.mark.parametrize(
    "text", ["hour(timestamp)", "bucket(key)", "bucket(0, key)", "bucket(16, key", "a, a", "day()"]
)
def test_another_form_is_refused_with_the_forms_that_there_are(text: str) -> None:
    """A misspelled transform must not become the name of a column."""
    with pytest.raises(OptionError, match=r"need a column, day\(column\) or bucket\(N, column\)|has a term twice"):
        parse_terms(text)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("none", "partition column 'none' is not among the columns"),
        ("day(topic)", r"day\(topic\) does not take a column of type string"),
        ("weight", "weight does not take a column of type double"),
        ("bucket(4, weight)", r"bucket\(4, weight\) does not take"),
    ],
)
def test_a_column_that_does_not_fit_is_named(text: str, said: str) -> None:
    """Before the first file is written."""
    with pytest.raises(SchemaError, match=said):
        check_terms(pa.schema([("topic", pa.string()), ("weight", pa.float64())]), parse_terms(text))


def test_a_partitioning_is_read_back() -> None:
    """From the table's metadata; None if it has a transform that is not supported."""
    from spark_sink.lake.iceberg.columns import numbered  # noqa: PLC0415 -- imports pyiceberg

    schema = numbered(pa.schema([("topic", pa.string()), ("timestamp", TIME), ("key", pa.binary())]))
    terms = parse_terms("topic, day(timestamp), bucket(16, key)")
    spec = spec_of(terms, schema)
    assert [one.name for one in spec.fields] == ["topic", "timestamp_day", "key_bucket"]
    assert isinstance(spec.fields[0].transform, IdentityTransform)
    assert terms_of(spec, schema) == terms
