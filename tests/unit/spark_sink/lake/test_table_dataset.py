"""A filter gives the same rows whatever statistics the writers of a table's files keep."""

import json
from collections.abc import Callable, Mapping
from datetime import UTC, datetime, timedelta
from pathlib import Path
from random import Random
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest
from deltalake import CommitProperties, DeltaTable
from deltalake.transaction import AddAction

from spark_sink.errors import TableError
from spark_sink.lake import table_dataset as module
from spark_sink.lake.table_dataset import table_dataset

SCHEMA = pa.schema(
    [
        ("topic", pa.string()),
        ("partition", pa.int32()),
        ("offset", pa.int64()),
        ("timestamp", pa.timestamp("us", tz="UTC")),
        ("text", pa.string()),
        ("number", pa.float64()),
        ("truth", pa.bool_()),
        ("value", pa.binary()),
        ("nested", pa.struct([("a", pa.int64())])),
        ("day", pa.string()),
    ]
)
START = datetime(2026, 1, 2, 3, 4, 5, 678901, tzinfo=UTC)
DAYS = ("a b%20", "é", None)
Statistics = Mapping[str, Mapping[str, Any]]


def _add(table: str, rows: pa.Table, statistics: str, day: str | None = None) -> str:
    """Add a file, and return its name."""
    handle = DeltaTable(table)
    name = f"part-{handle.version():03}.parquet"
    pq.write_table(rows.drop_columns(["day"]), Path(table) / name)
    handle.create_write_transaction(
        [AddAction(name, (Path(table) / name).stat().st_size, {"day": day}, 0, True, statistics)],  # noqa: FBT003 -- data changes
        "append",
        handle.schema(),
        ["day"],
        commit_properties=CommitProperties(max_commit_retries=0),
    )
    return name


def _rows(first: int, columns: Mapping[str, list[Any]] | None = None) -> pa.Table:
    rows = 3
    found: dict[str, list[Any]] = {
        "topic": ["t"] * rows,
        "partition": [0] * rows,
        "offset": list(range(first, first + rows)),
        "timestamp": [START + timedelta(milliseconds=first + n) for n in range(rows)],
    }
    found.update(columns or {})
    return pa.table({one.name: pa.array(found.get(one.name, [None] * rows), one.type) for one in SCHEMA})


def _full(rows: pa.Table) -> dict[str, dict[str, Any]]:
    """All statistics as Spark writes them: times in milliseconds, cut off."""
    low: dict[str, Any] = {}
    high: dict[str, Any] = {}
    for name in ("topic", "partition", "offset", "timestamp", "text", "number"):
        bounds = pc.min_max(rows.column(name))
        if bounds["min"].is_valid:
            low[name], high[name] = (_stored(bounds[which].as_py()) for which in ("min", "max"))
    nulls = {name: rows.column(name).null_count for name in SCHEMA.names if name not in {"day", "nested"}}
    return {"minValues": low, "maxValues": high, "nullCount": nulls}


def _stored(value: Any) -> Any:
    return f"{value:%Y-%m-%dT%H:%M:%S}.{value.microsecond // 1000:03}Z" if isinstance(value, datetime) else value


def _json(found: Statistics) -> str:
    return json.dumps({"numRecords": 3, **found})


@pytest.fixture
def table(tmp_path: Path) -> str:
    """A table without files."""
    path = str(tmp_path / "table")
    DeltaTable.create(path, SCHEMA, partition_by=["day"])
    return path


def _filters(chance: Random) -> pc.Expression:
    column = chance.choice(SCHEMA.names[:6])
    values: dict[str, list[Any]] = {
        "topic": ["s", "t", "u"],
        "partition": [0, 1, 2],
        "offset": list(range(30)),
        "timestamp": [START + timedelta(milliseconds=n) for n in range(30)],
        "text": ["a", "b", "c"],
        "number": [-1.5, 0.0, 2.5],
    }
    field, value = pc.field(column), pa.scalar(chance.choice(values[column]), SCHEMA.field(column).type)
    several = pa.array(chance.sample(values[column], 2), SCHEMA.field(column).type)
    one: pc.Expression = chance.choice(
        [field == value, field >= value, field < value, field.is_null(), field.is_valid(), field.isin(several)]
    )
    day = pc.field("day").is_null() if chance.random() < 0.5 else pc.field("day") == chance.choice(DAYS[:2])
    return chance.choice([one, ~one, one & day, one | day, one & (pc.field("offset") >= 10)])


