"""Rows that are in an Iceberg table twice go, and no other row does."""

from collections import Counter
from collections.abc import Callable, Iterable
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
import pytest

from spark_sink.cli import main
from spark_sink.errors import TableError
from spark_sink.formats.quarantine_addresses import quarantine_of
from spark_sink.lake import double_row_removal
from spark_sink.lake.double_row_removal import Repaired
from spark_sink.lake.double_row_removal import repair as repair_tables
from spark_sink.lake.holes_and_doubles import verify
from spark_sink.lake.iceberg import compaction, file_replacement, snapshot_commit, stored_files
from spark_sink.lake.iceberg.catalogs import identifier
from spark_sink.lake.iceberg.compaction import compact
from spark_sink.lake.iceberg.file_replacement import Replacement
from spark_sink.lake.iceberg.iceberg_table import IcebergTable
from spark_sink.lake.iceberg.landing import IcebergLanding
from spark_sink.lake.parquet_landing import Layout
from spark_sink.lake.table_contract import Change, DataFile
from spark_sink.lake.table_settings import TableSettings
from spark_sink.ranges.batch_offset import TopicPartition
from tests.iceberg_batches import Writer, bad_offsets, offsets
from tests.table_kinds import ADDRESS, SCHEMA, TERMS, catalog, peer, rows_of, warehouse

pytestmark = pytest.mark.long

KEYS = TopicPartition("t", 0), TopicPartition("u", 1)


def _land(root: Path, rows: Iterable[pa.RecordBatch]) -> list[DataFile]:
    landing = IcebergLanding(peer(root), SCHEMA, Layout())
    for batch in rows:
        landing.write(batch)
    return landing.close()


def _swap(root: Path, files: list[DataFile], end: int | None = None) -> None:
    table = IcebergTable(ADDRESS, "g", warehouse(root))
    snapshot = table.refresh()
    assert snapshot is not None
    positions = dict.fromkeys(KEYS, end) if end else {}
    begin = {} if snapshot.positions or not end else dict.fromkeys(KEYS, 0)
    table.swap(snapshot, Change(files=files, positions=positions, beginnings=begin, schema=SCHEMA))


def _written(root: Path, *, by_partition: bool = False) -> None:
    """Write six files, or twelve by partition, of five offsets each of two partitions."""
    IcebergTable(ADDRESS, "g", warehouse(root), TableSettings(terms=TERMS if by_partition else ())).create(SCHEMA)
    for begin in range(0, 30, 5):
        _swap(root, _land(root, [rows_of(key, range(begin, begin + 5)) for key in KEYS]), begin + 5)


def _rows(root: Path) -> Counter[tuple[object, ...]]:
    rows = peer(root).scan().to_arrow()
    return Counter(zip(*(rows[name].to_pylist() for name in SCHEMA.names), strict=True))


def repair(root: Path, *, apply: bool = True, within_files: bool = False) -> list[Repaired]:
    """Repair the table and its quarantine."""
    return list(repair_tables(ADDRESS, warehouse(root), apply=apply, within_files=within_files))


def _a_file_listed_twice(root: Path) -> None:
    """As a retried `add_files`, or a commit of a writer that repeats it on the newest snapshot."""
    table = peer(root)
    listed = [one.file for one in table.scan().plan_files()][:2]
    with table.transaction() as change, change.update_snapshot().fast_append() as producer:
        for one in [*listed, listed[0]]:
            producer.append_data_file(one)


def _copies_of_files(root: Path) -> None:
    _swap(root, _land(root, [rows_of(KEYS[0], range(10)), rows_of(KEYS[1], range(5))]))


def _parts_of_files(root: Path) -> None:
    _swap(root, _land(root, [rows_of(KEYS[0], range(3, 12))]))
    _swap(root, _land(root, [rows_of(KEYS[0], [4, 9, 25])]))


def _a_joined_file_beside_the_small_ones(root: Path) -> None:
    """As an unfenced compaction after ours."""
    _swap(root, _land(root, [rows_of(key, range(30)) for key in KEYS]))


DOUBLINGS = [_a_file_listed_twice, _copies_of_files, _parts_of_files, _a_joined_file_beside_the_small_ones]


def _name(value: object) -> str:
    return getattr(value, "__name__", str(value)).strip("_").replace("_", " ")


