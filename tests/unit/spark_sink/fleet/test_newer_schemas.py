"""Fleets and claims give new fields of the subject's latest schema a column while they run."""

import itertools
import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from spark_sink import formats
from spark_sink.errors import TableError
from spark_sink.fetch.raw_columns import arrow_schema
from spark_sink.fleet import schema_in_use
from spark_sink.fleet.table_writer import TableWriter
from spark_sink.lake.holes_and_doubles import verify
from spark_sink.lake.table_formats import open_table
from spark_sink.options import topic_decoders
from spark_sink.ranges.batch_offset import Range
from spark_sink.sink.row_options import RowOptions
from spark_sink.source.union_read.stored_tables import open_tables
from tests.table_kinds import warehouse
from tests.unit.spark_sink.formats.registered import COUPON, Subject, flight_schema
from tests.waiting import wait_until

GATE = {"name": "gate", "type": "string", "default": ""}


@dataclass(frozen=True)
class _Records:
    """Records of one partition from offset `begin` on."""

    begin: int
    values: tuple[bytes, ...]

    def rows(self, only: set[str]) -> pa.Table:
        """As `RecordBuffer`."""
        assert only == {"t"}
        rows = [
            {"topic": "t", "partition": 0, "offset": at, "value": value}
            for at, value in enumerate(self.values, self.begin)
        ]
        return pa.Table.from_pylist(rows, schema=arrow_schema(headers=False))


class _Agent:
    """Writes records of one topic, as an agent of a fleet and a job of claims do."""

    def __init__(self, root: Path, kind: str, **changed: str) -> None:
        self.storage = warehouse(root) if kind == "iceberg" else {}
        self.address = "iceberg://lake.raw.t" if kind == "iceberg" else str(root / "t")
        given = {"valueFormat": "avro", "valueSubject": "{topic}-value", "mergeSchema": "true", **changed}
        rows = RowOptions.parse(given, {"url": "http://unused"}, table=self.address)
        self.writer = TableWriter(self.address, "g", "a", self.storage, rows=rows)
        self._at = 0

    def write(self, *values: bytes) -> None:
        """Write these records after those before."""
        records = _Records(self._at, values)
        files = self.writer.land(records, {"t"})
        self.writer.commit(files, [Range("t", 0, self._at, self._at + len(values))])
        self._at += len(values)

    def columns(self) -> dict[str, str]:
        """The table's columns of values, with their types."""
        snapshot = open_table(self.address, "g", self.storage).refresh()
        assert snapshot is not None
        return {one.name: str(one.type) for one in snapshot.schema if one.name in {"id", "coupon", "gate", "stops"}}

    def values(self, column: str) -> list[Any]:
        """The values of a column, by offset."""
        (stored,) = open_tables(self.address, self.storage)
        rows = [row for batch in stored.rows(["offset", column]) for row in batch.to_pylist()]
        return [row[column] for row in sorted(rows, key=lambda row: int(row["offset"]))]

    def rows(self) -> int:
        """The rows of the table, each record once."""
        report = verify(self.address, "g", self.storage)
        assert report.ok
        return report.rows


@pytest.fixture
def subject(monkeypatch: pytest.MonkeyPatch) -> Iterator[Subject]:
    """The registry of all decoders, asked before each batch."""
    found = Subject()
    monkeypatch.setattr(formats, "Registry", lambda *_, **__: found)
    monkeypatch.setattr(topic_decoders, "EVERY_S", 0)
    yield found
    found.answers.set()


@pytest.fixture(params=["delta", "iceberg"])
def agent(request: pytest.FixtureRequest, tmp_path: Path, subject: Subject) -> _Agent:
    """An agent that has written one record."""
    made = _Agent(tmp_path, request.param)
    made.write(subject.value(0, {"id": 1}))
    return made


def _write_until(agent: _Agent, value: bytes, column: str) -> None:
    def written() -> bool:
        agent.write(value)
        return column in agent.columns()

    wait_until(written, 30, f"the column {column}")


def test_a_field_of_a_newer_schema_gets_its_column_without_a_restart(agent: _Agent, subject: Subject) -> None:
    """With the type of the schema; older records stay, and each record is there once."""
    assert agent.columns() == {"id": "int64"}
    subject.add(flight_schema(COUPON))
    _write_until(agent, subject.value(1, {"id": 2, "coupon": 7}), "coupon")
    agent.write(subject.value(0, {"id": 3}))
    assert agent.columns() == {"id": "int64", "coupon": "int32"}
    assert agent.rows() == agent._at


def test_a_field_inside_a_record_is_taken_up_as_a_column_is(agent: _Agent, subject: Subject) -> None:
    """A record inside a list too; of a writer with the schema before, the field is null or its default."""
    subject.add(_nested({"name": "x", "type": "long"}))
    more = {"name": "y", "type": "string", "default": "none"}, {"name": "z", "type": ["null", "int"], "default": None}
    _write_until(agent, subject.value(1, {"id": 2, "stops": [{"x": 1}]}), "stops")
    assert "struct<x: int64>" in agent.columns()["stops"]
    subject.add(_nested({"name": "x", "type": "long"}, *more))

    def is_there() -> bool:
        agent.write(subject.value(2, {"id": 3, "stops": [{"x": 2, "y": "b", "z": 7}]}))
        return "z" in agent.columns()["stops"]

    wait_until(is_there, 30, "the fields")
    agent.write(subject.value(1, {"id": 4, "stops": [{"x": 3}]}))
    assert "struct<x: int64, y: string, z: int32>" in agent.columns()["stops"]
    assert agent.rows() == agent._at
    found = agent.values("stops")
    assert found[-2:] == [[{"x": 2, "y": "b", "z": 7}], [{"x": 3, "y": "none", "z": None}]]
    assert [{"x": 1, "y": None, "z": None}] in found


