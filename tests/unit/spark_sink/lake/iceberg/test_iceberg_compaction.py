"""Small files are joined under the fence: no row is lost, doubled or brought back, however late the commit comes.

Which files are joined: enough of one size, so that a row is rewritten a few times only.
"""

import time
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from spark_sink.errors import SchemaError, TableError
from spark_sink.lake import vacuumed_files
from spark_sink.lake.holes_and_doubles import verify
from spark_sink.lake.iceberg import compaction, file_replacement
from spark_sink.lake.iceberg.compaction import BOUNDS, ENOUGH, MOST_BYTES, compact, files_to_join, join
from spark_sink.lake.iceberg.data_entries import location
from spark_sink.lake.iceberg.file_replacement import Replacement, replace_files
from spark_sink.lake.iceberg.iceberg_table import IcebergTable
from spark_sink.lake.parquet_landing import Layout
from spark_sink.lake.table_contract import Change
from spark_sink.ranges.batch_offset import TopicPartition
from tests.table_kinds import ADDRESS, FOREIGN, SCHEMA, counted, iceberg_file, peer, rows_of, warehouse

A = TopicPartition("a", 0)


def _commit(root: Path, begin: int, end: int, table: IcebergTable | None = None) -> IcebergTable:
    """Commit one file for each offset."""
    table = table or IcebergTable(ADDRESS, "g", warehouse(root))
    table.create(SCHEMA)
    for number in range(begin, end):
        snapshot = table.refresh()
        assert snapshot is not None
        file = iceberg_file(root, A, [number])
        table.swap(snapshot, Change(files=[file], positions={A: number + 1}, beginnings={}, schema=SCHEMA))
    return table


def _joined(root: Path) -> Replacement:
    joined = join("t", peer(root), Layout())
    assert joined is not None
    return joined


def _files(root: Path) -> int:
    return len(list(peer(root).scan().plan_files()))


def _whole(root: Path, end: int) -> bool:
    report = verify(ADDRESS, "g", warehouse(root))
    return report.ok and report.rows == end == len(counted(peer(root).scan().to_arrow()))


def test_an_agent_joins_small_files_when_it_expires_snapshots(tmp_path: Path) -> None:
    """The number of files stays small, whatever the number of commits; the operation is that of a compaction."""
    table = IcebergTable(ADDRESS, "g", warehouse(tmp_path))
    for number in range(30):
        _commit(tmp_path, number, number + 1, table)
        table.compact(8)
    assert _files(tmp_path) <= 16
    assert _whole(tmp_path, 30)
    kinds = {one.summary.operation.value for one in peer(tmp_path).metadata.snapshots if one.summary}
    assert kinds == {"append", "replace"}
    totals = peer(tmp_path).metadata.snapshots[-1].summary
    assert totals is not None
    assert totals.additional_properties["total-records"] == "30"
    _commit(tmp_path, 30, 31)
    assert _whole(tmp_path, 31)


def test_commits_in_between_do_not_matter(tmp_path: Path) -> None:
    """Appends leave the files where they are, so the compaction goes on top of them."""
    _commit(tmp_path, 0, 10)
    joined = _joined(tmp_path)
    _commit(tmp_path, 10, 13)
    assert replace_files("t", lambda: peer(tmp_path), joined)
    assert _files(tmp_path) == 4
    assert _whole(tmp_path, 13)


def test_a_compaction_of_a_stopped_agent_is_refused(tmp_path: Path) -> None:
    """It read the files, and resumes after another agent has joined the same ones: rows would be doubled."""
    _commit(tmp_path, 0, 10)
    zombie, faster = _joined(tmp_path), _joined(tmp_path)
    assert replace_files("t", lambda: peer(tmp_path), faster)
    assert not replace_files("t", lambda: peer(tmp_path), zombie)
    assert _whole(tmp_path, 10)


@pytest.mark.parametrize("committing", [_commit, None], ids=["a commit", "a compaction"])
def test_a_handle_that_is_behind_is_refused_by_the_catalog(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, committing: Callable[..., object] | None
) -> None:
    """Between the look and the commit: the assertion fails, and the next look decides again."""
    monkeypatch.setattr(file_replacement, "_ATTEMPTS", 1)
    _commit(tmp_path, 0, 10)
    joined, behind = _joined(tmp_path), peer(tmp_path)
    if committing is None:
        assert replace_files("t", lambda: peer(tmp_path), _joined(tmp_path))
    else:
        _commit(tmp_path, 10, 11)
    with pytest.raises(TableError, match="other writers were faster"):
        replace_files("t", lambda: behind, joined)
    assert _whole(tmp_path, 10 if committing is None else 11)


