"""Partitioned Iceberg tables: each file has one partition, and readers skip the others."""

from datetime import UTC, datetime, timedelta
from pathlib import Path

import pyarrow as pa
import pytest

from spark_sink.errors import SchemaError
from spark_sink.fleet.table_writer import TableWriter
from spark_sink.lake.holes_and_doubles import verify
from spark_sink.lake.iceberg import compaction
from spark_sink.lake.iceberg.compaction import compact
from spark_sink.lake.iceberg.iceberg_table import IcebergTable
from spark_sink.lake.iceberg.partition_terms import parse_terms
from spark_sink.lake.parquet_landing import Layout
from spark_sink.lake.table_settings import TableSettings
from spark_sink.ranges.batch_offset import Offset, Range, TopicPartition
from spark_sink.sink.commit_by_compare_and_swap import Batch, commit
from spark_sink.sink.row_options import RowOptions
from spark_sink.sink.sink_options import SinkOptions
from tests.table_kinds import ADDRESS, SCHEMA, peer, rows_of, warehouse
from tests.unit.spark_sink.fleet.test_table_writer import some

A = TopicPartition("a", 0)
WIDE = SCHEMA.append(pa.field("timestamp", pa.timestamp("us", tz="UTC")))
BEGIN = datetime(2026, 1, 31, 23, tzinfo=UTC)


def _table(root: Path, terms: str) -> IcebergTable:
    return IcebergTable(ADDRESS, "g", warehouse(root), TableSettings(terms=parse_terms(terms)))


def _batch(table: IcebergTable, begin: int, end: int, times: pa.Array | None = None) -> Batch:
    """One row for each hour, or for each of these times."""
    landing = table.landing(WIDE)
    if times is None:
        times = pa.array([BEGIN + timedelta(hours=at) for at in range(begin, end)], WIDE.field("timestamp").type)
    landing.write(pa.RecordBatch.from_arrays([*rows_of(A, range(begin, end)).columns, times], schema=WIDE))
    return Batch(offset=Offset.of([Range("a", 0, begin, end)]), files=landing.close(), schema=WIDE)


def test_readers_skip_the_partitions_of_other_days_and_buckets(tmp_path: Path) -> None:
    """The files have all columns, too, so readers of plain Parquet find them."""
    table = _table(tmp_path, "day(timestamp), bucket(4, offset)")
    commit(table, _batch(table, 0, 26))
    files = list(peer(tmp_path).scan().plan_files())
    assert {one.file.partition[0] for one in files} == {20484, 20485, 20486}
    found = peer(tmp_path).scan("timestamp >= '2026-02-02T00:00:00+00:00' and offset = 25")
    assert len(list(found.plan_files())) == 1
    assert found.to_arrow()["offset"].to_pylist() == [25]
    assert verify(ADDRESS, "g", warehouse(tmp_path)).rows == 26


def test_a_copy_of_the_rows_above_a_floor_stays_in_its_partition(tmp_path: Path) -> None:
    """A batch that overlaps what another agent wrote is trimmed, file by file."""
    table = _table(tmp_path, "topic, day(timestamp)")
    commit(table, _batch(table, 0, 5))
    commit(table, _batch(table, 3, 30))
    days = [one.date() for one in peer(tmp_path).scan().to_arrow()["timestamp"].to_pylist()]
    assert len(days) == 30
    assert verify(ADDRESS, "g", warehouse(tmp_path)).ok
    only = peer(tmp_path).scan("timestamp >= '2026-02-02T00:00:00+00:00'").to_arrow()
    assert sorted(only["offset"].to_pylist()) == list(range(25, 30))