@pytest.mark.parametrize("doubling", DOUBLINGS, ids=_name)
@pytest.mark.parametrize("by_partition", [False, True], ids=["flat", "by partition"])
def test_repair_takes_out_each_double_and_nothing_else(
    tmp_path: Path, doubling: Callable[[Path], None], *, by_partition: bool
) -> None:
    """In one commit, which streaming readers skip; its totals are those of the table."""
    _written(tmp_path, by_partition=by_partition)
    once = _rows(tmp_path)
    doubling(tmp_path)
    doubled = _rows(tmp_path)
    assert set(doubled) == set(once)
    [shown] = repair(tmp_path, apply=False)
    assert _rows(tmp_path) == doubled
    snapshots = len(peer(tmp_path).metadata.snapshots)
    [done] = repair(tmp_path)
    assert (shown.rows, done.rows, done.different, done.repeated) == (*[doubled.total() - 60] * 2, 0, 0)
    assert _rows(tmp_path) == once
    table = peer(tmp_path)
    assert len(table.metadata.snapshots) == snapshots + 1
    current = table.current_snapshot()
    assert current is not None
    assert current.summary is not None
    assert current.summary.operation.value == "replace"
    assert current.summary["total-records"] == "60"
    assert current.summary["total-data-files"] == str(len(list(table.scan().plan_files())))
    assert repair(tmp_path)[0].files == []
    assert verify(ADDRESS, "g", warehouse(tmp_path)).ok


def test_rows_of_one_offset_with_other_values_stay(tmp_path: Path) -> None:
    """A copy changes no value, so these are no doubles."""
    _written(tmp_path)
    other = rows_of(KEYS[0], range(3)).set_column(3, "value", pa.array([b"w"] * 3, pa.binary()))
    _swap(tmp_path, _land(tmp_path, [other]))
    before = _rows(tmp_path)
    [done] = repair(tmp_path)
    assert (done.rows, done.different) == (0, 3)
    assert _rows(tmp_path) == before


def test_equal_rows_of_one_file_stay_unless_asked_for(tmp_path: Path) -> None:
    """A query that makes several rows of one record wrote them."""
    _written(tmp_path)
    once = _rows(tmp_path)
    _swap(tmp_path, _land(tmp_path, [rows_of(KEYS[0], [40, 41, 41, 41])]))
    [done] = repair(tmp_path)
    assert (done.rows, done.repeated) == (0, 2)
    [done] = repair(tmp_path, within_files=True)
    assert done.rows == 2
    assert _rows(tmp_path).total() == once.total() + 2


def test_the_quarantine_is_repaired_as_well_and_running_writers_go_on(tmp_path: Path) -> None:
    """Their positions are not those of a rolled back table, and their next commit is on top of the repair."""
    writer = Writer(tmp_path)
    writer.write(0, 10, {2, 5})
    for address in (ADDRESS, quarantine_of(ADDRESS)):
        table = catalog(tmp_path).load_table(identifier(address).path)
        table.append(table.scan().to_arrow())
    assert (len(offsets(tmp_path)), len(bad_offsets(tmp_path))) == (16, 4)
    assert [one.rows for one in repair(tmp_path)] == [8, 2]
    writer.write(10, 20, {12})
    Writer(tmp_path).write(20, 30, {25})
    assert bad_offsets(tmp_path) == [2, 5, 12, 25]
    assert sorted([*offsets(tmp_path), 2, 5, 12, 25]) == list(range(30))


def test_a_table_without_a_quarantine_has_one_result(tmp_path: Path) -> None:
    """No quarantine is made by looking for it."""
    _written(tmp_path)
    assert [one.table for one in repair(tmp_path)] == [ADDRESS]
    with pytest.raises(TableError, match=r"lake\.raw\.none: there is no Iceberg table"):
        list(repair_tables("iceberg://lake.raw.none", warehouse(tmp_path)))


def _join(root: Path) -> None:
    handle = IcebergTable(ADDRESS, "g", warehouse(root))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(compaction, "ENOUGH", 2)
        assert compact("t", handle._load, Layout())


def _delete_what_keeps(root: Path) -> None:
    peer(root).delete("offset < 10")


def _remove_the_file_that_keeps(root: Path) -> None:
    """As another program that repairs the table, and keeps the other copy."""
    table = peer(root)
    (kept,) = (one.file for one in table.scan().plan_files() if one.file.record_count > 10)
    with table.transaction() as change, change.update_snapshot().overwrite() as producer:
        producer.delete_data_file(kept)


MEANWHILE: dict[str, Callable[[Path], object]] = {
    "a compaction of ours": _join,
    "another repair": repair,
    "a delete": _delete_what_keeps,
    "a repair of another program": _remove_the_file_that_keeps,
    "a commit": lambda root: _swap(root, _land(root, [rows_of(key, range(30, 35)) for key in KEYS]), 35),
    "a third copy": _a_joined_file_beside_the_small_ones,
}


