"""The Kafka records of dead letters."""

from typing import Any

import pyarrow as pa
import pytest

from spark_sink.formats.bad_values_quarantined import SCHEMA, python_rows
from spark_sink.sink.quarantine.dead_letter_records import Letter, letter, stub, wire_bytes
from tests.unit.spark_sink.sink.quarantine.test_dead_letter_publisher import ROW


def row(**changed: Any) -> dict[str, Any]:
    """A row of a quarantine."""
    (found,) = python_rows(pa.Table.from_pylist([{**ROW, **changed}], schema=SCHEMA))
    return found


REASON = {
    "__connect.errors.topic": b"t",
    "__connect.errors.partition": b"3",
    "__connect.errors.offset": b"41",
    "__connect.errors.connector.name": b"g",
    "__connect.errors.stage": b"VALUE_CONVERTER",
    "__connect.errors.exception.class.name": b"JsonError",
    "__connect.errors.exception.message": "no number: é".encode(),
    "__azimuth.errors.timestamp.ms": b"1767312000000",
}


def test_the_headers_are_those_of_the_record_and_of_kafka_connect() -> None:
    """Tools that read Connect's dead letters read these."""
    found = letter(row(), "g")
    assert (found.key, found.value, found.headers[0]) == (b"k", b"v", ("trace", b"\x00\x01"))
    assert dict(found.headers[1:]) == REASON


def test_a_stub_says_where_the_whole_record_is() -> None:
    """Nothing is lost: the quarantine has it, and the stub has the way there."""
    found = stub(row(value=b"v" * 2_000_000), "g", "s3://lake/t_quarantine")
    assert (found.key, found.value) == (b"k", b"")
    assert dict(found.headers) == REASON | {
        "__azimuth.errors.left.out": b"value,headers",
        "__azimuth.errors.value.bytes": b"2000000",
        "__azimuth.errors.quarantine": b"s3://lake/t_quarantine",
    }


@pytest.mark.parametrize(
    ("changed", "left_out"),
    [
        ({"key": b"k" * 2_000_000}, b"value,headers,key"),
        ({"value": None, "headers": [{"key": "h" * 2_000_000, "value": None}]}, b"headers"),
        ({"value": b"v" * 2_000_000, "headers": None, "error_text": "e" * 2_000_000}, b"value"),
        ({"value": b"v" * 2_000_000, "error_text": None}, b"value,headers"),
    ],
    ids=["key", "headers", "error", "no error"],
)
def test_a_stub_is_small_whatever_is_large(changed: dict[str, Any], left_out: bytes) -> None:
    """A stub that is refused stops the publisher."""
    found = stub(row(**changed), "g", "s3://lake/t_quarantine")
    assert wire_bytes(found) < 4096
    assert dict(found.headers)["__azimuth.errors.left.out"] == left_out


def test_a_stub_of_a_record_without_a_value_has_none_either() -> None:
    """And an empty value instead of a large one: null would delete the key in a compacted topic."""
    assert stub(row(value=None), "g", "q").value is None
    assert stub(row(value=b"v"), "g", "q").value == b""


@pytest.mark.parametrize(
    ("one", "size"),
    [
        (Letter("", None, None, []), 7),
        (Letter("", b"", b"", []), 7),
        (Letter("", b"k" * 63, b"v" * 64, []), 2 + 3 + 64 + 66 + 1),
        (Letter("", None, None, [("h", b"1"), ("é", "é"), ("n", None)]), 7 + 4 + 6 + 3),
    ],
    ids=["null", "empty", "two bytes of length", "headers"],
)
def test_the_size_of_a_record_is_that_of_kafka(one: Letter, size: int) -> None:
    """Records that are as large as a refused one are not tried, so a byte too many would leave out a value."""
    assert wire_bytes(one) == size