def _nested(*fields: Mapping[str, object]) -> dict[str, Any]:
    items = {"type": "record", "name": "Stop", "fields": [*fields]}
    return flight_schema({"name": "stops", "type": {"type": "array", "items": items}, "default": []})


def test_a_registry_that_never_answers_stops_no_agent(agent: _Agent, subject: Subject) -> None:
    """No call waits for it; its answer counts when it is there."""
    subject.add(flight_schema(COUPON))
    subject.answers.clear()
    for number in range(5):
        agent.write(subject.value(1, {"id": number, "coupon": 7}))
    assert agent.columns() == {"id": "int64"}
    assert agent.rows() == 6
    subject.answers.set()
    _write_until(agent, subject.value(1, {"id": 9, "coupon": 7}), "coupon")


def test_a_registry_that_is_down_is_logged_once(
    agent: _Agent, subject: Subject, capsys: pytest.CaptureFixture[str]
) -> None:
    """And asked again: its next answer counts."""
    subject.down = True
    for number in range(50):
        agent.write(subject.value(0, {"id": number}))
    subject.add(flight_schema(COUPON))
    subject.down = False
    _write_until(agent, subject.value(1, {"id": 9, "coupon": 7}), "coupon")
    assert capsys.readouterr().out.count("its latest schema was not read") == 1


@pytest.mark.parametrize(
    "latest",
    [
        flight_schema({"name": "timestamp", "type": ["null", "long"], "default": None}),
        flight_schema({"name": "ID", "type": ["null", "long"], "default": None}),
        {"type": "record", "name": "Flight", "fields": [{"name": "id", "type": "string"}, COUPON]},
        flight_schema({"name": "coupon", "type": ["null", "int"]}),
        flight_schema({"name": "coupon", "type": "Missing"}),
    ],
    ids=["a reserved name", "names that differ in case", "a changed type", "no default", "no schema"],
)
def test_a_latest_schema_that_cannot_be_written_stops_no_agent(
    agent: _Agent, subject: Subject, latest: Mapping[str, Any]
) -> None:
    """The schema before it stays in use, and a later one that only adds fields is taken up."""
    subject.add_text(json.dumps(latest))
    for number in range(10):
        agent.write(subject.value(0, {"id": number}))
    assert agent.columns() == {"id": "int64"}
    assert agent.rows() == agent._at  # none in the quarantine
    subject.add(flight_schema(COUPON, GATE))
    _write_until(agent, subject.value(2, {"id": 5, "coupon": 1, "gate": "A"}), "gate")
    assert agent.columns() == {"id": "int64", "coupon": "int32", "gate": "string"}


def test_a_table_that_cannot_be_read_is_asked_again(
    agent: _Agent, subject: Subject, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A storage that is away for a moment must not leave the field without a column until a restart."""
    subject.add(flight_schema(COUPON))
    failures = itertools.count()

    def away(*_: object) -> None:
        next(failures)
        raise TableError("the storage is away")

    def failed() -> bool:
        agent.write(subject.value(1, {"id": 2, "coupon": 7}))
        return next(failures) > 1

    with monkeypatch.context() as patch:
        patch.setattr(schema_in_use, "why_not", away)
        wait_until(failed, 30, "a look at the table")
    _write_until(agent, subject.value(1, {"id": 9, "coupon": 7}), "coupon")


@pytest.mark.parametrize("changed", [{"mergeSchema": "false"}, {"valueSchema": json.dumps(flight_schema())}], ids=str)
def test_columns_stay_where_the_table_may_not_change_or_the_schema_is_given(
    tmp_path: Path, subject: Subject, changed: dict[str, str]
) -> None:
    """The field is in `_rescued`, as before."""
    agent = _Agent(tmp_path, "delta", **changed)
    agent.write(subject.value(0, {"id": 1}))
    subject.add(flight_schema(COUPON))
    for number in range(10):
        agent.write(subject.value(1, {"id": number, "coupon": 7}))
    assert agent.columns() == {"id": "int64"}
    assert agent.rows() == 11


def test_files_of_the_columns_before_are_committed_after_a_newer_schema(agent: _Agent, subject: Subject) -> None:
    """A thread writes the next files while those before wait for their commit."""
    waiting = agent.writer.land(_Records(1, (subject.value(0, {"id": 2}),)), {"t"})
    subject.add(flight_schema(COUPON))
    later = _Records(2, (subject.value(1, {"id": 3, "coupon": 7}),))

    def follows() -> bool:
        return "coupon" in (agent.writer.land(later, {"t"}).columns or pa.schema([])).names

    wait_until(follows, 30, "the newer schema")
    agent.writer.commit(waiting, [Range("t", 0, 1, 2)])
    assert agent.rows() == 2
    agent.writer.commit(agent.writer.land(later, {"t"}), [Range("t", 0, 2, 3)])
    assert agent.columns() == {"id": "int64", "coupon": "int32"}
    assert agent.rows() == 3