@pytest.mark.parametrize("seed", range(4))
def test_a_filter_loses_no_row_whatever_bounds_are_missing(table: str, seed: int) -> None:
    """The oracle filters all rows; a bound, a number of nulls, and all statistics of a file may be missing."""
    chance, parts = Random(seed), []
    for number in range(8):
        columns: dict[str, list[Any]] = {
            "topic": [chance.choice("stu")] * 3,
            "partition": [number % 3] * 3,
            "text": chance.choice([["a", None, "c"], [None, None, None], ["b", "b", "b"]]),
            "number": [chance.choice([None, 2.5, -1.5])] * 3,
        }
        rows = _rows(number * 3, columns)
        statistics = {
            kind: {name: value for name, value in values.items() if chance.random() < 0.8}
            for kind, values in _full(rows).items()
            if chance.random() < 0.9
        }
        day = DAYS[number % 3]
        _add(table, rows, _json(statistics), day)
        parts.append(rows.set_column(SCHEMA.get_field_index("day"), "day", pa.array([day] * 3, pa.string())))
    everything, found = pa.concat_tables(parts).cast(SCHEMA), table_dataset(DeltaTable(table))
    assert found.to_table().sort_by("offset").equals(everything)
    for _ in range(60):
        wanted = _filters(chance)
        assert found.to_table(filter=wanted).sort_by("offset").equals(everything.filter(wanted)), (seed, str(wanted))


LACKING: dict[str, Callable[[Statistics], Statistics]] = {
    "no bound of the topic": lambda all_: _without(all_, "topic", "minValues", "maxValues"),
    "no upper bound of the topic": lambda all_: _without(all_, "topic", "maxValues"),
    "no upper bound of the time": lambda all_: _without(all_, "timestamp", "maxValues"),
    "no number of nulls": lambda all_: {**all_, "nullCount": {}},
    "all bounds": lambda all_: all_,
}


def _without(found: Statistics, name: str, *kinds: str) -> Statistics:
    return {
        kind: {other: one for other, one in values.items() if other != name or kind not in kinds}
        for kind, values in found.items()
    }


@pytest.mark.parametrize("lacking", LACKING)
def test_a_file_whose_bounds_exclude_a_filter_is_not_opened(table: str, lacking: str) -> None:
    """A replay must not read a large table whole: the files are deleted here, and the replay succeeds."""
    for number in range(6):
        rows = _rows(number * 3)
        name = _add(table, rows, _json(LACKING[lacking](_full(rows))))
        if number != 4:
            (Path(table) / name).unlink()
    found = table_dataset(DeltaTable(table)).to_table(columns=["offset"], filter=pc.field("offset").isin([12, 14]))
    assert found.column("offset").to_pylist() == [12, 14]


def test_times_that_were_cut_to_milliseconds_are_found(table: str) -> None:
    """The largest time of a file is above its bound, also in a file that lacks another bound."""
    rows = _rows(0)
    _add(table, rows, _json(_full(rows)))
    _add(table, _rows(10), _json(_without(_full(_rows(10)), "offset", "maxValues")))
    last = rows.column("timestamp")[2]
    found = table_dataset(DeltaTable(table))
    assert found.to_table(filter=pc.field("timestamp") == last).column("offset").to_pylist() == [2]
    later = _rows(10).column("timestamp")[2]
    assert found.to_table(filter=pc.field("timestamp") >= later).column("offset").to_pylist() == [12]


@pytest.mark.parametrize("statistics", ["{}", _json({})])
def test_files_without_statistics_are_read(table: str, statistics: str) -> None:
    """Statistics are optional."""
    _add(table, _rows(0), statistics)
    _add(table, _rows(30), _json(_full(_rows(30))))
    found = table_dataset(DeltaTable(table)).to_table(filter=pc.field("offset") >= 2)
    assert sorted(found.column("offset").to_pylist()) == [2, 30, 31, 32]


def test_a_path_that_is_not_found_again_is_an_error(table: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """The dataset would keep the condition that loses rows."""
    _add(table, _rows(0), _json(_without(_full(_rows(0)), "topic", "maxValues")))
    monkeypatch.setattr(module, "unquote", lambda path: f"{path}%")
    with pytest.raises(TableError, match=r"a path in an unknown form, 'part-000.parquet%'"):
        table_dataset(DeltaTable(table))