def test_small_files_are_joined_within_their_partition(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A file of two days would be in neither of them."""
    monkeypatch.setattr(compaction, "ENOUGH", 2)
    table = _table(tmp_path, "day(timestamp)")
    for begin in range(0, 30, 3):
        commit(table, _batch(table, begin, begin + 3))
    assert compact("t", table._load, Layout())
    files = list(peer(tmp_path).scan().plan_files())
    assert sorted((one.file.partition[0], one.file.record_count) for one in files) == [
        (20484, 1),
        (20485, 24),
        (20486, 5),
    ]
    assert verify(ADDRESS, "g", warehouse(tmp_path)).rows == 30


def test_a_merged_manifest_lists_its_files_by_partition(tmp_path: Path) -> None:
    """Each commit adds files of several days, and some of none; those of a day stand together, whenever they came."""
    properties = {"commit.manifest.min-count-to-merge": "4"}
    table = IcebergTable(
        ADDRESS, "g", warehouse(tmp_path), TableSettings(terms=parse_terms("day(timestamp)"), properties=properties)
    )
    for begin in range(0, 16, 4):
        days = [BEGIN + timedelta(days=day) for day in (7 * begin % 5, 2, 0)]
        times = pa.array([*days, None], WIDE.field("timestamp").type)
        commit(table, _batch(table, begin, begin + 4, times))
    now = peer(tmp_path)
    snapshot = now.current_snapshot()
    assert snapshot is not None
    (merged,) = snapshot.manifests(now.io)
    days = [entry.data_file.partition[0] for entry in merged.fetch_manifest_entry(now.io)]
    assert len(days) > len(set(days)) > 3
    assert days == sorted(days, key=lambda day: (day is not None, day))
    assert verify(ADDRESS, "g", warehouse(tmp_path)).ok


def test_a_time_outside_the_calendar_stops_no_commit(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A producer that takes microseconds for milliseconds sends times of the year 55000; the record is a record."""
    monkeypatch.setattr(compaction, "ENOUGH", 2)
    strange = [-(2**63), -62135596800000001, 0, 253402300800000000, 2**63 - 1]
    table = _table(tmp_path, "day(timestamp)")
    for begin in (0, 5):
        times = pa.array(strange, pa.int64()).cast(WIDE.field("timestamp").type)
        commit(table, _batch(table, begin, begin + 5, times))
    assert compact("t", table._load, Layout())
    rows = peer(tmp_path).scan().to_arrow().sort_by("offset")
    assert rows["timestamp"].cast(pa.int64()).to_pylist() == 2 * strange
    assert peer(tmp_path).scan("timestamp > '2000-01-01T00:00:00+00:00'").to_arrow().num_rows == 4
    assert verify(ADDRESS, "g", warehouse(tmp_path)).ok


def test_another_partitioning_than_the_table_has_is_refused(tmp_path: Path) -> None:
    """Without the option, the table's own is taken; a change after the files were written stops the batch."""
    table = _table(tmp_path, "topic")
    table.create(SCHEMA)
    with pytest.raises(SchemaError, match=r"is partitioned by topic, and partitionBy is bucket\(2, offset\)"):
        _table(tmp_path, "bucket(2, offset)").landing(SCHEMA)
    landing = _table(tmp_path, "").landing(SCHEMA)
    landing.write(rows_of(A, range(3)))
    batch = Batch(offset=Offset.of([Range("a", 0, 0, 3)]), files=landing.close(), schema=SCHEMA)
    with peer(tmp_path).update_spec() as change:
        change.remove_field("topic")
    with pytest.raises(SchemaError, match="partitioning changed after the files"):
        commit(table, batch)


def test_the_option_of_the_sink_and_of_fleets_makes_a_partitioned_table(tmp_path: Path) -> None:
    """The quarantine beside it has no partitions."""
    given = {"path": ADDRESS, "kafka.group.id": "g", "checkpointLocation": "c", "partitionBy": "topic, bucket(2, key)"}
    options = SinkOptions.parse({**given, "tableFormat": "iceberg"})
    assert options.table.terms == parse_terms("topic, bucket(2, key)")
    assert not options.table.layout.partition_columns
    assert not options.quarantine.terms
    rows = RowOptions.parse({"partitionBy": "topic, day(timestamp)"}, {}, table=ADDRESS)
    writer = TableWriter(ADDRESS, "g", "a", warehouse(tmp_path), rows=rows)
    writer.commit(writer.land(some("x", 0, 3), {"x"}), [Range("x", 0, 0, 3)])
    assert str(peer(tmp_path).spec().fields[1].transform) == "day"
    assert verify(ADDRESS, "g", warehouse(tmp_path)).rows == 3
