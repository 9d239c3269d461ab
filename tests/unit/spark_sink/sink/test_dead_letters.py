"""What is published of a quarantine, with a Kafka that is a list."""

from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from deltalake import write_deltalake

from spark_sink.errors import DeadLetterError
from spark_sink.formats.quarantined_rows import SCHEMA, python_rows, quarantine_of
from spark_sink.ranges.batch_offset import TopicPartition
from spark_sink.sink import dead_letters as module
from spark_sink.sink.dead_letters import DeadLetters, Published, Quarantine, decode, decode_key, encode_key, headers

ROW: dict[str, Any] = {
    "topic": "t",
    "partition": 3,
    "offset": 41,
    "timestamp": datetime(2026, 1, 2, tzinfo=UTC),
    "key": b"k",
    "value": b"v",
    "headers": [{"key": "trace", "value": b"\x00\x01"}],
    "error_class": "JsonError",
    "error_text": "no number: é",
    "schema_id": None,
    "run_id": "r",
    "ingested_at": datetime(2026, 1, 3, tzinfo=UTC),
}


def add(table: str, *places: tuple[str, int, int]) -> None:
    """Add records to a quarantine, in one commit."""
    rows = [{**ROW, "topic": topic, "partition": n, "offset": at} for topic, n, at in places]
    write_deltalake(quarantine_of(table), pa.Table.from_pylist(rows, schema=SCHEMA), mode="append")


class Kafka(DeadLetters):
    """A publisher whose transactions are a list; it may fail before or after one."""

    def __init__(self) -> None:
        self._topic, self._group, self._failures = "dlq", "g", []
        self._done = {}
        self.transactions: list[list[tuple[str, int, int]]] = []

    def _send(self, rows: Any, ends: Any) -> None:  # noqa: ANN401 -- as in the publisher
        assert ends
        self.transactions.append([(row["topic"], row["partition"], row["offset"]) for row in rows])


def test_the_headers_are_those_of_the_record_and_of_kafka_connect() -> None:
    """Tools that read Connect's dead letters read these."""
    (row,) = python_rows(pa.Table.from_pylist([ROW], schema=SCHEMA))
    found = headers(row, "g")
    assert found[0] == ("trace", b"\x00\x01")
    assert dict(found[1:]) == {
        "__connect.errors.topic": b"t",
        "__connect.errors.partition": b"3",
        "__connect.errors.offset": b"41",
        "__connect.errors.connector.name": b"g",
        "__connect.errors.stage": b"VALUE_CONVERTER",
        "__connect.errors.exception.class.name": b"JsonError",
        "__connect.errors.exception.message": "no number: é".encode(),
        "__azimuth.errors.timestamp.ms": b"1767312000000",
    }


def test_a_next_offset_is_read_as_it_was_written() -> None:
    """Foreign records are ignored."""
    name = Published("dlq", "id", TopicPartition("a.b", 7))
    assert decode_key(encode_key(name)) == name
    assert [decode_key(key) for key in (None, b"", b"a/b/c", b"a/b/c/x", b"\xff/b/c/1")] == [None] * 5
    assert decode(b'{"v":1,"next":5}') == 5
    assert [decode(one) for one in (None, b"{", b"[]", b'{"v":2,"next":5}', b'{"v":1,"next":-1}')] == [None] * 5


def test_each_record_is_published_once_in_the_order_of_offsets(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whatever the order of the files, and however many transactions it takes."""
    monkeypatch.setattr(module, "_PART", 3)
    table = str(tmp_path / "t")
    add(table, ("b", 0, 9), ("a", 1, 4), ("a", 0, 7))
    add(table, ("a", 1, 5), ("a", 0, 8), ("b", 0, 12))
    kafka = Kafka()
    found = Quarantine.of(table)
    assert found is not None
    assert kafka.publish(found) == 6
    assert kafka.transactions == [[("a", 0, 7), ("a", 0, 8), ("a", 1, 4)], [("a", 1, 5), ("b", 0, 9), ("b", 0, 12)]]
    add(table, ("a", 1, 6), ("c", 0, 0))
    again = Quarantine.of(table)
    assert again is not None
    assert kafka.publish(again) == 2
    assert kafka.transactions[2] == [("a", 1, 6), ("c", 0, 0)]
    assert kafka.publish(again) == 0


@pytest.mark.parametrize("milliseconds", [1_700_000_000_000_000, 253_402_300_800_000, -62_135_596_800_001, -1])
def test_a_record_of_any_time_is_published(tmp_path: Path, milliseconds: int) -> None:
    """A producer may write microseconds as milliseconds, and that record must not stop those after it."""
    table = str(tmp_path / "t")
    rows = pa.Table.from_pylist([ROW, ROW], schema=SCHEMA)
    number = SCHEMA.get_field_index("timestamp")
    times = pa.array([milliseconds * 1000] * 2, pa.int64()).cast(SCHEMA.field(number).type)
    write_deltalake(quarantine_of(table), rows.set_column(number, SCHEMA.field(number), times))
    sent: list[str | bytes | None] = []

    class Headers(Kafka):
        def _send(self, rows: Any, ends: Any) -> None:  # noqa: ANN401, ARG002 -- as in the publisher
            sent.extend(dict(headers(row, "g"))["__azimuth.errors.timestamp.ms"] for row in rows)

    found = Quarantine.of(table)
    assert found is not None
    assert Headers().publish(found) == 2
    assert sent == [b"%d" % milliseconds] * 2


def test_a_failed_transaction_is_repeated_whole(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its next offsets do not count either."""
    table = str(tmp_path / "t")
    add(table, ("a", 0, 7), ("a", 0, 8))
    kafka, found = Kafka(), Quarantine.of(table)
    assert found is not None

    def fail(*_: object) -> None:
        raise DeadLetterError("no answer")

    with monkeypatch.context() as failing:
        failing.setattr(Kafka, "_send", fail)
        with pytest.raises(DeadLetterError):
            kafka.publish(found)
    assert kafka.publish(found) == 2


def test_a_table_without_a_quarantine_has_nothing_to_publish(tmp_path: Path) -> None:
    """It is created with the first bad record."""
    assert Quarantine.of(str(tmp_path / "t")) is None


def test_a_quarantine_of_very_many_partitions_is_published(tmp_path: Path) -> None:
    """A filter that names them one inside the other ends the process without a message."""
    add(str(tmp_path / "t"), ("t", 0, 1), ("t", 1, 1))
    kafka, found = Kafka(), Quarantine.of(str(tmp_path / "t"))
    assert found is not None
    kafka._done = {Published("dlq", found.id, TopicPartition("t", n)): 9 for n in range(1, 20_000)}
    assert kafka.publish(found) == 1
    assert kafka.transactions == [[("t", 0, 1)]]
