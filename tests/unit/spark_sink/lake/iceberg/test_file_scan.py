"""Nested values of an Iceberg table are read, and written again, as they were landed."""

import random
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from spark_sink.lake.iceberg import compaction
from spark_sink.lake.iceberg.compaction import join
from spark_sink.lake.iceberg.file_replacement import replace_files
from spark_sink.lake.iceberg.iceberg_table import IcebergTable
from spark_sink.lake.iceberg.landing import IcebergLanding
from spark_sink.lake.iceberg.stored_files import listed_files, read_file
from spark_sink.lake.iceberg.stored_rows import open_stored
from spark_sink.lake.parquet_landing import Layout
from spark_sink.lake.table_contract import Change
from spark_sink.ranges.batch_offset import TopicPartition
from tests.table_kinds import ADDRESS, SCHEMA, peer, warehouse

_FILES, _ROWS = 3, 40
STRUCT = pa.struct({"x": pa.int64(), "y": pa.string()})
NESTED = {
    "numbers": pa.list_(pa.int64()),
    "structs": pa.list_(STRUCT),
    "map": pa.map_(pa.string(), STRUCT),
    "list in list": pa.list_(pa.list_(STRUCT)),
    "list in struct": pa.struct({"in": pa.list_(STRUCT), "n": pa.int64()}),
    "list in struct in list": pa.list_(pa.struct({"in": pa.list_(STRUCT)})),
    "map in list": pa.list_(pa.map_(pa.string(), STRUCT)),
    "list in map": pa.map_(pa.string(), pa.list_(STRUCT)),
}


def _value(kind: pa.DataType, draw: random.Random, *, null: bool = True) -> Any:
    if null and draw.random() < 0.3:
        return None
    if pa.types.is_list(kind):
        return [_value(kind.value_type, draw) for _ in range(draw.randrange(3))]
    if pa.types.is_map(kind):
        keys = draw.sample("abc", draw.randrange(3))
        return [(key, _value(kind.item_type, draw)) for key in keys]
    if pa.types.is_struct(kind):
        return {one.name: _value(one.type, draw) for one in kind}
    return draw.randrange(9) if pa.types.is_integer(kind) else draw.choice(["", "y"])


def _written(root: Path, draw: random.Random) -> pa.Table:
    """Commit some files of random rows; return the rows."""
    schema = pa.schema([*SCHEMA, *(pa.field(name, kind) for name, kind in NESTED.items())])
    table, files, written = IcebergTable(ADDRESS, "g", warehouse(root)), [], []
    table.create(schema)
    for number in range(_FILES):
        rows = [
            {"topic": "t", "partition": 0, "offset": number * _ROWS + at}
            | {name: _value(kind, draw) for name, kind in NESTED.items()}
            for at in range(_ROWS)
        ]
        written.append(pa.RecordBatch.from_pylist(rows, schema=schema))
        landing = IcebergLanding(peer(root), schema, Layout())
        landing.write(written[-1])
        files += landing.close()
    snapshot = table.refresh()
    assert snapshot is not None
    end = {TopicPartition("t", 0): _FILES * _ROWS}
    table.swap(snapshot, Change(files=files, positions=end, beginnings={}, schema=schema))
    return pa.Table.from_batches(written)


def _stored(root: Path, names: list[str]) -> list[dict[str, Any]]:
    found = open_stored(ADDRESS, warehouse(root))
    assert found is not None
    rows: list[dict[str, Any]] = pa.Table.from_batches(found.rows(names)).sort_by("offset").to_pylist()
    return rows


@pytest.mark.parametrize("seed", range(5))
def test_nulls_inside_of_nested_values_stay(seed: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The library makes an empty list of a null list of structs; a compaction wrote it so into the table."""
    rows = _written(tmp_path, random.Random(seed))
    names = rows.column_names
    assert _stored(tmp_path, names) == rows.to_pylist()
    read = [read_file(peer(tmp_path), one, names) for one in listed_files(peer(tmp_path))]
    assert pa.concat_tables(read).sort_by("offset").to_pylist() == rows.to_pylist()
    monkeypatch.setattr(compaction, "ENOUGH", 2)
    joined = join("t", peer(tmp_path), Layout())
    assert joined is not None
    assert replace_files("t", lambda: peer(tmp_path), joined)
    assert len(listed_files(peer(tmp_path))) == 1
    assert _stored(tmp_path, names) == rows.to_pylist()
