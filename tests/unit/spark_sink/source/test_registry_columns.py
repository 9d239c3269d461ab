"""New fields of the subject's latest schema become columns of the table while the query runs."""

import json
from collections.abc import Mapping
from pathlib import Path

import pytest
from deltalake import DeltaTable, Field
from deltalake.schema import PrimitiveType
from pyspark.sql.pandas.types import from_arrow_schema

from spark_sink import formats
from spark_sink.errors import TableError
from spark_sink.lake.table_formats import open_table
from spark_sink.options.source_options import SourceOptions
from spark_sink.ranges.batch_offset import Offset, Range
from spark_sink.sink import delta_sink
from spark_sink.sink.delta_sink import DirectWriter
from spark_sink.sink.direct_landing import table_schema
from spark_sink.sink.rows_by_table import landed_schema
from spark_sink.sink.sink_options import SinkOptions
from spark_sink.source import registry_columns
from spark_sink.source.kafka_source import KafkaGroupSource
from spark_sink.source.registry_columns import RegistryColumns
from spark_sink.source.source_decoder import make_decoder
from tests.unit.spark_sink.formats.registered import COUPON, Subject, flight_schema
from tests.unit.spark_sink.source.test_table_columns import Log


class _Query:
    """`azimuth sink` without Spark, whose tasks write the files; a minute passes before each batch."""

    def __init__(self, root: Path, table: Mapping[str, str], **changed: str) -> None:
        both = {"kafka.bootstrap.servers": "b", "kafka.group.id": "g"}
        given = {**both, "subscribe": "t", "valueFormat": "avro", "schema.registry.url": "http://unused", **changed}
        merge = given.pop("mergeSchema", "true")
        sink = {**both, **table, "checkpointLocation": str(root / "checkpoint"), "mergeSchema": merge}
        first = make_decoder(SourceOptions.parse(given))
        assert first is not None
        sink["columns"] = from_arrow_schema(landed_schema(first, headers=False)).json()
        source = KafkaGroupSource({**given, "landing": json.dumps(sink)})
        self._reader = source.streamReader(source.schema())  # type: ignore[arg-type]  # as Spark calls it
        columns = self._reader._make_columns() if self._reader._per_batch else None
        if isinstance(columns, RegistryColumns):
            columns._clock = iter(range(10**6, 10**9, 60)).__next__
        self._reader._columns = columns
        self._writer = DirectWriter(SinkOptions.parse(sink), table_schema(sink))
        self._root, self._last, self._number = root / "checkpoint", Offset(), 0

    def batch(self, *ranges: Range) -> None:
        """Plan, run and commit a batch."""
        offset = Offset.of(ranges)
        tasks = self._reader.partitions(self._last.value(), offset.value())
        (self._root / "offsets").mkdir(parents=True, exist_ok=True)
        (self._root / "offsets" / str(self._number)).write_text(f"v1\n{{}}\n{json.dumps(offset.value())}")
        self._writer.commit([self._writer.write(self._reader.read(one)) for one in tasks], self._number)
        self._last, self._number = offset, self._number + 1


@pytest.fixture
def subject(monkeypatch: pytest.MonkeyPatch) -> Subject:
    """The registry of all decoders."""
    found = Subject()
    monkeypatch.setattr(formats, "Registry", lambda *_, **__: found)
    return found


@pytest.fixture
def log(monkeypatch: pytest.MonkeyPatch) -> Log:
    """Kafka."""
    log = Log()
    monkeypatch.setattr("spark_sink.fetch.range_reader.fetch", log.fetch)
    monkeypatch.setattr(delta_sink, "_KEPT", {})
    return log


@pytest.fixture(params=["delta", "iceberg"])
def table(request: pytest.FixtureRequest, tmp_path: Path) -> dict[str, str]:
    """The options of a table."""
    if request.param == "delta":
        return {"path": str(tmp_path / "table")}
    return {"path": "lake.raw.t", "tableFormat": "iceberg", "catalog.warehouse": str(tmp_path / "warehouse")}


