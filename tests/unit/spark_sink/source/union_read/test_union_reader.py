"""From which offsets on a union reads Kafka."""

import shutil
from collections.abc import Callable, Mapping
from pathlib import Path

import pyarrow as pa
import pytest

from spark_sink.errors import OptionError, SchemaError, TableError
from spark_sink.lake.delta_table import DeltaLakeTable
from spark_sink.lake.parquet_landing import Landing, normal_schema
from spark_sink.lake.table_storage import filesystem
from spark_sink.ranges.batch_offset import Offset, Range, TopicPartition
from spark_sink.sink.commit_by_compare_and_swap import Batch, commit
from spark_sink.source.union_read import union_reader
from spark_sink.source.union_read.table_query import query
from spark_sink.source.union_read.union_reader import Union, open_union
from spark_sink.source.union_read.unread_ranges import Unread
from tests.table_kinds import SCHEMA, rows_of

KEY = TopicPartition("z", 0)


def _write(path: Path, begin: int, end: int) -> None:
    landing = Landing(filesystem(str(path), make=True), SCHEMA)
    landing.write(rows_of(KEY, range(begin, end)))
    batch = Batch(offset=Offset.of([Range(*KEY, begin, end)]), files=landing.close(), schema=SCHEMA)
    commit(DeltaLakeTable(str(path), "g"), batch)


def test_a_topic_that_went_to_another_table_goes_on_there(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The position of its former table would give the records since then a second time."""
    _write(tmp_path / "z", 0, 3)
    _write(tmp_path / "a", 3, 6)
    asked: list[Mapping[TopicPartition, int]] = []

    def find(_options: object, positions: Mapping[TopicPartition, int], _ids: object) -> Unread:
        asked.append(positions)
        return Unread(ranges=[], identities={}, labels={})

    monkeypatch.setattr(union_reader, "find_unread", find)
    found = open_union(f"{tmp_path}/{{topic}}", "localhost:9", topics=["z"])
    assert asked == [{KEY: 6}]
    assert sum(batch.num_rows for batch in found.stored()) == 6


@pytest.mark.parametrize("more", [(), ((6, 9),)], ids=["a copy", "a copy that was left behind"])
def test_a_copy_of_a_table_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, more: tuple[tuple[int, int], ...]
) -> None:
    """Beside its original under one address with a placeholder, each of its records would be in the result twice."""
    monkeypatch.setattr(union_reader, "find_unread", lambda *_: Unread(ranges=[], identities={}, labels={}))
    _write(tmp_path / "z", 0, 3)
    _write(tmp_path / "a", 3, 6)
    shutil.copytree(tmp_path / "a", tmp_path / "a_backup")
    for begin, end in more:
        _write(tmp_path / "a", begin, end)
    with pytest.raises(TableError, match=r"/a\S* and \S*/a\S* both have records of z/0 from offset 3 on"):
        open_union(f"{tmp_path}/{{topic}}", "localhost:9")
    assert open_union(f"{tmp_path}/a", "localhost:9").schema.names == SCHEMA.names


def test_columns_are_named_once_and_at_least_one(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A name given twice ended in a KeyError, and no name in a stream without rows, which counts as 0 records."""
    _write(tmp_path / "z", 0, 3)
    monkeypatch.setattr(union_reader, "find_unread", lambda *_: Unread(ranges=[], identities={}, labels={}))
    found = open_union(f"{tmp_path}/z", "localhost:9", columns=["offset", "topic", "offset"])
    assert found.schema.names == ["offset", "topic"]
    assert sum(batch.num_rows for batch in found.stored()) == 3
    with pytest.raises(SchemaError, match="'columns' names no column"):
        open_union(f"{tmp_path}/z", "localhost:9", columns=[])


def test_tables_with_other_fields_inside_a_column_are_read_together(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each topic has its table, and a field that is new in one of them may come later in the other."""
    monkeypatch.setattr(union_reader, "find_unread", lambda *_: Unread(ranges=[], identities={}, labels={}))
    monkeypatch.setattr(Union, "unread", lambda _: iter(()))
    for topic, fields in (("a", {"x": 1, "y": "a"}), ("b", {"z": 0.5, "x": 2})):
        key = {"topic": topic, "partition": 0, "offset": 0}
        rows = pa.Table.from_pylist([{**key, "s": fields, "l": [fields], "m": [fields]}])
        kind = pa.map_(pa.string(), rows.schema.field("s").type)
        rows = rows.set_column(5, pa.field("m", kind), pa.array([[("k", fields)]], kind))
        schema = normal_schema(rows.schema.set(1, pa.field("partition", pa.int32())))
        landing = Landing(filesystem(str(tmp_path / topic), make=True), schema)
        landing.write(rows.to_batches()[0])
        batch = Batch(offset=Offset.of([Range(topic, 0, 0, 1)]), files=landing.close(), schema=schema)
        commit(DeltaLakeTable(str(tmp_path / topic), "g"), batch)
    found = open_union(f"{tmp_path}/{{topic}}", "localhost:9")
    one, two = {"x": 1, "y": "a", "z": None}, {"x": 2, "y": None, "z": 0.5}
    expected = [{"s": value, "l": [value], "m": [("k", value)]} for value in (one, two)]
    stored = [row for batch in found.stored() for row in batch.select(["s", "l", "m"]).to_pylist()]
    assert stored == expected
    with query(found, "SELECT s, l, m FROM records ORDER BY topic") as rows:
        assert rows.read_all().to_pylist() == expected


def test_an_end_of_the_logs_cannot_be_asked_for(tmp_path: Path) -> None:
    """It was passed over, and the result had more records than were asked for."""
    _write(tmp_path / "z", 0, 3)
    with pytest.raises(OptionError, match=r"'endingoffsets' is for batch reads .*; a union ends where the logs end"):
        open_union(f"{tmp_path}/z", "localhost:9", options={"endingOffsets": '{"z": {"0": 5}}'})


@pytest.mark.parametrize("damage", [Path.unlink, lambda file: file.write_bytes(b"no Parquet")], ids=["gone", "damaged"])
def test_a_file_that_cannot_be_read_is_an_error_of_its_table(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, damage: Callable[[Path], object]
) -> None:
    """DuckDB names its own stream, so that the statement seemed to be wrong."""
    monkeypatch.setattr(union_reader, "find_unread", lambda *_: Unread(ranges=[], identities={}, labels={}))
    monkeypatch.setattr(Union, "unread", lambda _: iter(()))
    _write(tmp_path / "a", 0, 3)
    _write(tmp_path / "z", 3, 6)
    damage(next((tmp_path / "z").glob("**/*.parquet")))
    found = open_union(f"{tmp_path}/{{topic}}", "localhost:9")
    says = r"^\S*/z/?: the rows cannot be read: .*Could not open Parquet input source"
    with pytest.raises(TableError, match=says), query(found, "SELECT max(partition) FROM records") as rows:
        rows.read_all()
