"""Iceberg tables: the commit is never repeated, and what other writers do to the table is seen."""

import json
import re
import subprocess
import sys
from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pyarrow as pa
import pytest
from pyiceberg.exceptions import CommitFailedException, CommitStateUnknownException
from pyiceberg.schema import Schema
from pyiceberg.table import StaticTable
from pyiceberg.table import Table as Peer
from pyiceberg.transforms import TruncateTransform
from pyiceberg.types import BinaryType, IntegerType, LongType, NestedField, StringType

from spark_sink import positions
from spark_sink.errors import ConflictError, OptionError, SchemaError, TableError
from spark_sink.lake.iceberg import iceberg_table
from spark_sink.lake.iceberg.catalogs import iceberg_address, open_catalog
from spark_sink.lake.iceberg.iceberg_table import IcebergTable
from spark_sink.lake.iceberg.snapshot_commit import Prepared
from spark_sink.lake.iceberg.stored_state import PROPERTY
from spark_sink.lake.table_contract import Change, DataFile, Quarantined
from spark_sink.lake.table_settings import TableSettings
from spark_sink.ranges.batch_offset import Offset, Range, TopicPartition
from spark_sink.sink.compare_and_swap import Batch, commit
from tests.table_kinds import ADDRESS, FOREIGN, SCHEMA, catalog, iceberg_file, newest, peer, rows_of, warehouse

A = TopicPartition("a", 0)


def _table(root: Path, group: str = "g", settings: TableSettings | None = None) -> IcebergTable:
    return IcebergTable(ADDRESS, group, warehouse(root), settings)


def _made(root: Path, *, rows: int = 0) -> IcebergTable:
    table = _table(root)
    table.create(SCHEMA)
    newest(table)
    if rows:
        table.swap(newest(table), _change(rows, iceberg_file(root, A, range(rows))))
    return table


def _change(end: int, *files: DataFile) -> Change:
    return Change(files=files, positions={A: end}, beginnings={}, schema=SCHEMA)


def _batch(root: Path, begin: int, end: int, schema: pa.Schema = SCHEMA) -> Batch:
    file = iceberg_file(root, A, range(begin, end))
    return Batch(offset=Offset.of([Range("a", 0, begin, end)]), files=[file], schema=schema)


def _offsets(root: Path) -> Counter[int]:
    return Counter(peer(root).scan().to_arrow().column("offset").to_pylist())


def _by_transaction(table: Peer, snapshot: int, prepared: Prepared) -> None:
    """Commit as pyiceberg does it by default: four times, each with an assertion of the newest snapshot."""
    with table.transaction() as transaction:
        transaction.set_properties(dict(prepared.properties))
        with transaction.update_snapshot(snapshot_properties=dict(prepared.summary)).merge_append() as producer:
            producer._snapshot_id = snapshot
            for one in prepared.entries:
                producer.append_data_file(one)


@pytest.mark.parametrize("retries", [False, True], ids=["ours", "pyiceberg's own retries"])
def test_a_commit_that_is_repeated_would_let_the_zombie_in(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, *, retries: bool
) -> None:
    """The reason for a commit of our own: each retry asserts the snapshot of the writer that won."""
    if retries:
        monkeypatch.setattr(iceberg_table, "commit", _by_transaction)
    zombie, other = _made(tmp_path), _table(tmp_path)
    stale = newest(zombie)
    file = iceberg_file(tmp_path, A, range(5))
    commit(other, _batch(tmp_path, 0, 5))
    if retries:
        zombie.swap(stale, _change(5, file))
        assert _offsets(tmp_path) == Counter(dict.fromkeys(range(5), 2))
        return
    with pytest.raises(ConflictError):
        zombie.swap(stale, _change(5, file))
    assert _offsets(tmp_path) == Counter(range(5))


def _before(real: Callable[..., object], error: Exception) -> Callable[..., object]:
    def failing(*arguments: object) -> object:
        del arguments
        raise error

    del real
    return failing


def _after(real: Callable[..., object], error: Exception) -> Callable[..., object]:
    def failing(*arguments: object) -> object:
        real(*arguments)
        raise error

    return failing


