"""The verdict finds what a run may do wrong, and the seeds cover each pair of values."""

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from deltalake import DeltaTable, write_deltalake
from pyiceberg.catalog import Catalog, load_catalog

from spark_sink.lake.iceberg.iceberg_table import IcebergTable
from spark_sink.lake.iceberg.landing import IcebergLanding
from spark_sink.lake.parquet_landing import Layout
from spark_sink.lake.table_contract import Change, DataFile, Quarantined
from spark_sink.ranges.batch_offset import TopicPartition
from tests.integration.spark_sink.chaos.draws import pairs, variant, variants
from tests.integration.spark_sink.chaos.stream import LEDGER
from tests.integration.spark_sink.chaos.verdict import judge
from tests.table_kinds import SCHEMA, rows_of

SEEDS = 20
PARTITION = TopicPartition("t", 0)


def _record(offset: int, home: str = "table") -> dict[str, Any]:
    place = {"topic": "t", "partition": 0, "offset": offset, "key": b"k"}
    return {**place, "value": f"{offset}".encode(), "home": home}


RECORDS = [*(_record(offset) for offset in range(4)), *(_record(offset, "quarantine") for offset in range(4, 6))]
COLUMNS = pa.schema([LEDGER.field(name) for name in ("topic", "partition", "offset", "key", "value")])
Rows = list[dict[str, Any]]
Write = Callable[[Path, Sequence[pa.Table], pa.Table], None]


def _without(rows: Rows, offset: int) -> Rows:
    return [row for row in rows if row["offset"] != offset]


def _other(rows: Rows, offset: int) -> Rows:
    return [{**row, "value": b"x"} if row["offset"] == offset else row for row in rows]


def _table(rows: Rows) -> pa.Table:
    return pa.Table.from_pylist(rows, COLUMNS)


def _delta(root: Path, good: Sequence[pa.Table], bad: pa.Table) -> None:
    table = str(root / "a" / "t")
    for rows in good:
        write_deltalake(table, rows, mode="append")
    DeltaTable(table).optimize.compact()  # the files before it are no longer part of the table
    write_deltalake(table, _table([]), mode="append")
    write_deltalake(f"{table}_quarantine", bad)


def _catalog(root: Path) -> Catalog:
    catalog = load_catalog("lake", type="sql", uri=f"sqlite:///{root}/catalog.db", warehouse=f"file://{root}")
    catalog.create_namespace_if_not_exists("raw")
    return catalog


def _iceberg(root: Path, good: Sequence[pa.Table], bad: pa.Table) -> None:
    table = _catalog(root).create_table("raw.t", COLUMNS)
    table.append(_table([_record(7)]))
    table.delete("offset = 7")  # its file is no longer part of the table
    for rows in good:
        table.append(rows)
    _catalog(root).create_table("raw.t_quarantine", COLUMNS).append(bad)


@pytest.mark.parametrize(
    ("good", "bad", "found"),
    [
        (lambda rows: rows, lambda rows: rows, {}),
        (lambda rows: _without(rows, 1), lambda rows: rows, {"lost": 1}),
        (lambda rows: rows, lambda rows: _without(rows, 5), {"lost": 1}),
        (lambda rows: [*rows, rows[2], rows[2]], lambda rows: rows, {"doubled": 2}),
        (lambda rows: rows, lambda rows: [*rows, rows[0]], {"doubled": 1}),
        (lambda rows: rows, lambda rows: [*rows, _record(0)], {"doubled": 1, "misplaced": 1}),
        (lambda rows: [*rows, _record(4)], lambda rows: _without(rows, 4), {"misplaced": 1}),
        (lambda rows: _other(rows, 3), lambda rows: rows, {"wrong": 1}),
        (lambda rows: rows, lambda rows: _other(rows, 4), {"wrong": 1}),
        (lambda rows: [*rows, _record(9)], lambda rows: rows, {"strangers": 1}),
    ],
    ids=["well", "lost", "bad lost", "doubled", "bad doubled", "both", "misplaced", "wrong", "bad wrong", "stranger"],
)
@pytest.mark.parametrize("write", [_delta, _iceberg], ids=["delta", "iceberg"])
def test_each_fault_of_a_table_is_counted(
    tmp_path: Path, write: Write, good: Callable[[Rows], Rows], bad: Callable[[Rows], Rows], found: Mapping[str, int]
) -> None:
    """A verdict that cannot see a fault would make every run of the chaos pass."""
    write(tmp_path, [pa.Table.from_pylist([row], COLUMNS) for row in good(RECORDS[:4])], _table(bad(RECORDS[4:])))
    verdict = judge(tmp_path, pa.Table.from_pylist(RECORDS, LEDGER))
    counts = {name: getattr(verdict, name) for name in ("lost", "doubled", "misplaced", "wrong", "strangers")}
    assert counts == {**dict.fromkeys(counts, 0), **found}
    assert verdict.ok is not bool(found)


