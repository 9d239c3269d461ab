"""The Delta adapter keeps the contract of the seam; the table in memory keeps the same."""

import threading
import time
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path

import pyarrow as pa
import pytest
from deltalake import DeltaTable, Field, write_deltalake
from deltalake.exceptions import CommitFailedError

from spark_sink.errors import ConflictError, SchemaError, TableError
from spark_sink.formats.quarantine_addresses import quarantine_of
from spark_sink.lake import vacuumed_files
from spark_sink.lake.delta_table import DeltaLakeTable
from spark_sink.lake.holes_and_doubles import verify
from spark_sink.lake.parquet_landing import Landing, Layout, normal_schema
from spark_sink.lake.schema_fit import fit_schema
from spark_sink.lake.table_contract import KEYS, Change, DataFile, Quarantined, Table
from spark_sink.lake.table_settings import TableSettings
from spark_sink.lake.table_storage import filesystem
from spark_sink.ranges.batch_offset import Offset, Range, TopicPartition
from spark_sink.sink.commit_by_compare_and_swap import Batch, commit
from tests.table_kinds import change_of, created, newest

A, B = TopicPartition("a", 0), TopicPartition("b", 1)
SCHEMA = pa.schema([("topic", pa.string()), ("partition", pa.int32()), ("offset", pa.int64()), ("value", pa.binary())])

Write = Callable[[TopicPartition, Iterable[int]], DataFile]
Kind = tuple[Callable[[], Table], Write]


def _rows(key: TopicPartition, offsets: Iterable[int]) -> pa.RecordBatch:
    numbers = list(offsets)
    columns = [[key.topic] * len(numbers), [key.partition] * len(numbers), numbers, [b"v"] * len(numbers)]
    return pa.RecordBatch.from_arrays(
        [pa.array(column, field.type) for column, field in zip(columns, SCHEMA, strict=True)], schema=SCHEMA
    )


def _land(path: Path, key: TopicPartition, offsets: Iterable[int], layout: Layout | None = None) -> DataFile:
    landing = Landing(filesystem(str(path), make=True), SCHEMA, layout)
    landing.write(_rows(key, offsets))
    (file,) = landing.close()
    return file


def test_a_commit_by_path_would_let_the_zombie_in(tmp_path: Path) -> None:
    """The reason for the handle: delta-rs compares with the version that it read."""
    table = DeltaLakeTable(str(tmp_path), "g")
    batch = Batch(offset=Offset.of([Range("a", 0, 0, 5)]), files=[_land(tmp_path, A, range(5))], schema=SCHEMA)
    snapshot = created(table)
    commit(DeltaLakeTable(str(tmp_path), "g"), batch)
    zombie = replace(batch, files=[_land(tmp_path, A, range(5))])
    with pytest.raises(ConflictError, match="Concurrent transaction"):
        table.swap(snapshot, change_of({A: 5}, *zombie.files))
    by_path = DeltaLakeTable(str(tmp_path), "g")
    fresh = by_path.refresh()
    assert fresh is not None
    by_path.swap(fresh, change_of({A: 5}, *zombie.files))
    assert verify(str(tmp_path)).duplicates == 5


def test_partly_known_rows_of_a_partitioned_table(tmp_path: Path) -> None:
    """The data files have no topic then; the copy gets it from the log's values and stays without it."""
    layout = Layout(partition_columns=("topic", "partition"))
    table = DeltaLakeTable(str(tmp_path), "g", settings=TableSettings(layout=layout))
    for begin, end in ((0, 6), (4, 9), (2, 8)):
        file = _land(tmp_path, B, range(begin, end), layout)
        commit(table, Batch(offset=Offset.of([Range("b", 1, begin, end)]), files=[file], schema=SCHEMA))
    assert (verify(str(tmp_path)).rows, verify(str(tmp_path)).ok) == (9, True)


