"""What is published of a quarantine, with a Kafka that is a list."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from deltalake import write_deltalake

from spark_sink.errors import DeadLetterError
from spark_sink.formats.bad_values_quarantined import SCHEMA
from spark_sink.formats.quarantine_addresses import quarantine_of
from spark_sink.ranges.batch_offset import TopicPartition
from spark_sink.sink.quarantine import dead_letter_publisher as module
from spark_sink.sink.quarantine.dead_letter_progress import Published, decode, decode_key, encode_key
from spark_sink.sink.quarantine.dead_letter_publisher import DeadLetters, Sent
from spark_sink.sink.quarantine.dead_letter_records import Letter, wire_bytes
from spark_sink.sink.quarantine.quarantine_version import Quarantine

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


def add(table: str, *places: tuple[str, int, int], values: Sequence[bytes] = ()) -> None:
    """Add records to a quarantine, in one commit."""
    rows = [{**ROW, "topic": topic, "partition": n, "offset": at} for topic, n, at in places]
    rows = [{**row, "value": value} for row, value in zip(rows, values, strict=True)] if values else rows
    write_deltalake(quarantine_of(table), pa.Table.from_pylist(rows, schema=SCHEMA), mode="append")


def place(one: Letter) -> tuple[str, int, int]:
    """The source of a dead letter, by its headers."""
    texts = dict(one.headers)
    named = [str(texts[f"__connect.errors.{name}"], "utf-8") for name in ("topic", "partition", "offset")]  # type: ignore[arg-type]  # bytes
    return named[0], int(named[1]), int(named[2])


class Kafka(DeadLetters):
    """A publisher whose transactions are a list, to a topic with a size of its largest batch in bytes.

    Args:
        largest: records that are sent together make one batch; None for a topic without a bound.
        compressed: whether sizes say nothing of which record is refused; then those with the value `b"x..."` are.
    """

    def __init__(self, largest: int | None = None, *, compressed: bool = False) -> None:
        self._topic, self._group, self._failures, self._warned = "dlq", "g", [], set()
        self._batch_bytes, self._compressed = 1_000_000, compressed
        self._done = {}
        self._largest = largest
        self.letters: list[Letter] = []
        self.transactions: list[list[tuple[str, int, int]]] = []
        self.attempts = 0

    def _use_smaller_batches(self) -> None:
        self._batch_bytes = next(size for size in module._SMALLER if size < self._batch_bytes)

    def _send(self, letters: Sequence[Letter], ends: Mapping[Published, int]) -> set[int]:
        assert ends
        self.attempts += 1
        if refused := self._refuses(letters):
            return refused
        self.letters += letters
        self.transactions.append([place(one) for one in letters])
        return set()

    def _refuses(self, letters: Sequence[Letter]) -> set[int]:
        if self._largest is None:
            return set()
        for batch in self._batches(letters):
            size = sum(wire_bytes(letters[number]) for number in batch)
            squeezed = self._compressed and not any((letters[n].value or b"").startswith(b"x") for n in batch)
            if size > self._largest and not squeezed:
                return set(batch)  # the other batches get no answer
        return set()

    def _batches(self, letters: Sequence[Letter]) -> list[list[int]]:
        """Numbers of letters as librdkafka groups them: a batch may exceed its size only by its first record."""
        found: list[list[int]] = []
        filled = self._batch_bytes
        for number, one in enumerate(letters):
            if filled + wire_bytes(one) > self._batch_bytes:
                found.append([])
                filled = 0
            found[-1].append(number)
            filled += wire_bytes(one)
        return found


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
    assert kafka.publish(found) == Sent(6)
    assert kafka.transactions == [[("a", 0, 7), ("a", 0, 8), ("a", 1, 4)], [("a", 1, 5), ("b", 0, 9), ("b", 0, 12)]]
    add(table, ("a", 1, 6), ("c", 0, 0))
    again = Quarantine.of(table)
    assert again is not None
    assert kafka.publish(again) == Sent(2)
    assert kafka.transactions[2] == [("a", 1, 6), ("c", 0, 0)]
    assert kafka.publish(again) == Sent(0)


def test_dead_letters_that_agents_read_again_are_not_published_again(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """Otherwise each is quarantined and published again and again: one pattern easily matches both topics."""
    table = str(tmp_path / "t")
    add(table, ("a", 0, 1), ("dlq", 0, 0), ("dlq@Hx2JPdmJRmGFMsLPKQSFuA", 0, 0), ("dlq2", 0, 5))
    kafka, found = Kafka(), Quarantine.of(table)
    assert found is not None
    assert kafka.publish(found) == Sent(2)
    assert kafka.transactions == [[("a", 0, 1), ("dlq2", 0, 5)]]
    assert kafka.publish(found) == Sent(0)
    (warning,) = caplog.messages
    assert "has dead letters of topic 'dlq', because agents read this topic, too" in warning


@pytest.mark.parametrize("milliseconds", [1_700_000_000_000_000, 253_402_300_800_000, -62_135_596_800_001, -1])
def test_a_record_of_any_time_is_published(tmp_path: Path, milliseconds: int) -> None:
    """A producer may write microseconds as milliseconds, and that record must not stop those after it."""
    table = str(tmp_path / "t")
    rows = pa.Table.from_pylist([ROW, ROW], schema=SCHEMA)
    number = SCHEMA.get_field_index("timestamp")
    times = pa.array([milliseconds * 1000] * 2, pa.int64()).cast(SCHEMA.field(number).type)
    write_deltalake(quarantine_of(table), rows.set_column(number, SCHEMA.field(number), times))
    kafka, found = Kafka(), Quarantine.of(table)
    assert found is not None
    assert kafka.publish(found) == Sent(2)
    sent = [dict(one.headers)["__azimuth.errors.timestamp.ms"] for one in kafka.letters]
    assert sent == [b"%d" % milliseconds] * 2


def test_publishers_of_two_groups_share_no_record(tmp_path: Path) -> None:
    """Each names its group in the header, and neither knows what the other has published since its start."""
    table = str(tmp_path / "table")
    add(table, ("a", 0, 1), ("b", 0, 1), ("unknown", 0, 1))
    found = Quarantine.of(table)
    assert found is not None
    shared = replace(found, groups={"g": frozenset({TopicPartition("a", 0)}), "h": frozenset({TopicPartition("b", 0)})})
    first, second = Kafka(), Kafka()
    second._group = "h"
    assert [first.publish(shared), second.publish(shared)] == [Sent(2), Sent(1)]
    assert [place(one) for one in first.letters] == [("a", 0, 1), ("unknown", 0, 1)]
    assert [place(one) for one in second.letters] == [("b", 0, 1)]


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
    assert kafka.publish(found) == Sent(2)


def test_a_table_without_a_quarantine_has_nothing_to_publish(tmp_path: Path) -> None:
    """It is created with the first bad record."""
    assert Quarantine.of(str(tmp_path / "t")) is None


def test_a_quarantine_of_very_many_partitions_is_published(tmp_path: Path) -> None:
    """A filter that names them one inside the other ends the process without a message."""
    add(str(tmp_path / "t"), ("t", 0, 1), ("t", 1, 1))
    kafka, found = Kafka(), Quarantine.of(str(tmp_path / "t"))
    assert found is not None
    kafka._done = {Published("dlq", found.id, TopicPartition("t", n)): 9 for n in range(1, 20_000)}
    assert kafka.publish(found) == Sent(1)
    assert kafka.transactions == [[("t", 0, 1)]]


SIZES = [10, 50_000, 20, 9_000, 70_000, 50_000, 30]


@pytest.mark.parametrize("compressed", [False, True], ids=["sizes count", "compressed"])
def test_records_that_are_too_large_are_stubs_and_the_others_continue(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, *, compressed: bool
) -> None:
    """One such record stopped the publisher: each attempt met it again, and nothing behind it was published."""
    table = str(tmp_path / "t")
    places = [("a", 0, at) for at in range(len(SIZES))]
    values = [(b"x" if size > 9_000 else b"v") * size for size in SIZES]
    add(table, *places, values=values)
    kafka, found = Kafka(20_000, compressed=compressed), Quarantine.of(table)
    assert found is not None
    assert kafka.publish(found) == Sent(7, 3)
    assert kafka.transactions == [places]
    assert [one.value for one in kafka.letters] == [b"" if size > 9_000 else b"v" * size for size in SIZES]
    stub = dict(kafka.letters[4].headers)
    assert (stub["__azimuth.errors.left.out"], stub["__azimuth.errors.value.bytes"]) == (b"value,headers", b"70000")
    assert stub["__azimuth.errors.quarantine"] == found.name.encode()
    (line,) = [record.getMessage() for record in caplog.records]
    assert "a/0 offset 1, a/0 offset 4, a/0 offset 5: published without the value" in line
    assert kafka.attempts == (5 if compressed else 3)  # with large batches, an attempt a refusal, with stubs


def test_a_record_above_the_size_of_a_batch_needs_no_smaller_batches(tmp_path: Path) -> None:
    """The bound of most topics is above the size of a batch, so the others stay in large batches."""
    table = str(tmp_path / "t")
    add(table, *[("a", 0, at) for at in range(3)], values=[b"v", b"x" * 1_100_000, b"v"])
    kafka, found = Kafka(1_048_588), Quarantine.of(table)
    assert found is not None
    assert kafka.publish(found) == Sent(3, 1)
    assert (kafka.attempts, kafka._batch_bytes) == (2, 1_000_000)


def test_an_attempt_names_all_that_are_at_least_as_large(tmp_path: Path) -> None:
    """Else a topic with a small bound would need an attempt for each of 10,000 records."""
    table = str(tmp_path / "t")
    add(table, *[("a", 0, at) for at in range(300)], values=[b"x" * (20_000 + at % 2) for at in range(300)])
    kafka, found = Kafka(17_000), Quarantine.of(table)
    assert found is not None
    assert kafka.publish(found) == Sent(300, 300)
    assert kafka.attempts == 3


@pytest.mark.parametrize(("largest", "batch"), [(20_000, 16_384), (1_500, 1)], ids=["batches", "each alone"])
def test_small_records_are_published_in_full_where_only_their_batch_was_too_large(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, largest: int, batch: int
) -> None:
    """A producer's batch has up to 1 MB, and a topic may take less."""
    monkeypatch.setattr(module, "_SMALL_PART", 40)
    table, places = str(tmp_path / "t"), [("a", 0, at) for at in range(99)]
    add(table, *places)
    kafka, found = Kafka(largest), Quarantine.of(table)
    assert found is not None
    assert kafka.publish(found) == Sent(99)
    assert kafka.transactions == [places[:40], places[40:80], places[80:]]
    assert kafka._batch_bytes == batch


def test_a_topic_that_takes_no_stub_is_one_sentence(tmp_path: Path) -> None:
    """It would take no dead letter at all, so nothing may count as published."""
    add(str(tmp_path / "t"), ("a", 0, 7))
    kafka, found = Kafka(100), Quarantine.of(str(tmp_path / "t"))
    assert found is not None
    with pytest.raises(DeadLetterError, match="a/0 offset 7 is too large, also without its value: raise the topic's"):
        kafka.publish(found)
    assert not kafka._done
