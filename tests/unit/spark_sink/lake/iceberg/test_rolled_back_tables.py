"""Iceberg tables whose rows or positions another engine set back, or made again: the writer stops, and says why."""

import re
from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pytest
from pyiceberg.table import StaticTable

from spark_sink.errors import TableError
from spark_sink.lake.iceberg.positions_in_table_properties import PROPERTY
from spark_sink.ranges.batch_offset import TopicPartition
from spark_sink.sink.commit_by_compare_and_swap import commit
from tests.table_kinds import SCHEMA, catalog, iceberg_file, newest, peer, rows_of
from tests.unit.spark_sink.lake.iceberg.table_of_one_partition import A, batch_of, change_to, made, table_of


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
    table = made(tmp_path, rows=3)
    table.swap(newest(table), change_to(6, iceberg_file(tmp_path, A, range(3, 6))))
    batch = batch_of(tmp_path, 6, 9)
    fault(tmp_path)
    for writer in (table, table_of(tmp_path)):
        with pytest.raises(TableError, match=said):
            commit(writer, batch)


def test_the_metadata_file_that_the_error_names_has_the_positions(tmp_path: Path) -> None:
    """The newest file with that snapshot is the one whose property is wrong."""
    table = made(tmp_path, rows=3)
    table.swap(newest(table), change_to(6, iceberg_file(tmp_path, A, range(3, 6))))
    _put_an_older_property_back(tmp_path)
    with pytest.raises(TableError, match="records would come twice") as refused:
        table_of(tmp_path).refresh()
    (snapshot,) = re.findall(r"from the first metadata file with the snapshot (\d+)$", str(refused.value))
    files = map(StaticTable.from_metadata, (one.metadata_file for one in peer(tmp_path).metadata.metadata_log))
    named = next(one for one in files if one.metadata.snapshot_by_id(int(snapshot)) is not None)
    with peer(tmp_path).transaction() as change:
        change.set_properties({PROPERTY: named.properties[PROPERTY]})
    assert newest(table_of(tmp_path)).positions == {A: 6}


def test_rows_that_a_rollback_took_back_after_the_look_are_not_passed_over(tmp_path: Path) -> None:
    """Between the look and the swap: the assertion of the snapshot fails, and the next look refuses."""
    table = made(tmp_path, rows=3)
    table.swap(newest(table), change_to(6, iceberg_file(tmp_path, A, range(3, 6))))
    snapshot, file = newest(table), iceberg_file(tmp_path, A, range(6, 9))
    _roll_back(tmp_path)
    with pytest.raises(TableError, match="rolled back"):
        table.swap(snapshot, change_to(9, file))


def test_a_table_made_anew_under_the_old_name_stops_the_writer(tmp_path: Path) -> None:
    """Its positions are none, so a batch from the middle would look like a first one."""
    table = made(tmp_path, rows=3)
    catalog(tmp_path).drop_table(("raw", "events"))
    with pytest.raises(TableError, match="was deleted while the query ran"):
        table.refresh()
    table_of(tmp_path).create(SCHEMA)
    with pytest.raises(TableError, match="deleted and recreated"):
        table.refresh()