@pytest.mark.parametrize(
    ("given", "kept"),
    [({}, None), ({"delta.logRetentionDuration": "interval 7 days"}, "interval 7 days")],
    ids=["default", "given"],
)
def test_a_new_table_keeps_its_log_as_long_as_delta_does(
    tmp_path: Path, given: dict[str, str], kept: str | None
) -> None:
    """A streaming reader that falls behind further than the log reaches back has to start over."""
    DeltaLakeTable(str(tmp_path), "g", settings=TableSettings(properties=given)).create(SCHEMA)
    assert DeltaTable(str(tmp_path)).metadata().configuration.get("delta.logRetentionDuration") == kept


def test_a_column_of_another_type_is_refused_before_the_commit(tmp_path: Path) -> None:
    """delta-rs would take the file, and no reader could open the table again."""
    table = DeltaLakeTable(str(tmp_path), "g")
    created(table)
    other = pa.schema([*(field for field in SCHEMA if field.name != "value"), pa.field("value", pa.string())])
    batch = Batch(offset=Offset.of([Range("a", 0, 0, 0)]), files=[], schema=other)
    with pytest.raises(SchemaError, match="'value' is binary in the table and string in the query"):
        commit(table, batch)


@pytest.mark.parametrize("merge", [False, True])
def test_a_new_column_is_added_only_on_request(tmp_path: Path, *, merge: bool) -> None:
    """Old rows read as null then."""
    table = DeltaLakeTable(str(tmp_path), "g", settings=TableSettings(merge_schema=merge))
    created(table)
    wider = SCHEMA.append(pa.field("delay", pa.int64()))
    batch = Batch(offset=Offset.of([Range("a", 0, 0, 0)]), files=[], schema=wider)
    if not merge:
        with pytest.raises(SchemaError, match="mergeSchema=true adds it"):
            commit(table, batch)
        return
    assert commit(table, batch).conflicts == 1
    assert [field.name for field in DeltaTable(str(tmp_path)).schema().fields] == wider.names


def test_a_struct_that_delta_cannot_have_is_refused_with_a_sentence(tmp_path: Path) -> None:
    """Avro and Protobuf allow fields that differ only in case; delta-rs raises an error without a class for them."""
    twins = pa.schema([*SCHEMA, pa.field("who", pa.struct({"Id": pa.int64(), "id": pa.int64()}))])
    table = DeltaLakeTable(str(tmp_path), "g", None, TableSettings(merge_schema=True))
    with pytest.raises(SchemaError, match=r"a Delta table cannot have the column 'who': .*case-insensitive"):
        table.create(twins)
    table.create(SCHEMA)
    seen = table.refresh()
    assert seen is not None
    with pytest.raises(SchemaError, match="a Delta table cannot have the column 'who'"):
        table.swap(seen, Change(files=(), positions={}, beginnings={}, schema=twins))


def test_columns_that_someone_else_added_do_no_harm(tmp_path: Path) -> None:
    """Between the look and the swap: a conflict first, then the rows go in without the new column."""
    table = DeltaLakeTable(str(tmp_path), "g")
    snapshot = created(table)
    DeltaTable(str(tmp_path)).alter.add_columns([Field("x", "string")])  # type: ignore[arg-type]  # a name will do
    file = _land(tmp_path, A, range(3))
    with pytest.raises(ConflictError, match="Metadata changed"):
        table.swap(snapshot, change_of({A: 3}, file))
    commit(table, Batch(offset=Offset.of([Range("a", 0, 0, 3)]), files=[file], schema=SCHEMA))
    assert DeltaTable(str(tmp_path)).to_pyarrow_table()["x"].null_count == 3


def test_a_table_made_anew_in_the_old_place_stops_the_writer(tmp_path: Path) -> None:
    """Its positions are none, so a batch from the middle would look like a first one."""
    table = DeltaLakeTable(str(tmp_path / "t"), "g")
    created(table)
    (tmp_path / "t").rename(tmp_path / "gone")
    write_deltalake(str(tmp_path / "t"), pa.Table.from_batches([_rows(A, range(3))]))
    with pytest.raises(TableError, match="recreated while the query ran"):
        table.refresh()