@pytest.mark.parametrize("error", [CommitStateUnknownException("gone"), CommitFailedException("no"), OSError("reset")])
@pytest.mark.parametrize("when", [_before, _after], ids=["the request is lost", "the answer is lost"])
def test_an_answer_that_is_lost_neither_loses_nor_doubles_rows(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, error: Exception, when: Callable[..., Callable[..., object]]
) -> None:
    """A conflict may be an answer to a request that a proxy repeated; the rows are there then."""
    table, batch = _made(tmp_path), _batch(tmp_path, 0, 5)
    home = catalog(tmp_path)
    failed: list[bool] = []
    real = home.commit_table

    def once(*arguments: object) -> object:
        if failed:
            return real(*arguments)  # type: ignore[arg-type]  # passed on as they came
        failed.append(True)
        return when(real, error)(*arguments)

    monkeypatch.setattr(home, "commit_table", once)
    commit(table, batch, sleep=lambda _: None)
    assert failed
    assert _offsets(tmp_path) == Counter(range(5))
    assert newest(_table(tmp_path)).positions == {A: 5}


def test_a_conflict_that_cannot_be_checked_leaves_the_manifests(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The commit may have landed in spite of the answer; without its manifests the table is unreadable."""
    table = _made(tmp_path)
    snapshot, file = newest(table), iceberg_file(tmp_path, A, range(5))
    home = catalog(tmp_path)

    def unreachable(_: Peer) -> Peer:
        raise OSError("reset")

    with monkeypatch.context() as broken:
        broken.setattr(home, "commit_table", _after(home.commit_table, CommitFailedException("no")))
        broken.setattr(Peer, "refresh", unreachable)
        with pytest.raises(ConflictError):
            table.swap(snapshot, _change(5, file))
    assert newest(_table(tmp_path)).positions == {A: 5}
    assert _offsets(tmp_path) == Counter(range(5))


@pytest.mark.parametrize("turned", [False, True])
def test_of_several_tables_the_highest_position_counts(tmp_path: Path, *, turned: bool) -> None:
    """A topic may move from one table to another; the order in the list says nothing about that."""
    addresses = [f"{ADDRESS}{end}" for end in (200, 100)]
    for address in addresses:
        table = IcebergTable(address, "g", warehouse(tmp_path))
        table.create(SCHEMA)
        table.swap(newest(table), _change(int(address.removeprefix(ADDRESS))))
    text = json.dumps(addresses[::-1] if turned else addresses)
    assert positions(text, "g", warehouse(tmp_path)) == {A: 200}


def test_properties_of_others_and_positions_leave_each_other_alone(tmp_path: Path) -> None:
    """Iceberg has no assertion about properties; a commit sets its own one only."""
    table = _made(tmp_path, rows=3)
    snapshot = newest(table)
    with peer(tmp_path).transaction() as change:
        change.set_properties({"owner": "someone else"})
    table.swap(snapshot, _change(5, iceberg_file(tmp_path, A, range(3, 5))))
    assert peer(tmp_path).properties["owner"] == "someone else"
    assert newest(_table(tmp_path)).positions == {A: 5}


def _roll_back(root: Path) -> None:
    table = peer(root)
    table.manage_snapshots().set_current_snapshot(snapshot_id=table.metadata.snapshots[0].snapshot_id).commit()


def _roll_back_and_append(root: Path) -> None:
    _roll_back(root)
    peer(root).append(pa.Table.from_batches([rows_of(TopicPartition("x", 0), [0])]))


def _roll_back_and_expire(root: Path) -> None:
    _roll_back(root)
    table = peer(root)
    gone = [one.snapshot_id for one in table.metadata.snapshots[1:]]
    table.maintenance.expire_snapshots().by_ids(gone).commit()


def _take_out_the_property(root: Path) -> None:
    with peer(root).transaction() as change:
        change.remove_properties(PROPERTY)


def _put_an_older_property_back(root: Path) -> None:
    older = StaticTable.from_metadata(peer(root).metadata.metadata_log[-1].metadata_file)
    with peer(root).transaction() as change:
        change.set_properties({PROPERTY: older.properties[PROPERTY]})


def _damage_the_property(root: Path) -> None:
    with peer(root).transaction() as change:
        change.set_properties({PROPERTY: "x"})


@pytest.mark.parametrize(
    ("fault", "said"),
    [
        (_roll_back, "rolled back or replaced"),
        (_roll_back_and_append, "rolled back or replaced"),
        (_roll_back_and_expire, "rolled back or replaced"),
        (_take_out_the_property, "was removed"),
        (_put_an_older_property_back, "records would come twice"),
        (_damage_the_property, "is damaged"),
    ],
    ids=lambda one: getattr(one, "__name__", ""),
)
def test_a_table_whose_positions_are_not_those_of_its_rows_is_refused(
    tmp_path: Path, fault: Callable[[Path], None], said: str
) -> None:
    """Properties survive a rollback: the rows between would be lost without a word, or all of them come twice."""
    table = _made(tmp_path, rows=3)
    table.swap(newest(table), _change(6, iceberg_file(tmp_path, A, range(3, 6))))
    batch = _batch(tmp_path, 6, 9)
    fault(tmp_path)
    for writer in (table, _table(tmp_path)):
        with pytest.raises(TableError, match=said):
            commit(writer, batch)


def test_the_metadata_file_that_the_error_names_has_the_positions(tmp_path: Path) -> None:
    """The newest file with that snapshot is the one whose property is wrong."""
    table = _made(tmp_path, rows=3)
    table.swap(newest(table), _change(6, iceberg_file(tmp_path, A, range(3, 6))))
    _put_an_older_property_back(tmp_path)
    with pytest.raises(TableError, match="records would come twice") as refused:
        _table(tmp_path).refresh()
    (snapshot,) = re.findall(r"from the first metadata file with the snapshot (\d+)$", str(refused.value))
    files = map(StaticTable.from_metadata, (one.metadata_file for one in peer(tmp_path).metadata.metadata_log))
    named = next(one for one in files if one.metadata.snapshot_by_id(int(snapshot)) is not None)
    with peer(tmp_path).transaction() as change:
        change.set_properties({PROPERTY: named.properties[PROPERTY]})
    assert newest(_table(tmp_path)).positions == {A: 6}


def test_rows_that_a_rollback_took_back_after_the_look_are_not_passed_over(tmp_path: Path) -> None:
    """Between the look and the swap: the assertion of the snapshot fails, and the next look refuses."""
    table = _made(tmp_path, rows=3)
    table.swap(newest(table), _change(6, iceberg_file(tmp_path, A, range(3, 6))))
    snapshot, file = newest(table), iceberg_file(tmp_path, A, range(6, 9))
    _roll_back(tmp_path)
    with pytest.raises(TableError, match="rolled back"):
        table.swap(snapshot, _change(9, file))


def test_a_table_made_anew_under_the_old_name_stops_the_writer(tmp_path: Path) -> None:
    """Its positions are none, so a batch from the middle would look like a first one."""
    table = _made(tmp_path, rows=3)
    catalog(tmp_path).drop_table(("raw", "events"))
    with pytest.raises(TableError, match="was deleted while the query ran"):
        table.refresh()
    _table(tmp_path).create(SCHEMA)
    with pytest.raises(TableError, match="deleted and recreated"):
        table.refresh()


def test_a_second_group_is_refused_for_the_same_partitions(tmp_path: Path) -> None:
    """It would write the records of the first one again."""
    _made(tmp_path, rows=3)
    with pytest.raises(TableError, match="was written here by group 'g', up to offset 3"):
        commit(_table(tmp_path, "other"), _batch(tmp_path, 0, 5))


def test_a_new_column_is_added_only_on_request(tmp_path: Path) -> None:
    """Old rows read as null then, new ones by the id of the new field."""
    _made(tmp_path, rows=3)
    wider = SCHEMA.append(pa.field("delay", pa.int64()))
    with pytest.raises(SchemaError, match="mergeSchema=true adds it"):
        _table(tmp_path).landing(wider)
    table = _table(tmp_path, settings=TableSettings(merge_schema=True))
    landing = table.landing(wider)
    rows = rows_of(A, range(3, 5))
    landing.write(pa.RecordBatch.from_arrays([*rows.columns, pa.array([7, 8])], schema=wider))
    batch = Batch(offset=Offset.of([Range("a", 0, 3, 5)]), files=landing.close(), schema=wider)
    commit(table, batch)
    found = peer(tmp_path).scan().to_arrow().sort_by("offset")
    assert found.column("delay").to_pylist() == [None, None, None, 7, 8]


def test_a_column_that_another_writer_added_with_another_type_is_left_alone(tmp_path: Path) -> None:
    """Columns are added after the commit of a batch, so an error would fail a batch that is committed."""
    table = _made(tmp_path)
    with peer(tmp_path).update_schema() as update:
        update.add_column("coupon", StringType())
    table.add_columns(pa.schema([("coupon", pa.int64()), ("code", pa.string())]))
    found = peer(tmp_path).schema()
    assert (str(found.find_type("coupon")), str(found.find_type("code"))) == ("string", "string")


def test_a_table_that_forbids_expiry_keeps_its_snapshots(tmp_path: Path) -> None:
    """Iceberg's `gc.enabled=false`: other tables or clones may use the files."""
    table = _made(tmp_path)
    with peer(tmp_path).transaction() as change:
        change.set_properties({"gc.enabled": "False"})
    for end in range(1, 7):
        table.swap(newest(table), _change(end))
    assert not table.compact(2)
    assert len(peer(tmp_path).metadata.snapshots) == 6
    with peer(tmp_path).transaction() as change:
        change.set_properties({"gc.enabled": "true"})
    newest(table)
    assert table.compact(2)


def test_files_of_a_column_that_was_replaced_meanwhile_are_refused(tmp_path: Path) -> None:
    """Readers look values up by field id: they would read null, or another column's values."""
    table, batch = _made(tmp_path), _batch(tmp_path, 0, 5)
    with peer(tmp_path).update_schema() as change:
        change.delete_column("value")
    with peer(tmp_path).update_schema() as change:
        change.union_by_name(pa.schema([("value", pa.binary())]))
    with pytest.raises(SchemaError, match="'value' or a field in it was dropped or renamed"):
        commit(table, batch)


NESTED = {
    "struct": ("nested.a", pa.struct([("a", pa.string())]), {"a": "v"}),
    "list": ("nested.element.a", pa.list_(pa.struct([("a", pa.string())])), [{"a": "v"}]),
    "map": ("nested.value.a", pa.map_(pa.string(), pa.struct([("a", pa.string())])), [("k", {"a": "v"})]),
}


@pytest.mark.parametrize("copied", [False, True], ids=["as written", "copied"])
@pytest.mark.parametrize(("path", "kind", "value"), NESTED.values(), ids=NESTED)
def test_files_of_a_nested_field_that_was_replaced_meanwhile_are_refused(
    tmp_path: Path, path: str, kind: pa.DataType, value: object, *, copied: bool
) -> None:
    """Field ids identify the fields in a column, too: readers would find null in a field of the same name."""
    schema = pa.schema([*SCHEMA, ("nested", kind)])
    table = _table(tmp_path)
    table.create(schema)
    landing = table.landing(schema)
    landing.write(pa.record_batch([*rows_of(A, [0, 1]).columns, pa.array([value] * 2, kind)], schema=schema))
    (file,) = landing.close()
    if copied:
        copy = table.filtered(file, {A: 1})
        assert copy is not None
        file = copy
    with peer(tmp_path).update_schema(allow_incompatible_changes=True) as change:
        change.add_column((*path.split(".")[:-1], "z"), StringType()).delete_column(tuple(path.split(".")))
    with peer(tmp_path).update_schema() as change:
        change.add_column(tuple(path.split(".")), StringType())
    with peer(tmp_path).update_schema(allow_incompatible_changes=True) as change:
        change.delete_column((*path.split(".")[:-1], "z"))
    with pytest.raises(SchemaError, match="'nested' or a field in it was dropped or renamed"):
        table.swap(newest(table), Change(files=[file], positions={A: 2}, beginnings={}, schema=schema))


def test_a_file_whose_path_has_values_of_columns_is_refused(tmp_path: Path) -> None:
    """Readers of an Iceberg table would find null in these columns."""
    table = _made(tmp_path)
    file = replace(iceberg_file(tmp_path, A, range(5)), partition_values={"topic": "a"})
    with pytest.raises(SchemaError, match=r"lacks the columns \['topic'\]"):
        table.swap(newest(table), _change(5, file))


@pytest.mark.parametrize(
    "kind", [pa.uint32(), pa.int8(), pa.duration("s"), pa.time64("ns"), pa.list_(pa.uint64())], ids=str
)
def test_a_type_that_iceberg_does_not_have_is_refused(tmp_path: Path, kind: pa.DataType) -> None:
    """It would be read back as another type."""
    with pytest.raises(SchemaError, match="which Iceberg does not have"):
        _table(tmp_path).create(SCHEMA.append(pa.field("x", kind)))


def test_a_table_that_needs_more_of_a_writer_is_refused(tmp_path: Path) -> None:
    """Rows would be in partitions where no reader looks for them."""
    _made(tmp_path)
    with peer(tmp_path).update_spec() as change:
        change.add_field("offset", TruncateTransform(10))
    with pytest.raises(SchemaError, match="supported are columns, day and bucket"):
        _table(tmp_path).refresh()


def test_old_snapshots_expire_and_the_positions_stay(tmp_path: Path) -> None:
    """Every commit reads and writes the list of snapshots, so it has a bound; a tag of a user is kept."""
    table = _made(tmp_path, rows=1)
    first = peer(tmp_path).metadata.snapshots[0].snapshot_id
    peer(tmp_path).manage_snapshots().create_tag(snapshot_id=first, tag_name="kept").commit()
    done = []
    for number in range(1, 13):
        table.swap(newest(table), _change(number + 1, iceberg_file(tmp_path, A, [number])))
        done.append(table.compact(3))
    metadata = peer(tmp_path).metadata
    assert sum(done) >= 2
    assert len(metadata.snapshots) <= 3 + 1
    assert metadata.snapshot_by_id(first) is not None
    assert newest(_table(tmp_path)).positions == {A: 13}
    assert _offsets(tmp_path) == Counter(range(13))
    lists = {Path(one.manifest_list.removeprefix("file://")).name for one in metadata.snapshots}
    assert {one.name for one in (tmp_path / "warehouse").rglob("snap-*.avro")} == lists


def test_an_expiry_after_commits_of_others_does_not_look_like_a_rollback(tmp_path: Path) -> None:
    """An agent that comes back repeats its last batch, which adds no snapshot, and then expires old ones."""
    table = _made(tmp_path, rows=1)
    for number in range(1, 6):
        table.swap(newest(table), _change(number + 1, iceberg_file(tmp_path, A, [number])))
    for offset in range(6):
        peer(tmp_path).append(pa.Table.from_batches([rows_of(FOREIGN, [offset])]))
    newest(table)
    assert table.compact(3)
    assert newest(_table(tmp_path)).positions == {A: 6}
    table.swap(newest(table), _change(7, iceberg_file(tmp_path, A, [6])))
    assert table.compact(3)  # of the others, too, now that a later commit has stored the positions
    assert len(peer(tmp_path).metadata.snapshots) < 6
    assert newest(_table(tmp_path)).positions == {A: 7}


def test_a_table_that_asks_for_more_snapshots_keeps_them(tmp_path: Path) -> None:
    """Readers that fall behind, and time travel, need them."""
    table = _made(tmp_path)
    with peer(tmp_path).transaction() as change:
        change.set_properties({"history.expire.min-snapshots-to-keep": "5"})
    counts = []
    for end in range(1, 13):
        table.swap(newest(table), _change(end))
        table.compact(2)
        counts.append(len(peer(tmp_path).metadata.snapshots))
    assert counts[:5] == [1, 2, 3, 4, 5]
    assert set(counts[5:]) == {5, 6}


def test_manifests_are_merged_as_the_table_ages(tmp_path: Path) -> None:
    """A commit reads the list of manifests and writes it again."""
    properties = {"commit.manifest.min-count-to-merge": "5"}
    table = _table(tmp_path, settings=TableSettings(properties=properties))
    table.create(SCHEMA)
    for number in range(12):
        table.swap(newest(table), _change(number + 1, iceberg_file(tmp_path, A, [number])))
    now = peer(tmp_path)
    snapshot = now.current_snapshot()
    assert snapshot is not None
    assert len(snapshot.manifests(now.io)) <= 5
    assert _offsets(tmp_path) == Counter(range(12))


def test_bad_rows_that_the_quarantine_has_are_forgotten(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Every version of the metadata has the named ones; without a bound a topic of bad rows would fill it."""
    monkeypatch.setattr(iceberg_table, "_MOST_NAMED", 3)
    table, bad = _made(tmp_path), IcebergTable(f"{ADDRESS}_quarantine", "g", warehouse(tmp_path))
    bad.create(SCHEMA)
    for end in range(1, 9):
        file = iceberg_file(tmp_path, A, [end - 1])
        named = Quarantined(files=[file], ends={A: end}, before={A: end - 1} if end > 1 else {})
        change = Change(files=(), positions={A: end}, beginnings={}, schema=SCHEMA, quarantined=named)
        table.swap(newest(table), change)
        bad.swap(newest(bad), _change(end))
    newest(table)
    assert len(table.named_quarantine([A], {})) <= 4


def test_readers_skip_files_by_the_bounds_of_offset_and_time(tmp_path: Path) -> None:
    """The bounds come from the task that wrote the rows; a time outside the calendar has none."""
    schema = SCHEMA.append(pa.field("timestamp", pa.timestamp("us", tz="UTC")))
    table = _table(tmp_path)
    table.create(schema)
    for number, time in enumerate((1_000_000, 2**60)):
        landing = table.landing(schema)
        rows = rows_of(A, [number])
        times = pa.array([time], schema.field("timestamp").type)
        landing.write(pa.RecordBatch.from_arrays([*rows.columns, times], schema=schema))
        commit(
            table, Batch(offset=Offset.of([Range("a", 0, number, number + 1)]), files=landing.close(), schema=schema)
        )
    scanned = peer(tmp_path).scan("offset = 1")
    assert len(list(scanned.plan_files())) == 1
    later = peer(tmp_path).scan("timestamp > '2020-01-01T00:00:00+00:00'", selected_fields=("offset",))
    assert later.to_arrow().column("offset").to_pylist() == [1]


@pytest.mark.parametrize("path", ["events", "raw.events", "a..b", "/data/x.y.z", "{topic}.raw.events"])
def test_a_name_that_is_no_table_of_a_catalog_is_refused(path: str) -> None:
    """A folder would silently become a Delta table's otherwise."""
    with pytest.raises(OptionError, match=r"catalog\.namespace\.table|cannot stand for the catalog"):
        iceberg_address(path)


def test_a_catalog_without_options_is_refused_with_the_way_out() -> None:
    """The message of pyiceberg names a property that the user has never seen."""
    with pytest.raises(OptionError, match=r"'nowhere': it has no options; give catalog\.warehouse=FOLDER"):
        open_catalog("nowhere", {"warehouse": "without the prefix"})


def test_a_refused_catalog_keeps_its_password_out_of_the_message() -> None:
    """The text of pyiceberg has the values of all options."""
    with pytest.raises(OptionError, match="pyiceberg knows no catalog with credential, uri") as caught:
        open_catalog("nowhere", {"catalog.uri": "none://host", "catalog.credential": "secret"})
    assert "secret" not in str(caught.value)
    assert caught.value.__suppress_context__


def test_pyiceberg_is_imported_only_for_an_iceberg_table() -> None:
    """It loads slowly, and most tables are Delta's."""
    code = "import sys, spark_sink.lake.table_formats, spark_sink.sink.query_tables; print('pyiceberg' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "False"


def test_a_table_may_require_the_columns_that_every_record_has(tmp_path: Path) -> None:
    """As Delta tables may; after compaction, too, pyiceberg reads it by those columns."""
    keys = (("topic", StringType()), ("partition", IntegerType()), ("offset", LongType()))
    required = [NestedField(number, name, kind, required=True) for number, (name, kind) in enumerate(keys, 1)]
    home = catalog(tmp_path)
    home.create_namespace("raw")
    home.create_table(("raw", "events"), Schema(*required, NestedField(4, "value", BinaryType(), required=False)))
    table = _table(tmp_path)
    for number in range(10):
        commit(table, _batch(tmp_path, number, number + 1))
    assert table.compact(2)
    assert len(list(peer(tmp_path).scan().plan_files())) < 10
    assert peer(tmp_path).scan(row_filter="offset >= 4").to_arrow().num_rows == 6
    assert _offsets(tmp_path) == Counter(range(10))
