"""The history of an Iceberg table stays as other engines need it: in the order of time, and as long as it asks for."""

import itertools
import re
import time
from pathlib import Path

import pyarrow as pa
import pytest
from pyiceberg.table.update import SetSnapshotRefUpdate

from spark_sink.lake.iceberg.iceberg_table import IcebergTable
from spark_sink.lake.table_contract import Change
from spark_sink.ranges.batch_offset import TopicPartition
from tests.table_kinds import ADDRESS, SCHEMA, newest, peer, warehouse

A = TopicPartition("a", 0)


def _made(root: Path) -> IcebergTable:
    table = IcebergTable(ADDRESS, "g", warehouse(root))
    table.create(SCHEMA)
    return table


def _commit(table: IcebergTable, end: int) -> None:
    table.swap(newest(table), Change(files=(), positions={A: end}, beginnings={}, schema=SCHEMA))


def _set_clock(patch: pytest.MonkeyPatch, ahead_s: float) -> None:
    real = time.time
    patch.setattr(time, "time", lambda: real() + ahead_s)


def test_times_do_not_go_back_when_agents_have_different_clocks(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Iceberg for Java loads no table whose snapshots, or former metadata, go back by more than a minute."""
    table = _made(tmp_path)
    for end in range(1, 9):
        with monkeypatch.context() as patch:
            if end % 2:
                _set_clock(patch, 300.0)
            _commit(table, end)
        assert not table.compact(3), "the time of an expiry is that of the slow clock"
    metadata = peer(tmp_path).metadata
    for log in (metadata.snapshot_log, metadata.metadata_log):
        times = [one.timestamp_ms for one in log]
        assert all(after > before - 60_000 for before, after in itertools.pairwise(times)), times
    assert metadata.last_updated_ms >= metadata.snapshot_log[-1].timestamp_ms
    snapshots = sorted(metadata.snapshots, key=lambda one: one.sequence_number or 0)
    assert snapshots == sorted(snapshots, key=lambda one: one.timestamp_ms)


def _keep_by_branch(root: Path, retention: dict[str, int]) -> None:
    table = peer(root)
    main = {"ref-name": "main", "type": "branch", "snapshot-id": table.metadata.current_snapshot_id}
    update = SetSnapshotRefUpdate.model_validate({**main, **retention})
    table._do_commit((update,), ())


@pytest.mark.parametrize("by", ["property", "branch"])
def test_snapshots_stay_for_the_time_that_the_table_asks_for(tmp_path: Path, by: str) -> None:
    """They were expired within seconds, so streaming readers that fell behind ended with an error."""
    table = _made(tmp_path)
    _commit(table, 1)
    if by == "property":
        with peer(tmp_path).transaction() as change:
            change.set_properties({"history.expire.max-snapshot-age-ms": "3600000"})
    else:
        _keep_by_branch(tmp_path, {"max-snapshot-age-ms": 3_600_000})
    for end in range(2, 12):
        _commit(table, end)
        assert not table.compact(2)
    assert len(peer(tmp_path).metadata.snapshots) == 11


def test_snapshots_that_are_older_expire(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """An hour later all but the newest."""
    table = _made(tmp_path)
    with peer(tmp_path).transaction() as change:
        change.set_properties({"history.expire.max-snapshot-age-ms": "3600000"})
    for end in range(1, 8):
        _commit(table, end)
    _set_clock(monkeypatch, 3_700.0)
    newest(table)
    assert table.compact(2)
    assert len(peer(tmp_path).metadata.snapshots) == 1


def test_a_commit_keeps_the_retention_of_the_branch(tmp_path: Path) -> None:
    """Pyiceberg's own commit drops it."""
    table = _made(tmp_path)
    _commit(table, 1)
    _keep_by_branch(tmp_path, {"max-snapshot-age-ms": 5, "min-snapshots-to-keep": 4, "max-ref-age-ms": 6})
    _commit(table, 2)
    main = peer(tmp_path).metadata.refs["main"]
    assert (main.max_snapshot_age_ms, main.min_snapshots_to_keep, main.max_ref_age_ms) == (5, 4, 6)


@pytest.mark.parametrize("name", ["min-snapshots-to-keep", "max-snapshot-age-ms"])
def test_a_property_that_is_not_a_number_stops_no_agent(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, name: str
) -> None:
    """The batch before the expiry is committed, so the expiry is left out, with a warning."""
    table = _made(tmp_path)
    with peer(tmp_path).transaction() as change:
        change.set_properties({f"history.expire.{name}": "many"})
    for end in range(1, 5):
        _commit(table, end)
        assert not table.compact(2)
    assert "snapshots do not expire: a property is not a number: invalid literal for int() with base 10: 'many'" in (
        caplog.text
    )


def test_columns_are_not_added_by_a_clock_that_is_far_behind(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """That change has the time of the clock. The batch before it is committed, so a later one adds the columns."""
    caplog.set_level("INFO")
    table = _made(tmp_path)
    with monkeypatch.context() as patch:
        _set_clock(patch, 300.0)
        _commit(table, 1)
    table.add_columns(pa.schema([*SCHEMA, ("code", pa.int64())]))
    assert "code" not in peer(tmp_path).schema().column_names
    assert re.search(r"columns were not added: this clock is \d+ s behind the table's last change", caplog.text)
    _set_clock(monkeypatch, 290.0)
    table.add_columns(pa.schema([*SCHEMA, ("code", pa.int64())]))
    assert "code" in peer(tmp_path).schema().column_names
    _commit(table, 2)
    times = [one.timestamp_ms for one in peer(tmp_path).metadata.snapshot_log]
    assert times == sorted(times)
