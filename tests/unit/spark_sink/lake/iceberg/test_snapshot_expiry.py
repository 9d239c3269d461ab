"""Snapshots and manifests as an Iceberg table ages: they stay few, and the positions stay."""

from collections import Counter
from pathlib import Path

import pyarrow as pa

from spark_sink.lake.table_settings import TableSettings
from tests.table_kinds import FOREIGN, SCHEMA, iceberg_file, newest, peer, rows_of
from tests.unit.spark_sink.lake.iceberg.table_of_one_partition import A, change_to, made, offset_counts, table_of


def test_a_table_that_forbids_expiry_keeps_its_snapshots(tmp_path: Path) -> None:
    """Iceberg's `gc.enabled=false`: other tables or clones may use the files."""
    table = made(tmp_path)
    with peer(tmp_path).transaction() as change:
        change.set_properties({"gc.enabled": "False"})
    for end in range(1, 7):
        table.swap(newest(table), change_to(end))
    assert not table.compact(2)
    assert len(peer(tmp_path).metadata.snapshots) == 6
    with peer(tmp_path).transaction() as change:
        change.set_properties({"gc.enabled": "true"})
    newest(table)
    assert table.compact(2)


def test_old_snapshots_expire_and_the_positions_stay(tmp_path: Path) -> None:
    """Every commit reads and writes the list of snapshots, so it has a bound; a tag of a user is kept."""
    table = made(tmp_path, rows=1)
    first = peer(tmp_path).metadata.snapshots[0].snapshot_id
    peer(tmp_path).manage_snapshots().create_tag(snapshot_id=first, tag_name="kept").commit()
    done = []
    for number in range(1, 13):
        table.swap(newest(table), change_to(number + 1, iceberg_file(tmp_path, A, [number])))
        done.append(table.compact(3))
    metadata = peer(tmp_path).metadata
    assert sum(done) >= 2
    assert len(metadata.snapshots) <= 3 + 1
    assert metadata.snapshot_by_id(first) is not None
    assert newest(table_of(tmp_path)).positions == {A: 13}
    assert offset_counts(tmp_path) == Counter(range(13))
    lists = {Path(one.manifest_list.removeprefix("file://")).name for one in metadata.snapshots}
    assert {one.name for one in (tmp_path / "warehouse").rglob("snap-*.avro")} == lists


def test_an_expiry_after_commits_of_others_does_not_look_like_a_rollback(tmp_path: Path) -> None:
    """An agent that comes back repeats its last batch, which adds no snapshot, and then expires old ones."""
    table = made(tmp_path, rows=1)
    for number in range(1, 6):
        table.swap(newest(table), change_to(number + 1, iceberg_file(tmp_path, A, [number])))
    for offset in range(6):
        peer(tmp_path).append(pa.Table.from_batches([rows_of(FOREIGN, [offset])]))
    newest(table)
    assert table.compact(3)
    assert newest(table_of(tmp_path)).positions == {A: 6}
    table.swap(newest(table), change_to(7, iceberg_file(tmp_path, A, [6])))
    assert table.compact(3)  # of the others, too, now that a later commit has stored the positions
    assert len(peer(tmp_path).metadata.snapshots) < 6
    assert newest(table_of(tmp_path)).positions == {A: 7}


def test_a_table_that_asks_for_more_snapshots_keeps_them(tmp_path: Path) -> None:
    """Readers that fall behind, and time travel, need them."""
    table = made(tmp_path)
    with peer(tmp_path).transaction() as change:
        change.set_properties({"history.expire.min-snapshots-to-keep": "5"})
    counts = []
    for end in range(1, 13):
        table.swap(newest(table), change_to(end))
        table.compact(2)
        counts.append(len(peer(tmp_path).metadata.snapshots))
    assert counts[:5] == [1, 2, 3, 4, 5]
    assert set(counts[5:]) == {5, 6}


def test_manifests_are_merged_as_the_table_ages(tmp_path: Path) -> None:
    """A commit reads the list of manifests and writes it again."""
    properties = {"commit.manifest.min-count-to-merge": "5"}
    table = table_of(tmp_path, settings=TableSettings(properties=properties))
    table.create(SCHEMA)
    for number in range(12):
        table.swap(newest(table), change_to(number + 1, iceberg_file(tmp_path, A, [number])))
    now = peer(tmp_path)
    snapshot = now.current_snapshot()
    assert snapshot is not None
    assert len(snapshot.manifests(now.io)) <= 5
    assert offset_counts(tmp_path) == Counter(range(12))