def _columns(table: Mapping[str, str]) -> dict[str, str]:
    """The table's columns of values, with their types."""
    address = table["path"] if "tableFormat" not in table else f"iceberg://{table['path']}"
    storage = {name: text for name, text in table.items() if name.startswith("catalog.")}
    snapshot = open_table(address, "g", storage).refresh()
    assert snapshot is not None
    return {one.name: str(one.type) for one in snapshot.schema if one.name in {"id", "coupon", "gate", "_rescued"}}


def test_a_field_of_a_newer_schema_gets_its_column_without_a_restart(
    log: Log, subject: Subject, table: dict[str, str], tmp_path: Path
) -> None:
    """With the type of the schema, in tables of both formats."""
    query = _Query(tmp_path, table)
    query.batch(log.add("t", 0, subject.value(0, {"id": 1})))
    assert _columns(table) == {"id": "int64", "_rescued": "string"}
    subject.add(flight_schema(COUPON))
    query.batch(log.add("t", 0, subject.value(1, {"id": 2, "coupon": 7}), subject.value(0, {"id": 3})))
    assert _columns(table) == {"id": "int64", "coupon": "int32", "_rescued": "string"}


def test_a_field_inside_a_record_is_taken_up_without_a_restart(
    log: Log, subject: Subject, table: dict[str, str], tmp_path: Path
) -> None:
    """In tables of both formats; records of writers with the schema before go on."""

    def coupon(*names: str) -> dict[str, object]:
        fields = [{"name": name, "type": ["null", "int"], "default": None} for name in names]
        return {"name": "coupon", "type": {"type": "record", "name": "Coupon", "fields": fields}, "default": {}}

    subject.add(flight_schema(coupon("a")))
    query = _Query(tmp_path, table)
    query.batch(log.add("t", 0, subject.value(1, {"id": 1, "coupon": {"a": 1}})))
    assert _columns(table)["coupon"] == "struct<a: int32>"
    subject.add(flight_schema(coupon("b", "a")))
    values = subject.value(2, {"id": 2, "coupon": {"a": 2, "b": 3}}), subject.value(1, {"id": 3, "coupon": {"a": 4}})
    query.batch(log.add("t", 0, *values))
    assert _columns(table) == {"id": "int64", "coupon": "struct<a: int32, b: int32>", "_rescued": "string"}


def test_a_registry_that_is_down_or_changes_a_column_stops_no_query(
    log: Log, subject: Subject, table: dict[str, str], tmp_path: Path
) -> None:
    """The schema before it stays in use, and the next one that only adds fields is taken up."""
    query = _Query(tmp_path, table)
    query.batch(log.add("t", 0, subject.value(0, {"id": 1})))
    subject.down = True
    query.batch(log.add("t", 0, subject.value(0, {"id": 2})))
    subject.down = False
    changed = {"type": "record", "name": "Flight", "fields": [{"name": "id", "type": "string"}, COUPON]}
    subject.add(changed)
    query.batch(log.add("t", 0, subject.value(0, {"id": 3})))
    query.batch(log.add("t", 0, subject.value(0, {"id": 4})))
    assert _columns(table) == {"id": "int64", "_rescued": "string"}
    subject.add(flight_schema(COUPON, {"name": "gate", "type": "string", "default": ""}))
    query.batch(log.add("t", 0, subject.value(2, {"id": 5, "coupon": 1, "gate": "A"})))
    assert _columns(table) == {"id": "int64", "coupon": "int32", "gate": "string", "_rescued": "string"}


