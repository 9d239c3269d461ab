"""A column of an Iceberg table is its field id: after a rename its values stay, and rows are read by the new name."""

from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from spark_sink.errors import SchemaError
from spark_sink.lake.iceberg import compaction
from spark_sink.lake.iceberg.compaction import compact
from spark_sink.lake.iceberg.iceberg_table import IcebergTable
from spark_sink.lake.parquet_landing import Layout
from spark_sink.lake.table_contract import Change
from spark_sink.ranges.batch_offset import TopicPartition
from spark_sink.source.union_read import union_reader
from spark_sink.source.union_read.table_query import query
from spark_sink.source.union_read.union_reader import Union, open_union
from spark_sink.source.union_read.unread_ranges import Unread
from tests.iceberg_batches import Writer, offsets
from tests.table_kinds import ADDRESS, peer, warehouse

KEY, ROWS = TopicPartition("t", 0), 4
_KEYS = [("topic", pa.string()), ("partition", pa.int32()), ("offset", pa.int64())]
SCHEMA = pa.schema(
    [*_KEYS, ("a", pa.string()), ("b", pa.string()), ("s", pa.struct({"x": pa.int64(), "y": pa.int64()}))]
)


def _write(root: Path, numbers: Iterable[int], schema: pa.Schema, values: Callable[[int], dict[str, Any]]) -> None:
    """Commit a file for each offset."""
    table = IcebergTable(ADDRESS, "g", warehouse(root))
    table.create(schema)
    for number in numbers:
        landing = table.landing(schema)
        row = {"topic": KEY.topic, "partition": KEY.partition, "offset": number, **values(number)}
        landing.write(pa.RecordBatch.from_pylist([row], schema=schema))
        snapshot = table.refresh()
        assert snapshot is not None
        table.swap(
            snapshot, Change(files=landing.close(), positions={KEY: number + 1}, beginnings={KEY: 0}, schema=schema)
        )


def _rename(root: Path, renames: Iterable[tuple[str, str]]) -> None:
    for old, new in renames:
        with peer(root).update_schema() as change:
            change.rename_column(old, new)


def _join(root: Path) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(compaction, "ENOUGH", 2)
        assert compact("t", lambda: peer(root), Layout())


def _streamed(found: Union) -> pa.Table:
    return pa.Table.from_batches(found.stored())


def _queried(found: Union) -> pa.Table:
    with query(found, "FROM records") as rows:
        return rows.read_all()


def _named(number: int, first: str, second: str, nested: str = "x") -> dict[str, Any]:
    return {first: f"a{number}", second: f"b{number}", "s": {nested: number, "y": -number}}


RENAMES: dict[str, tuple[list[tuple[str, str]], Callable[[int], dict[str, Any]]]] = {
    "a column": ([("a", "z")], lambda number: _named(number, "z", "b")),
    "two columns exchange their names": ([("a", "z"), ("b", "a"), ("z", "b")], lambda number: _named(number, "b", "a")),
    "a column gets a former name": ([("a", "z"), ("b", "a")], lambda number: _named(number, "z", "a")),
    "a field of a struct": ([("s.x", "z")], lambda number: _named(number, "a", "b", "z")),
}


@pytest.mark.parametrize("read", [_streamed, _queried], ids=["union", "query"])
@pytest.mark.parametrize(("renames", "values"), RENAMES.values(), ids=RENAMES)
def test_values_are_read_by_the_new_names(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    renames: list[tuple[str, str]],
    values: Callable[[int], dict[str, Any]],
    read: Callable[[Union], pa.Table],
) -> None:
    """Of rows from before the rename, from after it, of both in one compacted file, and by a reader in between."""
    monkeypatch.setattr(union_reader, "find_unread", lambda *_: Unread(ranges=[], identities={}, labels={}))
    monkeypatch.setattr(Union, "unread", lambda _: iter(()))

    def opened() -> Union:
        return open_union("iceberg://lake.raw.events", "localhost:9", options=warehouse(tmp_path))

    def rows(found: Union) -> list[dict[str, Any]]:
        return [_without_keys(one) for one in read(found).sort_by("offset").to_pylist()]

    _write(tmp_path, range(ROWS), SCHEMA, lambda number: _named(number, "a", "b"))
    before = opened()
    _rename(tmp_path, renames)
    assert rows(opened()) == [values(number) for number in range(ROWS)]
    _write(tmp_path, range(ROWS, 2 * ROWS), opened().schema, values)
    assert rows(opened()) == [values(number) for number in range(2 * ROWS)]
    _join(tmp_path)
    assert rows(opened()) == [values(number) for number in range(2 * ROWS)]
    assert rows(before) == [_named(number, "a", "b") for number in range(ROWS)]


def _without_keys(row: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in row.items() if name not in dict(_KEYS)}


@pytest.mark.parametrize("name", ["topic", "partition", "offset"])
@pytest.mark.parametrize("restarted", [False, True], ids=["a running writer", "a new writer"])
def test_a_column_that_identifies_records_is_not_added_a_second_time(
    tmp_path: Path, name: str, *, restarted: bool
) -> None:
    """With mergeSchema=true the former rows had no value in it, so nothing identified them."""
    writer = Writer(tmp_path, more={"mergeSchema": "true"})
    writer.write(0, 3)
    _rename(tmp_path, [(name, "z")])
    if restarted:
        writer = Writer(tmp_path, more={"mergeSchema": "true"})
    says = rf"^lake.raw.events: the table has .* no column '{name}'.* dropped or renamed.*Rename it back"
    with pytest.raises(SchemaError, match=says):
        writer.write(3, 5)
    _rename(tmp_path, [("z", name)])
    Writer(tmp_path).write(3, 5)
    assert offsets(tmp_path) == [0, 1, 2, 3, 4]


def test_a_column_of_values_is_added_a_second_time_with_merge_schema_only(tmp_path: Path) -> None:
    """Its former values stay in the renamed column; without the option nothing is written."""
    writer = Writer(tmp_path)
    writer.write(0, 2)
    _rename(tmp_path, [("value", "payload")])
    with pytest.raises(SchemaError, match=r"the table has no column 'value'.* mergeSchema=true adds it"):
        writer.write(2, 3)
    Writer(tmp_path, more={"mergeSchema": "true"}).write(2, 3)
    rows = peer(tmp_path).scan().to_arrow().sort_by("offset")
    assert rows["payload"].to_pylist() == [b"good", b"good", None]
    assert rows["value"].to_pylist() == [None, None, b"good"]


@pytest.mark.parametrize("renames", [[("a", "z")], [("a", "z"), ("b", "a"), ("z", "b")]], ids=["one", "exchanged"])
def test_files_of_before_a_rename_are_not_committed_after_it(tmp_path: Path, renames: list[tuple[str, str]]) -> None:
    """Readers find values by field ids: the present columns would get the values of others."""
    _write(tmp_path, [0], SCHEMA, lambda number: _named(number, "a", "b"))
    table = IcebergTable(ADDRESS, "g", warehouse(tmp_path))
    landing = table.landing(SCHEMA)
    row = {"topic": "t", "partition": 0, "offset": 1, **_named(1, "a", "b")}
    landing.write(pa.RecordBatch.from_pylist([row], schema=SCHEMA))
    files = landing.close()
    _rename(tmp_path, renames)
    snapshot = table.refresh()
    assert snapshot is not None
    change = Change(files=files, positions={KEY: 2}, beginnings={KEY: 0}, schema=SCHEMA)
    with pytest.raises(SchemaError, match=r"dropped or renamed|the table has no column 'a'"):
        table.swap(snapshot, change)
    assert offsets(tmp_path) == [0]
