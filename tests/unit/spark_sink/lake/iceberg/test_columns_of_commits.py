"""Columns of a commit and those of the Iceberg table: what is added, and what is refused."""

from collections import Counter
from dataclasses import replace
from pathlib import Path

import pyarrow as pa
import pytest
from pyiceberg.schema import Schema
from pyiceberg.types import BinaryType, IntegerType, LongType, NestedField, StringType

from spark_sink.errors import SchemaError
from spark_sink.lake.table_contract import Change
from spark_sink.lake.table_settings import TableSettings
from spark_sink.ranges.batch_offset import Offset, Range
from spark_sink.sink.commit_by_compare_and_swap import Batch, commit
from tests.table_kinds import SCHEMA, catalog, iceberg_file, newest, peer, rows_of
from tests.unit.spark_sink.lake.iceberg.table_of_one_partition import (
    A,
    batch_of,
    change_to,
    made,
    offset_counts,
    table_of,
)


def test_a_new_column_is_added_only_on_request(tmp_path: Path) -> None:
    """Old rows read as null then, new ones by the id of the new field."""
    made(tmp_path, rows=3)
    wider = SCHEMA.append(pa.field("delay", pa.int64()))
    with pytest.raises(SchemaError, match="mergeSchema=true adds it"):
        table_of(tmp_path).landing(wider)
    table = table_of(tmp_path, settings=TableSettings(merge_schema=True))
    landing = table.landing(wider)
    rows = rows_of(A, range(3, 5))
    landing.write(pa.RecordBatch.from_arrays([*rows.columns, pa.array([7, 8])], schema=wider))
    batch = Batch(offset=Offset.of([Range("a", 0, 3, 5)]), files=landing.close(), schema=wider)
    commit(table, batch)
    found = peer(tmp_path).scan().to_arrow().sort_by("offset")
    assert found.column("delay").to_pylist() == [None, None, None, 7, 8]


def test_a_column_that_another_writer_added_with_another_type_is_left_alone(tmp_path: Path) -> None:
    """Columns are added after the commit of a batch, so an error would fail a batch that is committed."""
    table = made(tmp_path)
    with peer(tmp_path).update_schema() as update:
        update.add_column("coupon", StringType())
    table.add_columns(pa.schema([("coupon", pa.int64()), ("code", pa.string())]))
    found = peer(tmp_path).schema()
    assert (str(found.find_type("coupon")), str(found.find_type("code"))) == ("string", "string")


def test_files_of_a_column_that_was_replaced_meanwhile_are_refused(tmp_path: Path) -> None:
    """Readers look values up by field id: they would read null, or another column's values."""
    table, batch = made(tmp_path), batch_of(tmp_path, 0, 5)
    with peer(tmp_path).update_schema() as change:
        change.delete_column("value")
    with peer(tmp_path).update_schema() as change:
        change.union_by_name(pa.schema([("value", pa.binary())]))
    with pytest.raises(SchemaError, match="'value' or a field in it was dropped or renamed"):
        commit(table, batch)


NESTED = {
    "struct": ("nested.a", pa.struct([("a", pa.string())]), {"a": "v"}),
    "list": ("nested.element.a", pa.list_(pa.struct([("a", pa.string())])), [{"a": "v"}]),
    "map": ("nested.value.a", pa.map_(pa.string(), pa.struct([("a", pa.string())])), [("k", {"a": "v"})]),
}


@pytest.mark.parametrize("copied", [False, True], ids=["as written", "copied"])
@pytest.mark.parametrize(("path", "kind", "value"), NESTED.values(), ids=NESTED)
def test_files_of_a_nested_field_that_was_replaced_meanwhile_are_refused(
    tmp_path: Path, path: str, kind: pa.DataType, value: object, *, copied: bool
) -> None:
    """Field ids identify the fields in a column, too: readers would find null in a field of the same name."""
    schema = pa.schema([*SCHEMA, ("nested", kind)])
    table = table_of(tmp_path)
    table.create(schema)
    landing = table.landing(schema)
    landing.write(pa.record_batch([*rows_of(A, [0, 1]).columns, pa.array([value] * 2, kind)], schema=schema))
    (file,) = landing.close()
    if copied:
        copy = table.filtered(file, {A: 1})
        assert copy is not None
        file = copy
    with peer(tmp_path).update_schema(allow_incompatible_changes=True) as change:
        change.add_column((*path.split(".")[:-1], "z"), StringType()).delete_column(tuple(path.split(".")))
    with peer(tmp_path).update_schema() as change:
        change.add_column(tuple(path.split(".")), StringType())
    with peer(tmp_path).update_schema(allow_incompatible_changes=True) as change:
        change.delete_column((*path.split(".")[:-1], "z"))
    with pytest.raises(SchemaError, match="'nested' or a field in it was dropped or renamed"):
        table.swap(newest(table), Change(files=[file], positions={A: 2}, beginnings={}, schema=schema))


def test_a_file_whose_path_has_values_of_columns_is_refused(tmp_path: Path) -> None:
    """Readers of an Iceberg table would find null in these columns."""
    table = made(tmp_path)
    file = replace(iceberg_file(tmp_path, A, range(5)), partition_values={"topic": "a"})
    with pytest.raises(SchemaError, match=r"lacks the columns \['topic'\]"):
        table.swap(newest(table), change_to(5, file))


@pytest.mark.parametrize(
    "kind", [pa.uint32(), pa.int8(), pa.duration("s"), pa.time64("ns"), pa.list_(pa.uint64())], ids=str
)
def test_a_type_that_iceberg_does_not_have_is_refused(tmp_path: Path, kind: pa.DataType) -> None:
    """It would be read back as another type."""
    with pytest.raises(SchemaError, match="which Iceberg does not have"):
        table_of(tmp_path).create(SCHEMA.append(pa.field("x", kind)))


def test_a_table_may_require_the_columns_that_every_record_has(tmp_path: Path) -> None:
    """As Delta tables may; after compaction, too, pyiceberg reads it by those columns."""
    keys = (("topic", StringType()), ("partition", IntegerType()), ("offset", LongType()))
    required = [NestedField(number, name, kind, required=True) for number, (name, kind) in enumerate(keys, 1)]
    home = catalog(tmp_path)
    home.create_namespace("raw")
    home.create_table(("raw", "events"), Schema(*required, NestedField(4, "value", BinaryType(), required=False)))
    table = table_of(tmp_path)
    for number in range(10):
        commit(table, batch_of(tmp_path, number, number + 1))
    assert table.compact(2)
    assert len(list(peer(tmp_path).scan().plan_files())) < 10
    assert peer(tmp_path).scan(row_filter="offset >= 4").to_arrow().num_rows == 6
    assert offset_counts(tmp_path) == Counter(range(10))