@pytest.mark.parametrize(
    "latest",
    [
        json.dumps(flight_schema({"name": "timestamp", "type": ["null", "long"], "default": None})),
        json.dumps(flight_schema({"name": "ID", "type": ["null", "long"], "default": None})),
        json.dumps(flight_schema({"name": "coupon", "type": ["null", "string"], "default": None})),
        json.dumps(flight_schema({"name": "gate", "type": "Missing"})),
        'syntax = "proto3";',
        '"string"',
        "{",
    ],
)
def test_a_latest_schema_that_cannot_be_written_stops_no_query(
    log: Log, subject: Subject, table: dict[str, str], tmp_path: Path, latest: str
) -> None:
    """A reserved name, names that differ in case, another type in the table, and texts that are no record."""
    query = _Query(tmp_path, table)
    query.batch(log.add("t", 0, subject.value(0, {"id": 1})))
    subject.add(flight_schema(COUPON))
    query.batch(log.add("t", 0, subject.value(1, {"id": 2, "coupon": 7})))
    before = _columns(table)
    subject.add_text(latest)
    for number in (3, 4):
        query.batch(log.add("t", 0, subject.value(1, {"id": number, "coupon": 7})))
    assert _columns(table) == before


def test_a_column_of_another_type_in_the_table_keeps_the_schema_before(
    log: Log, subject: Subject, tmp_path: Path
) -> None:
    """A person has added it to the table, before the schema had it."""
    path = str(tmp_path / "table")
    query = _Query(tmp_path, {"path": path})
    query.batch(log.add("t", 0, subject.value(0, {"id": 1})))
    DeltaTable(path).alter.add_columns([Field("coupon", PrimitiveType("string"))])
    subject.add(flight_schema(COUPON))
    query.batch(log.add("t", 0, subject.value(1, {"id": 2, "coupon": 7})))
    assert _columns({"path": path}) == {"id": "int64", "coupon": "string", "_rescued": "string"}


def test_a_registry_that_never_answers_stops_no_query(
    log: Log, subject: Subject, table: dict[str, str], tmp_path: Path
) -> None:
    """Its client has no time-out. The answer counts once it is there."""
    query = _Query(tmp_path, table)
    query.batch(log.add("t", 0, subject.value(0, {"id": 1})))
    subject.add(flight_schema(COUPON))
    subject.answers.clear()
    query.batch(log.add("t", 0, subject.value(1, {"id": 2, "coupon": 7})))
    assert "coupon" not in _columns(table)
    subject.answers.set()
    query.batch(log.add("t", 0, subject.value(1, {"id": 3, "coupon": 7})))
    assert _columns(table)["coupon"] == "int32"


def test_a_table_that_cannot_be_read_is_compared_again(
    log: Log, subject: Subject, table: dict[str, str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A storage that is away for a moment must not leave the field without a column until a restart."""

    def away(*_: object) -> None:
        raise TableError("the storage is away")

    query = _Query(tmp_path, table)
    query.batch(log.add("t", 0, subject.value(0, {"id": 1})))
    subject.add(flight_schema(COUPON))
    with monkeypatch.context() as patch:
        patch.setattr(registry_columns, "columns_of_table", away)
        query.batch(log.add("t", 0, subject.value(1, {"id": 2, "coupon": 7})))
    assert "coupon" not in _columns(table)
    query.batch(log.add("t", 0, subject.value(1, {"id": 3, "coupon": 7})))
    assert _columns(table)["coupon"] == "int32"


@pytest.mark.parametrize("changed", [{"mergeSchema": "false"}, {"valueSchema": json.dumps(flight_schema())}], ids=str)
def test_columns_stay_where_the_table_may_not_change_or_the_schema_is_given(
    log: Log, subject: Subject, table: dict[str, str], tmp_path: Path, changed: dict[str, str]
) -> None:
    """The field is in `_rescued`, as before."""
    query = _Query(tmp_path, table, **changed)
    query.batch(log.add("t", 0, subject.value(0, {"id": 1})))
    subject.add(flight_schema(COUPON))
    query.batch(log.add("t", 0, subject.value(1, {"id": 2, "coupon": 7})))
    assert _columns(table) == {"id": "int64", "_rescued": "string"}