@pytest.mark.parametrize("meanwhile", MEANWHILE)
@pytest.mark.parametrize("then", ["before the look", "after the look"])
def test_another_writer_during_a_repair_loses_and_doubles_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, meanwhile: str, then: str
) -> None:
    """The file that keeps a row may be gone when the one that loses it is taken out."""
    _written(tmp_path)
    _copies_of_files(tmp_path)
    pending = [MEANWHILE[meanwhile]]
    expected: list[Counter[tuple[object, ...]]] = []

    def between() -> None:
        if pending:
            pending.pop()(tmp_path)
            expected.append(Counter(_rows(tmp_path).keys()))

    def slow(name: str, look: Callable[[], object], change: Replacement) -> bool:
        between()
        return file_replacement.replace_files(name, look, change)  # type: ignore[arg-type]  # handed on

    def slow_commit(*given: object) -> None:
        between()
        commit(*given)

    commit: Callable[..., None] = snapshot_commit.commit
    if then == "before the look":
        monkeypatch.setattr(stored_files, "replace_files", slow)
    else:
        monkeypatch.setattr(file_replacement, "commit", slow_commit)
    repair(tmp_path, within_files=True)  # the compaction joins both copies of a row into one file
    if meanwhile == "a third copy":
        repair(tmp_path)  # of what came during the first one
    assert _rows(tmp_path) == expected[0]


def test_a_table_with_deletes_by_row_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The rows that such a delete hides would be in the new files again."""
    _written(tmp_path)
    _copies_of_files(tmp_path)
    before = _rows(tmp_path)
    monkeypatch.setattr(stored_files, "has_deletes", lambda _: True)
    with pytest.raises(TableError, match="the table was not repaired: the table has deletes by row"):
        repair(tmp_path)
    assert _rows(tmp_path) == before


def test_a_table_that_was_rolled_back_is_refused(tmp_path: Path) -> None:
    """Its positions are ahead of its rows: this is for `azimuth rewind`."""
    _written(tmp_path)
    table = peer(tmp_path)
    table.manage_snapshots().set_current_snapshot(snapshot_id=table.history()[0].snapshot_id).commit()
    with pytest.raises(TableError, match="does not descend from snapshot"):
        repair(tmp_path)


def test_a_table_whose_rows_have_no_offsets_is_refused(tmp_path: Path) -> None:
    """Equal rows may be two records."""
    _written(tmp_path)
    with peer(tmp_path).update_schema() as change:
        change.delete_column("offset")
    with pytest.raises(TableError, match="no column 'offset', so nothing says which of its rows are there twice"):
        repair(tmp_path)


def test_a_reader_that_loses_rows_changes_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The last check before the commit: as many rows as the manifest lists."""
    _written(tmp_path)
    _copies_of_files(tmp_path)
    before, read = _rows(tmp_path), stored_files.read_file

    def short(*given: object) -> pa.Table:
        rows: pa.Table = read(*given)  # type: ignore[arg-type]  # handed on
        return rows.slice(1) if "value" in rows.column_names else rows

    monkeypatch.setattr(stored_files, "read_file", short)
    with pytest.raises(TableError, match=r"rows were read of \d+; nothing was changed|out of bounds"):
        repair(tmp_path)
    assert _rows(tmp_path) == before


def test_a_catalog_that_fails_after_the_commit_fails_no_repair(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The rows are gone, so an error would be wrong."""
    _written(tmp_path)
    _copies_of_files(tmp_path)
    done = file_replacement.replace_files

    def last(*given: object) -> bool:
        found = done(*given)  # type: ignore[arg-type]  # handed on
        monkeypatch.setattr(IcebergTable, "refresh", lambda _: pytest.fail("no answer"))
        monkeypatch.setattr(double_row_removal, "_is_there", lambda *_: False)
        return found

    monkeypatch.setattr(stored_files, "replace_files", last)
    (found,) = repair(tmp_path)
    assert found.rows == 15
    assert set(_rows(tmp_path).values()) == {1}


def test_the_command_takes_every_table_of_an_address(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """With `{topic}`; and `--dry-run` changes nothing."""
    for topic in ("t", "u.v"):
        Writer(tmp_path, topic=topic, more={"path": "iceberg://lake.raw.{topic}"}).write(0, 10, {3})
        table = catalog(tmp_path).load_table(("raw", topic.replace(".", "_")))
        rows = table.scan().to_arrow()
        table.append(rows.filter(pc.less(rows["offset"], 5)))
    storage = f"--storage=catalog.warehouse={tmp_path / 'warehouse'}"
    said = []
    for more in (["--dry-run"], [], []):
        with pytest.raises(SystemExit) as ended:
            main(["repair", "lake.raw.{topic}", storage, *more])
        assert not ended.value.code
        said.append(capsys.readouterr().out.splitlines()[-1])
    assert [line.partition(": ")[2] for line in said] == [
        "8 double rows of 2 tables would be removed",
        "8 double rows of 2 tables were removed",
        "0 double rows of 2 tables were removed",
    ]


def test_an_entry_may_be_of_any_former_partitioning(tmp_path: Path) -> None:
    """The rows that stay are written with the present one."""
    _written(tmp_path)
    once = _rows(tmp_path)
    with peer(tmp_path).update_spec() as change:
        change.add_identity("topic")
    _swap(tmp_path, _land(tmp_path, [rows_of(KEYS[0], range(11))]))  # it has more rows, so the others lose theirs
    assert peer(tmp_path).spec().spec_id == 1
    [done] = repair(tmp_path)
    assert done.rows == 11
    assert _rows(tmp_path) == once
