"""Iceberg tables: the commit is never repeated, and what other writers do to the table is seen."""

import json
import subprocess
import sys
from collections import Counter
from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pytest
from pyiceberg.exceptions import CommitFailedException, CommitStateUnknownException
from pyiceberg.table import Table as Peer
from pyiceberg.transforms import TruncateTransform

from spark_sink import positions
from spark_sink.errors import ConflictError, OptionError, SchemaError, TableError
from spark_sink.lake.iceberg import iceberg_table
from spark_sink.lake.iceberg.catalogs import iceberg_address, open_catalog
from spark_sink.lake.iceberg.iceberg_table import IcebergTable
from spark_sink.lake.iceberg.snapshot_commit import Prepared
from spark_sink.lake.table_contract import Change, Quarantined
from spark_sink.ranges.batch_offset import Offset, Range
from spark_sink.sink.commit_by_compare_and_swap import Batch, commit
from tests.table_kinds import ADDRESS, SCHEMA, catalog, iceberg_file, newest, peer, rows_of, warehouse
from tests.unit.spark_sink.lake.iceberg.table_of_one_partition import (
    A,
    batch_of,
    change_to,
    made,
    offset_counts,
    table_of,
)


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
    zombie, other = made(tmp_path), table_of(tmp_path)
    stale = newest(zombie)
    file = iceberg_file(tmp_path, A, range(5))
    commit(other, batch_of(tmp_path, 0, 5))
    if retries:
        zombie.swap(stale, change_to(5, file))
        assert offset_counts(tmp_path) == Counter(dict.fromkeys(range(5), 2))
        return
    with pytest.raises(ConflictError):
        zombie.swap(stale, change_to(5, file))
    assert offset_counts(tmp_path) == Counter(range(5))


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
    table, batch = made(tmp_path), batch_of(tmp_path, 0, 5)
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
    assert offset_counts(tmp_path) == Counter(range(5))
    assert newest(table_of(tmp_path)).positions == {A: 5}


def test_a_conflict_that_cannot_be_checked_leaves_the_manifests(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The commit may have landed in spite of the answer; without its manifests the table is unreadable."""
    table = made(tmp_path)
    snapshot, file = newest(table), iceberg_file(tmp_path, A, range(5))
    home = catalog(tmp_path)

    def unreachable(_: Peer) -> Peer:
        raise OSError("reset")

    with monkeypatch.context() as broken:
        broken.setattr(home, "commit_table", _after(home.commit_table, CommitFailedException("no")))
        broken.setattr(Peer, "refresh", unreachable)
        with pytest.raises(ConflictError):
            table.swap(snapshot, change_to(5, file))
    assert newest(table_of(tmp_path)).positions == {A: 5}
    assert offset_counts(tmp_path) == Counter(range(5))


@pytest.mark.parametrize("turned", [False, True])
def test_of_several_tables_the_highest_position_counts(tmp_path: Path, *, turned: bool) -> None:
    """A topic may move from one table to another; the order in the list says nothing about that."""
    addresses = [f"{ADDRESS}{end}" for end in (200, 100)]
    for address in addresses:
        table = IcebergTable(address, "g", warehouse(tmp_path))
        table.create(SCHEMA)
        table.swap(newest(table), change_to(int(address.removeprefix(ADDRESS))))
    text = json.dumps(addresses[::-1] if turned else addresses)
    assert positions(text, "g", warehouse(tmp_path)) == {A: 200}


def test_properties_of_others_and_positions_leave_each_other_alone(tmp_path: Path) -> None:
    """Iceberg has no assertion about properties; a commit sets its own one only."""
    table = made(tmp_path, rows=3)
    snapshot = newest(table)
    with peer(tmp_path).transaction() as change:
        change.set_properties({"owner": "someone else"})
    table.swap(snapshot, change_to(5, iceberg_file(tmp_path, A, range(3, 5))))
    assert peer(tmp_path).properties["owner"] == "someone else"
    assert newest(table_of(tmp_path)).positions == {A: 5}


def test_a_second_group_is_refused_for_the_same_partitions(tmp_path: Path) -> None:
    """It would write the records of the first one again."""
    made(tmp_path, rows=3)
    with pytest.raises(TableError, match="was written here by group 'g', up to offset 3"):
        commit(table_of(tmp_path, "other"), batch_of(tmp_path, 0, 5))


def test_a_table_that_needs_more_of_a_writer_is_refused(tmp_path: Path) -> None:
    """Rows would be in partitions where no reader looks for them."""
    made(tmp_path)
    with peer(tmp_path).update_spec() as change:
        change.add_field("offset", TruncateTransform(10))
    with pytest.raises(SchemaError, match="supported are columns, day and bucket"):
        table_of(tmp_path).refresh()


def test_bad_rows_that_the_quarantine_has_are_forgotten(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Every version of the metadata has the named ones; without a bound a topic of bad rows would fill it."""
    monkeypatch.setattr(iceberg_table, "_MOST_NAMED", 3)
    table, bad = made(tmp_path), IcebergTable(f"{ADDRESS}_quarantine", "g", warehouse(tmp_path))
    bad.create(SCHEMA)
    for end in range(1, 9):
        file = iceberg_file(tmp_path, A, [end - 1])
        named = Quarantined(files=[file], ends={A: end}, before={A: end - 1} if end > 1 else {})
        change = Change(files=(), positions={A: end}, beginnings={}, schema=SCHEMA, quarantined=named)
        table.swap(newest(table), change)
        bad.swap(newest(bad), change_to(end))
    newest(table)
    assert len(table.named_quarantine([A], {})) <= 4


def test_readers_skip_files_by_the_bounds_of_offset_and_time(tmp_path: Path) -> None:
    """The bounds come from the task that wrote the rows; a time outside the calendar has none."""
    schema = SCHEMA.append(pa.field("timestamp", pa.timestamp("us", tz="UTC")))
    table = table_of(tmp_path)
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
