"""A field that rows have inside a struct, and the table does not, is taken up by tables of both formats."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import duckdb
import polars as pl
import pyarrow as pa
import pytest
from deltalake import DeltaTable, Field, Schema

from spark_sink.errors import SchemaError, TableError
from spark_sink.formats.bad_values_quarantined import COLUMN, REASON, good_schema
from spark_sink.lake.compaction import Compaction
from spark_sink.lake.delta_log_reader import TransactionLog
from spark_sink.lake.double_row_removal import repair
from spark_sink.lake.holes_and_doubles import verify
from spark_sink.lake.iceberg import compaction as iceberg_compaction
from spark_sink.lake.iceberg.catalogs import identifier, open_catalog
from spark_sink.lake.parquet_landing import Layout, normal_schema
from spark_sink.lake.table_contract import Change
from spark_sink.lake.table_formats import open_table
from spark_sink.ranges.batch_offset import Offset, Range
from spark_sink.sink.query_tables import Tables
from spark_sink.sink.rows_by_table import Sorting
from spark_sink.sink.sink_options import SinkOptions
from spark_sink.source.union_read.stored_tables import open_tables
from tests.raw_rows import SCHEMA
from tests.table_kinds import Place

INT, TEXT = pa.int64(), pa.string()
Row = dict[str, Any]


def _place(**fields: pa.DataType) -> list[tuple[str, pa.DataType]]:
    """A struct, a list and a map of structs with these fields, at two levels."""
    kind = pa.struct(list(fields.items()))
    return [("place", pa.struct([("at", kind)])), ("items", pa.list_(kind)), ("by", pa.map_(TEXT, kind))]


OLD, NEW = _place(x=INT, y=TEXT), _place(z=TEXT, x=INT, w=pa.struct([("v", pa.float64())]))
BOTH = _place(x=INT, y=TEXT, z=TEXT, w=pa.struct([("v", pa.float64())]))
EMPTY = {name: None for name, _ in OLD}


def _row(**values: object) -> Row:
    return {"place": {"at": values}, "items": [values, None], "by": [("k", values)]}


FIRST = _row(x=1, y="a")
SECOND = _row(x=2, z="b", w={"v": 0.5})


def _whole(row: Mapping[str, Any]) -> Row:
    """The row as it is read with the columns of BOTH."""
    nothing: Row = dict.fromkeys("xyzw")
    return _row(**{**nothing, **row["place"]["at"]}) if row["place"] else dict(row)


class Agent:
    """A query that writes rows with these columns, each batch to a partition of its own.

    Args:
        place: where the table is.
        partition: of its rows.
        columns: of the values.
        options: of the sink.
    """

    def __init__(
        self, place: Place, partition: int, columns: Sequence[tuple[str, pa.DataType]], **options: str
    ) -> None:
        path = {"path": place.address("events"), "kafka.group.id": "g", "checkpointLocation": "c"}
        given = {**path, **place.storage, "mergeSchema": "true", "compactEvery": "0", **options}
        self.options = SinkOptions.parse(given)
        self.partition, self.end = partition, 0
        kept = [one for one in SCHEMA if one.name in {"topic", "partition", "offset"}]
        self.schema = pa.schema([*kept, *columns, (COLUMN, REASON)])
        self.tables = Tables(self.options)

    def land(self, rows: Sequence[Mapping[str, object]], begin: int) -> Any:
        """Write the files of a batch from an offset on."""
        keys = {"topic": "t", "partition": self.partition}
        found = [{**keys, "offset": at, **row} for at, row in enumerate(rows, begin)]
        sorting = Sorting(self.options, normal_schema(self.schema), "run")
        sorting.write(pa.RecordBatch.from_pylist(found, schema=self.schema))
        return sorting.close()

    def write(self, *rows: Mapping[str, object]) -> None:
        """Land and commit a batch."""
        self.commit(self.land(rows, self.end), len(rows))

    def commit(self, files: Any, rows: int) -> None:
        """Commit files of as many rows."""
        offset = Offset.of([Range("t", self.partition, self.end, self.end + rows)])
        self.tables.commit(offset, files, normal_schema(self.schema), 0)
        self.end += rows


@pytest.fixture(params=["delta", "iceberg"])
def place(request: pytest.FixtureRequest, tmp_path: Path) -> Place:
    """The folder of a table of each format."""
    return Place(tmp_path, request.param)


def _columns(place: Place) -> pa.Schema:
    snapshot = open_table(place.address("events"), "g", place.storage).refresh()
    assert snapshot is not None
    return pa.schema([one for one in snapshot.schema if one.name in EMPTY])


def _iceberg(place: Place) -> Any:
    found = identifier(place.address("events"))
    return open_catalog(found.catalog, place.storage).load_table(found.path)


def _read(place: Place) -> list[Row]:
    """The rows by the readers of users, by partition and offset."""
    if place.format == "iceberg":
        (stored,) = open_tables(place.address("events"), place.storage)
        rows = pa.Table.from_batches(stored.rows(stored.schema.names))
    else:
        data = DeltaTable(place.address("events")).to_pyarrow_dataset()
        rows = duckdb.connect().from_arrow(data).to_arrow_table()
        other = pl.scan_delta(place.address("events")).sort("partition", "offset").collect()
        assert [(one["place"], one["items"]) for one in _sorted(rows)] == [
            (one["place"], one["items"]) for one in other.to_dicts()
        ]
        assert data.to_table().num_rows == rows.num_rows
    return [{name: row[name] for name in EMPTY} for row in _sorted(rows)]


def _sorted(rows: pa.Table) -> list[Row]:
    found: list[Row] = rows.to_pylist()
    return sorted(found, key=lambda row: (row["partition"], row["offset"]))


def _verified(place: Place) -> int:
    report = verify(place.address("events"), "g", place.storage)
    assert report.ok
    return report.rows


def test_a_new_field_is_in_the_table_and_older_rows_have_none(place: Place) -> None:
    """Two agents, of which one has the schema before: its rows, and older ones, are null there."""
    old, new = Agent(place, 0, OLD), Agent(place, 1, NEW)
    old.write(FIRST, EMPTY)
    new.write(SECOND, EMPTY)
    assert _columns(place) == pa.schema(BOTH)
    old.write(FIRST)
    new.write(SECOND)
    found = _read(place)
    assert found == [_whole(one) for one in (FIRST, EMPTY, FIRST, SECOND, EMPTY, SECOND)]
    assert _verified(place) == 6


def test_the_ids_of_an_iceberg_table_stay_and_new_fields_get_new_ones(tmp_path: Path) -> None:
    """A reader finds a value by its id; an id that moved would give values of another field."""
    place = Place(tmp_path, "iceberg")
    Agent(place, 0, OLD).write(FIRST)
    before = _ids(_iceberg(place).schema())
    Agent(place, 1, NEW).write(SECOND)
    after = _ids(_iceberg(place).schema())
    assert {name: after[name] for name in before} == before
    assert len(set(after.values())) == len(after) == len(before) + 3 * 3


def _ids(schema: Any) -> dict[str, int]:
    return {name: schema.find_field(name).field_id for name in schema.column_names}


def test_files_that_wait_for_their_commit_are_valid_after_a_new_field(place: Place) -> None:
    """Another agent may add a field between the landing of a batch and its commit."""
    old, new = Agent(place, 0, OLD), Agent(place, 1, NEW)
    old.write(FIRST)
    waiting = old.land([FIRST], 1)
    new.write(SECOND)
    old.commit(waiting, 1)
    assert _read(place) == [_whole(one) for one in (FIRST, FIRST, SECOND)]


@pytest.mark.parametrize("merge", ["false", "true"])
def test_what_cannot_be_merged_is_refused_and_nothing_is_lost(place: Place, merge: str) -> None:
    """One sentence with the path; the same records are written once the rows fit."""
    Agent(place, 0, OLD, mergeSchema="false").write(FIRST)
    for columns, said in (
        (_place(x=TEXT, y=TEXT), r"field 'place.at.x' is int64 in the table and string in the query"),
        (_place(X=INT), r"field 'place.at.X' is called 'place.at.x' in the table"),
        *(
            [(NEW, r"the table has no field 'place.at.z' \(string\); option mergeSchema=true adds it")]
            * (merge == "false")
        ),
        ([*OLD, ("more", INT)], r"the table has no column 'more' \(int64\); option mergeSchema=true adds it")
        if merge == "false"
        else (_place(x=pa.int32()), r"field 'place.at.x' is int64 in the table and int32 in the query"),
    ):
        with pytest.raises(SchemaError, match=said):
            Agent(place, 1, columns, mergeSchema=merge).write({})
    assert _columns(place) == pa.schema(OLD)
    Agent(place, 1, NEW).write(SECOND)
    assert _read(place) == [_whole(FIRST), _whole(SECOND)]
    assert _verified(place) == 2


def test_bad_records_go_to_the_quarantine_while_a_field_is_new(place: Place) -> None:
    """Its table has columns of its own, which stay."""
    agent = Agent(place, 0, OLD)
    bad = {**EMPTY, COLUMN: {"error_class": "Bad", "error_text": "no number", "value": b"v"}}
    agent.write(FIRST, bad)
    Agent(place, 1, NEW).write(SECOND, bad)
    assert _read(place) == [_whole(FIRST), _whole(SECOND)]
    assert place.offsets("events_quarantine") == [1, 1]
    assert _verified(place) == 2


def test_fields_that_are_required_in_the_query_are_added_without_that(place: Place) -> None:
    """As columns are: a row before it has no value. Then rows in which they may be null go into the same table."""
    required = [(name, _required(kind)) for name, kind in NEW]
    Agent(place, 0, OLD).write(FIRST)
    Agent(place, 1, required).write(SECOND)
    Agent(place, 2, NEW).write(_row(x=None, z=None, w=None))
    assert _read(place) == [_whole(FIRST), _whole(SECOND), _whole(_row(x=None))]


def _required(kind: pa.DataType) -> pa.DataType:
    if pa.types.is_struct(kind):
        return pa.struct([pa.field(one.name, _required(one.type), nullable=False) for one in kind])
    return kind


def test_compaction_writes_rows_of_both_into_one_file(place: Place) -> None:
    """Files from before the field, after it, and of an agent that never got it, in turn."""
    old, new = Agent(place, 0, OLD), Agent(place, 1, NEW)
    for _ in range(4):
        old.write(FIRST)
        new.write(SECOND, EMPTY)
    before = _read(place)
    if place.format == "iceberg":
        address = identifier(place.address("events"))
        assert iceberg_compaction.compact(address.name, lambda: _iceberg(place), Layout())
        assert len(list(_iceberg(place).scan().plan_files())) == 1
    else:
        path = place.address("events")
        compaction = Compaction(path, TransactionLog(path))
        compaction._compacted = 0  # as if it had been there when the last time was
        assert compaction.run(DeltaTable(path), 1)
        assert len(DeltaTable(path).file_uris()) == 1
    assert _read(place) == before
    assert _verified(place) == 12


def test_repair_takes_a_row_out_of_a_file_from_before_the_field(place: Place) -> None:
    """The rows that stay have null there."""
    Agent(place, 0, OLD).write(FIRST, EMPTY, FIRST)
    Agent(place, 1, NEW).write(SECOND)
    twin = Agent(place, 0, NEW)
    table = open_table(place.address("events"), "g", place.storage)
    snapshot = table.refresh()
    assert snapshot is not None
    files = twin.land([EMPTY], 1)[place.address("events")]
    table.swap(snapshot, Change(files=files, positions={}, beginnings={}, schema=good_schema(twin.schema)))
    (done,) = repair(place.address("events"), place.storage)
    assert (done.rows, done.different) == (1, 0)
    assert _read(place) == [_whole(one) for one in (FIRST, EMPTY, FIRST, SECOND)]


def test_a_table_whose_structs_may_not_be_null_is_refused(place: Place) -> None:
    """As one with such a column: the writer of a file cannot keep the rule."""
    Agent(place, 0, OLD).write(FIRST)
    if place.format == "iceberg":
        table = _iceberg(place)
        with table.update_schema(allow_incompatible_changes=True) as update:
            update.update_column(("items", "element", "x"), required=True)
        said = "column 'items.element.x' is required"
    else:
        fields = [*DeltaTable(place.address("events")).schema().fields]
        kind = pa.list_(pa.struct([pa.field("x", INT, nullable=False)]))
        other = Place(place.root / "other", "delta")
        DeltaTable.create(other.address("events"), Schema([*fields[:3], Field.from_arrow(pa.field("items", kind))]))
        place, said = other, "field 'items.element.x' has the rule NOT NULL"
    with pytest.raises((SchemaError, TableError), match=said):
        Agent(place, 1, OLD).write(FIRST)


def test_comments_and_properties_of_a_delta_table_stay(tmp_path: Path) -> None:
    """The commit that adds a field writes the whole metadata."""
    place = Place(tmp_path, "delta")
    Agent(place, 0, OLD, **{"tableProperty.delta.appendOnly": "true"}).write(FIRST)
    path = place.address("events")
    DeltaTable(path).alter.add_columns([Field("note", "string", metadata={"comment": "by hand"})])  # type: ignore[arg-type]  # a name will do
    DeltaTable(path).alter.set_column_metadata("place", {"comment": "where"})
    Agent(place, 1, NEW).write(SECOND)
    found = {one.name: one for one in DeltaTable(path).schema().fields}
    assert found["place"].metadata["comment"] == "where"
    assert found["note"].metadata["comment"] == "by hand"
    assert DeltaTable(path).metadata().configuration["delta.appendOnly"] == "true"


@pytest.mark.parametrize("lenient", [True, False])
def test_a_field_with_the_full_name_of_a_column_is_left_out_of_an_iceberg_table(
    tmp_path: Path, *, lenient: bool
) -> None:
    """Iceberg finds a field by its full name; the other fields are added."""
    place = Place(tmp_path, "iceberg")
    Agent(place, 0, [*OLD, ("place.n", INT)]).write(FIRST)
    clash = pa.schema([("place", pa.struct([("n", INT)])), ("items", pa.list_(pa.struct([("n", INT)])))])
    if lenient:
        open_table(place.address("events"), "g", place.storage).add_columns(clash)
        assert [one.name for one in _iceberg(place).schema().find_type("place").fields] == ["at"]
        assert "items.element.n" in _iceberg(place).schema().column_names
        return
    with pytest.raises(SchemaError, match="has the full name of another field"):
        Agent(place, 1, [("place", clash.field("place").type)]).write({})
    assert [one.name for one in _iceberg(place).schema().find_type("place").fields] == ["at"]