def _bad_file(root: Path, name: str) -> DataFile:
    landing = IcebergLanding(_catalog(root).load_table(f"raw.{name}"), SCHEMA, Layout())
    landing.write(rows_of(PARTITION, [4, 5]))
    (file,) = landing.close()
    return file


def test_bad_rows_that_only_a_commit_of_an_iceberg_table_names_count_once(tmp_path: Path) -> None:
    """A writer died between its two commits; the quarantine gets the rows later, perhaps in a file of a compaction."""
    table, quarantine = (
        IcebergTable(f"iceberg://lake.raw.{name}", "g", {"catalog.warehouse": str(tmp_path)})
        for name in ("t", "t_quarantine")
    )
    ledger = pa.Table.from_pylist([_record(offset, "quarantine") for offset in (4, 5)], LEDGER)

    def swap(one: IcebergTable, file: DataFile, *, named: bool = False) -> None:
        snapshot = one.refresh()
        assert snapshot is not None
        bad = Quarantined(files=[file], ends={PARTITION: 6}, before={}) if named else None
        files = [] if named else [file]
        one.swap(snapshot, Change(files=files, positions={PARTITION: 6}, beginnings={}, schema=SCHEMA, quarantined=bad))

    table.create(SCHEMA)
    assert judge(tmp_path, ledger).lost == 2
    swap(table, _bad_file(tmp_path, "t"), named=True)
    assert (judge(tmp_path, ledger).lost, judge(tmp_path, ledger).doubled) == (0, 0)
    quarantine.create(SCHEMA)
    swap(quarantine, _bad_file(tmp_path, "t_quarantine"))
    assert (judge(tmp_path, ledger).lost, judge(tmp_path, ledger).doubled) == (0, 0)
    swap(quarantine, _bad_file(tmp_path, "t_quarantine"))
    assert judge(tmp_path, ledger).doubled == 2


def test_the_seeds_of_a_form_cover_each_pair_of_values() -> None:
    """Four factors of up to four values: twenty seeds are enough, and a seed always draws the same variant."""
    factors = {"a": "1234", "b": "123", "c": "123", "d": "12"}
    drawn = [variant(factors, seed) for seed in range(1, SEEDS + 1)]
    every = {pair for one in variants(factors) for pair in pairs(one)}
    assert {pair for one in drawn for pair in pairs(one)} == every
    assert len(every) == 4 * 3 + 4 * 3 + 4 * 2 + 3 * 3 + 3 * 2 + 3 * 2
    assert drawn == [variant(factors, seed) for seed in range(1, SEEDS + 1)]


@pytest.mark.parametrize(
    ("changed", "wrong"),
    [
        ({}, 0),
        ({"coupon": "c1", "_rescued": None}, 0),
        ({"_rescued": None}, 1),
        ({"_rescued": '{"coupon": "c2"}'}, 1),
        ({"number": 2}, 1),
        ({"name": None}, 1),
        ({"amount": 1.5}, 1),
        ({"place": {"zone": "z2"}}, 1),
    ],
    ids=["rescued", "column", "coupon lost", "coupon", "number", "name", "amount", "nested"],
)
def test_each_decoded_field_is_compared(tmp_path: Path, changed: Mapping[str, Any], wrong: int) -> None:
    """A field that comes in mid-run may have a column of its own or be rescued; it has to be somewhere."""
    key = {"topic": "t", "partition": 0, "offset": 0, "key": b"k"}
    told = {"number": 1, "name": "né 1", "amount": 1.25, "zone": "z1", "coupon": "c1", "home": "table", "value": b"{}"}
    row = {**key, "number": 1, "name": "né 1", "amount": 1.25, "place": {"zone": "z1"}}
    row = {**row, "_rescued": '{"coupon": "c1"}', **changed}
    columns = pa.schema([(name, pa.string()) for name in ("coupon", "_rescued") if name in row])
    known = pa.Table.from_pylist([{name: value for name, value in row.items() if name not in columns.names}])
    for name in columns.names:
        known = known.append_column(name, pa.array([row[name]], pa.string()))
    write_deltalake(str(tmp_path / "t"), known)
    assert judge(tmp_path, pa.Table.from_pylist([{**key, **told}], LEDGER)).wrong == wrong