def _late(path: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Remove a file that no snapshot names, and let eight days pass."""
    Path(path.removeprefix("file://")).unlink()
    now = time.time()
    monkeypatch.setattr(vacuumed_files, "time", SimpleNamespace(time=lambda: now + 8 * 24 * 3600))


def test_a_compaction_whose_files_are_gone_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its agent was paused for longer than the retention of a program that removes files without a snapshot."""
    _commit(tmp_path, 0, 10)
    joined = _joined(tmp_path)
    _late(location(joined.added[0]), monkeypatch)
    with pytest.raises(TableError, match="1 of the files to commit are gone"):
        replace_files("t", lambda: peer(tmp_path), joined)
    assert _whole(tmp_path, 10)


def test_a_commit_whose_files_are_gone_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The same for an agent that was paused before its commit."""
    table = _commit(tmp_path, 0, 3)
    snapshot, file = table.refresh(), iceberg_file(tmp_path, A, [3])
    assert snapshot is not None
    _late(location(file), monkeypatch)
    with pytest.raises(TableError, match="1 of the files to commit are gone"):
        table.swap(snapshot, Change(files=[file], positions={A: 4}, beginnings={}, schema=SCHEMA))
    assert _whole(tmp_path, 3)


def test_deleted_rows_do_not_come_back(tmp_path: Path) -> None:
    """Another engine rewrote a file without some rows while the compaction was under way."""
    _commit(tmp_path, 0, 10)
    joined = _joined(tmp_path)
    peer(tmp_path).delete("offset = 3")
    assert not replace_files("t", lambda: peer(tmp_path), joined)
    assert sorted(peer(tmp_path).scan().to_arrow()["offset"].to_pylist()) == [0, 1, 2, *range(4, 10)]


@pytest.mark.parametrize("then", ["before the files are read", "before the commit"])
def test_a_table_with_deletes_by_row_is_left_alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, then: str) -> None:
    """Such a delete applies to earlier files only: in new files its rows would be there again."""
    _commit(tmp_path, 0, 10)
    joined = _joined(tmp_path)
    for module in (compaction, file_replacement):
        monkeypatch.setattr(module, "has_deletes", lambda _: True)
    if then == "before the commit":
        assert not replace_files("t", lambda: peer(tmp_path), joined)
    else:
        assert join("t", peer(tmp_path), Layout()) is None


def test_a_rolled_back_table_is_not_compacted(tmp_path: Path) -> None:
    """The look refuses it, and the failure is not the caller's."""
    table = _commit(tmp_path, 0, 10)
    other = peer(tmp_path)
    other.manage_snapshots().set_current_snapshot(snapshot_id=other.metadata.snapshots[0].snapshot_id).commit()
    assert not compact("t", table._load, Layout())


def test_files_of_other_columns_are_joined_by_their_field_ids(tmp_path: Path) -> None:
    """Rows from before a new column have no value there, and a renamed column keeps its values."""
    _commit(tmp_path, 0, 10)
    with peer(tmp_path).update_schema() as change:
        change.union_by_name(pa.schema([("delay", pa.int64())])).rename_column("value", "payload")
    assert replace_files("t", lambda: peer(tmp_path), _joined(tmp_path))
    rows = peer(tmp_path).scan().to_arrow()
    assert rows["payload"].to_pylist() == [b"v"] * 10
    assert rows["delay"].to_pylist() == [None] * 10


def test_columns_that_are_renamed_during_the_compaction_stop_it(tmp_path: Path) -> None:
    """The new files have the values under the former name, and readers look for field ids."""
    _commit(tmp_path, 0, 10)
    joined = _joined(tmp_path)
    with peer(tmp_path).update_schema() as change:
        change.delete_column("value")
    with pytest.raises(SchemaError, match="dropped or renamed"):
        replace_files("t", lambda: peer(tmp_path), joined)


def test_a_reader_that_loses_rows_changes_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The last check before the commit: as many rows as there were."""
    _commit(tmp_path, 0, 10)
    peer(tmp_path).append(pa.Table.from_batches([rows_of(FOREIGN, [0])]))
    written = compaction._written
    monkeypatch.setattr(compaction, "_written", lambda table, tasks, layout: written(table, tasks[1:], layout))
    with pytest.raises(TableError, match="11 rows were read and 10 are in the new files"):
        join("t", peer(tmp_path), Layout())


SIZES = st.lists(st.one_of(st.integers(1, 1 << 20), st.integers(1, 80 << 20)), max_size=40)


@given(SIZES)
def test_what_is_joined_has_enough_files_of_one_class_or_reaches_the_limit(sizes: list[int]) -> None:
    """Each file once, none that is large, and the smallest first."""
    found = files_to_join(sizes)
    assert len(set(found)) == len(found)
    assert all(sizes[at] < BOUNDS[0] for at in found)
    assert [sizes[at] for at in found] == sorted(sizes[at] for at in found)
    total = sum(sizes[at] for at in found)
    assert total <= MOST_BYTES
    assert not found or len(found) >= ENOUGH or total + max(sizes) > MOST_BYTES


@given(SIZES)
def test_joining_ends(sizes: list[int]) -> None:
    """Joined again and again without new files, a table comes to rest after a few rounds."""
    for _ in range(len(BOUNDS) + 8):
        chosen = files_to_join(sizes)
        if not chosen:
            return
        joined = sum(sizes[at] for at in chosen)
        sizes = [size for at, size in enumerate(sizes) if at not in set(chosen)] + [joined]
    raise AssertionError(sizes)


def test_a_row_is_rewritten_a_few_times_as_the_table_grows() -> None:
    """1,000 rounds of 50 commits with 100 kB each: 5 GB, each byte rewritten at most five times."""
    sizes: list[int] = []
    rewritten = total = 0
    for _ in range(1_000):
        sizes += [100_000] * 50
        total += 5_000_000
        chosen = files_to_join(sizes)
        joined = sum(sizes[at] for at in chosen)
        rewritten += joined
        sizes = [size for at, size in enumerate(sizes) if at not in set(chosen)] + [joined]
    assert rewritten <= 5 * total
    assert len(sizes) <= total / (64 << 20) + 3 * ENOUGH