def test_a_table_with_rules_that_files_cannot_keep_is_refused(tmp_path: Path) -> None:
    """CHECK constraints are for writers of rows; a data file goes past them. Reading is allowed, as for `lag`."""
    table = DeltaLakeTable(str(tmp_path), "g")
    seen = created(table)
    table.swap(seen, change_of({A: 3}, _land(tmp_path, A, range(3))))
    DeltaTable(str(tmp_path)).alter.add_constraint({"positive": "offset >= 0"})
    for one in (table, DeltaLakeTable(str(tmp_path), "g")):
        seen = newest(one)
        assert seen.positions == {A: 3}
        for _ in range(2):
            with pytest.raises(TableError, match=r"delta.constraints.positive"):
                one.swap(seen, change_of({A: 5}, _land(tmp_path, A, range(3, 5))))
    pauses: list[float] = []
    batch = Batch(offset=Offset.of([Range("a", 0, 3, 5)]), files=[_land(tmp_path, A, range(3, 5))], schema=SCHEMA)
    with pytest.raises(TableError, match=r"delta.constraints.positive"):
        commit(table, batch, sleep=pauses.append)
    assert not pauses  # no retry removes a rule


def test_a_full_disk_at_the_commit_is_no_conflict(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The error is reported after a few retries; the position does not change."""
    table = DeltaLakeTable(str(tmp_path), "g")
    created(table)

    def full(*_: object, **__: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(DeltaTable, "create_write_transaction", full)
    with pytest.raises(TableError, match="No space left on device"):
        commit(table, Batch(offset=Offset.of([Range("a", 0, 0, 0)]), files=[], schema=SCHEMA), sleep=lambda _: None)


def test_a_commit_that_went_through_and_reports_failure_is_not_repeated(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Object stores do that when an answer is lost; the next look shows the position."""
    table = DeltaLakeTable(str(tmp_path), "g")
    created(table)
    real = DeltaTable.create_write_transaction

    def lying(self: DeltaTable, *arguments: object, **named: object) -> None:
        real(self, *arguments, **named)  # type: ignore[arg-type]  # passed on as they came
        raise CommitFailedError("the answer was lost")

    monkeypatch.setattr(DeltaTable, "create_write_transaction", lying)
    file = _land(tmp_path, A, range(5))
    commit(table, Batch(offset=Offset.of([Range("a", 0, 0, 5)]), files=[file], schema=SCHEMA), sleep=lambda _: None)
    report = verify(str(tmp_path))
    assert (report.rows, report.ok) == (5, True)


def test_a_store_that_refuses_each_new_commit_as_one_that_exists_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Some stores and proxies answer 409 or 412 for good, which delta-rs takes for other writers."""
    table = DeltaLakeTable(str(tmp_path), "g")
    snapshot = created(table)

    def refusing(*_: object, **__: object) -> None:
        raise CommitFailedError("Failed to commit transaction: 15")

    monkeypatch.setattr(DeltaTable, "create_write_transaction", refusing)
    with pytest.raises(TableError, match=r"the store refused version 1 each time as one that exists.*If-None-Match"):
        table.swap(snapshot, change_of({A: 5}, _land(tmp_path, A, range(5))))


@pytest.mark.parametrize("place", ["table", "quarantine"])
def test_files_that_vacuum_removed_before_their_commit_are_refused(tmp_path: Path, place: str) -> None:
    """The agent was paused for longer than VACUUM's retention; a table that lists these files cannot be read."""
    path = tmp_path / "table"
    table = DeltaLakeTable(str(path), "g")
    snapshot = created(table)
    folder = path if place == "table" else Path(quarantine_of(str(path)))
    old = replace(_land(folder, A, range(5)), written_ms=int(time.time() * 1000) - 8 * 24 * 3600 * 1000)
    change = change_of({A: 5}, *([old] if place == "table" else []))
    if place == "quarantine":
        change = replace(change, quarantined=Quarantined(files=[old], ends={A: 5}))
    (folder / old.path).rename(folder / "_hidden")
    with pytest.raises(TableError, match=f"{folder}: 1 of the files to commit are gone, such as {old.path}"):
        table.swap(snapshot, change)
    assert newest(table) == snapshot
    (folder / "_hidden").rename(folder / old.path)
    table.swap(snapshot, change)
    assert newest(table).positions == {A: 5}


def test_fresh_files_are_not_asked_for(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A question to the storage for each file would make each commit slower."""
    table = DeltaLakeTable(str(tmp_path), "g")
    snapshot, file = created(table), _land(tmp_path, A, range(5))
    monkeypatch.delattr(vacuumed_files, "filesystem")
    table.swap(snapshot, change_of({A: 5}, file))
    assert newest(table).positions == {A: 5}


def test_fitting_compares_names_types_and_case() -> None:
    """A column missing in the query is null; names that differ only in case would be two columns for some readers."""
    assert fit_schema("t", SCHEMA, SCHEMA.remove(3)) == []
    with pytest.raises(SchemaError, match="is called 'value' in the table"):
        fit_schema("t", SCHEMA, pa.schema([("Value", pa.binary())]))


@pytest.mark.parametrize("gone", ["topic", "partition", "offset"])
def test_rows_that_cannot_be_told_apart_are_refused(gone: str) -> None:
    """A query that drops or changes the identifying columns of a record."""
    left = [field for field in SCHEMA if field.name != gone]
    with pytest.raises(SchemaError, match=f"column '{gone}' is missing"):
        normal_schema(pa.schema(left))
    with pytest.raises(SchemaError, match=f"column '{gone}' is double"):
        normal_schema(pa.schema([*left, pa.field(gone, pa.float64())]))


def test_writers_that_compact_at_once_double_nothing(tmp_path: Path) -> None:
    """Two compactions of the same files would both go through, and every row would be there twice: one may."""
    table = DeltaLakeTable(str(tmp_path), "g")
    created(table)
    for number in range(29):
        table.swap(newest(table), change_of({A: number + 1}, _land(tmp_path, A, [number])))
    tables = [DeltaLakeTable(str(tmp_path), "g") for _ in range(4)]
    for table in tables:
        newest(table)
        table._compaction._compacted = 0  # as if it had been there when the last time was
    barrier = threading.Barrier(len(tables))

    def run(table: DeltaLakeTable) -> bool:
        barrier.wait()
        return table.compact(10)

    with ThreadPoolExecutor(len(tables)) as pool:
        done = list(pool.map(run, tables))
    assert sum(done) == 1
    assert DeltaTable(str(tmp_path)).to_pyarrow_table().num_rows == 29


def test_compaction_is_left_to_someone_else_who_does_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Their OPTIMIZE knows no claims, and two at once double every row; a writer that starts later knows it, too."""
    table = DeltaLakeTable(str(tmp_path), "g")
    created(table)
    done = []
    for number in range(60):
        table.swap(newest(table), change_of({A: number + 1}, _land(tmp_path, A, [number])))
        done.append(table.compact(10))
        if number == 28:
            DeltaTable(str(tmp_path)).optimize.compact()
            DeltaTable(str(tmp_path)).create_checkpoint()
            DeltaTable(str(tmp_path)).cleanup_metadata()
    assert any(done[:28])
    assert not any(done[29:])
    later = DeltaLakeTable(str(tmp_path), "g")
    DeltaTable(str(tmp_path)).create_checkpoint()
    newest(later)
    later._compaction._compacted = 0
    assert not later.compact(10)
    week = 9 * 24 * 3600
    monkeypatch.setattr("spark_sink.lake.compaction.time.time", lambda now=time.time: now() + week)
    later._compaction._compacted = 0
    assert later.compact(10)
    assert verify(str(tmp_path)).rows == 60


@pytest.mark.parametrize(
    ("of_table", "of_files"), [(["partition"], ()), (None, ("partition",))], ids=["the table is", "the files are"]
)
def test_files_that_are_partitioned_otherwise_than_the_table_are_refused(
    tmp_path: Path, of_table: list[str] | None, of_files: tuple[str, ...]
) -> None:
    """They would be committed without a word, and every row read with a null where its partition stood."""
    write_deltalake(str(tmp_path), pa.Table.from_batches([_rows(B, range(2))]), partition_by=of_table)
    layout = Layout(partition_columns=of_files)
    table = DeltaLakeTable(str(tmp_path), "g", settings=TableSettings(layout=layout))
    batch = Batch(offset=Offset.of([Range("a", 0, 0, 5)]), files=[_land(tmp_path, A, range(5), layout)], schema=SCHEMA)
    with pytest.raises(SchemaError, match="set partitionBy to"):
        commit(table, batch)
    assert DeltaTable(str(tmp_path)).to_pyarrow_table()["partition"].to_pylist() == [1, 1]


@pytest.mark.parametrize(
    "column",
    [
        pa.field("value", pa.binary(), nullable=False),
        pa.field("more", pa.int64(), metadata={"delta.generationExpression": "offset + 1"}),
    ],
    ids=["not null", "generated"],
)
def test_a_table_with_columns_that_files_cannot_keep_is_refused(tmp_path: Path, column: pa.Field) -> None:
    """A tombstone's null in a NOT NULL column, or none in a generated one: readers believe the rule, not the file."""
    others = [one if one.name in KEYS else one.with_nullable(nullable=True) for one in SCHEMA]
    others = [one.with_nullable(one.name != "offset") for one in others if one.name != column.name]
    DeltaTable.create(str(tmp_path), schema=pa.schema([*others, column]))
    table = DeltaLakeTable(str(tmp_path), "g")
    seen = newest(table)
    with pytest.raises(TableError, match=rf"column '{column.name}' has the rule"):
        table.swap(seen, Change(files=(), positions={A: 1}, beginnings={A: 0}, schema=seen.schema))


def test_what_says_which_record_a_row_is_may_be_not_null(tmp_path: Path) -> None:
    """No row goes in without topic, partition and offset, so that rule is kept."""
    DeltaTable.create(str(tmp_path), schema=pa.schema([one.with_nullable(one.name not in KEYS) for one in SCHEMA]))
    table = DeltaLakeTable(str(tmp_path), "g")
    commit(table, Batch(offset=Offset.of([Range("a", 0, 0, 5)]), files=[_land(tmp_path, A, range(5))], schema=SCHEMA))
    assert verify(str(tmp_path)).rows == 5


def test_a_second_group_does_not_write_the_same_partition_into_a_table(tmp_path: Path) -> None:
    """A group that was renamed has no position, begins at the beginning, and every record would be there twice."""
    offset, other = Offset.of([Range("a", 0, 0, 5)]), Offset.of([Range("b", 1, 0, 5)])
    for group, ranges, key in (("team/one", offset, A), ("two", other, B)):
        table = DeltaLakeTable(str(tmp_path), group)
        commit(table, Batch(offset=ranges, files=[_land(tmp_path, key, range(5))], schema=SCHEMA))
    two = DeltaLakeTable(str(tmp_path), "two")
    batch = Batch(offset=offset, files=[_land(tmp_path, A, range(5))], schema=SCHEMA)
    with pytest.raises(TableError, match="a/0 was written here by group 'team/one', up to offset 5"):
        commit(two, batch, sleep=lambda _: None)
    assert verify(str(tmp_path), "two").ok
