"""Structs compared by the names of their fields: what merges, what is refused, and what becomes of rows."""

from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from spark_sink.errors import SchemaError
from spark_sink.fetch.raw_columns import arrow_schema
from spark_sink.lake.foreign_parquet import with_times_of
from spark_sink.lake.parquet_landing import normal_columns
from spark_sink.lake.schema_fit import fit_schema, refuse_new
from spark_sink.lake.struct_fields import all_paths, lost_paths, new_paths

INT, TEXT = pa.int64(), pa.string()
# The type of a field follows from its name, so that any two schemas can be merged.
LEAVES = {"a": INT, "b": TEXT, "c": pa.bool_(), "d": pa.float64()}
Value = Any  # of a column
VALUES = {"a": 1, "b": "x", "c": True, "d": 0.5}


@st.composite
def _structs(draw: st.DrawFn, depth: int = 3) -> pa.StructType:
    names = draw(st.lists(st.sampled_from([*"abcd", *(["s", "l", "m"] if depth else [])]), min_size=1, unique=True))
    return pa.struct([pa.field(name, draw(_types(name, depth))) for name in names])


def _types(name: str, depth: int) -> st.SearchStrategy[pa.DataType]:
    if name in LEAVES:
        return st.just(LEAVES[name])
    inner = _structs(depth - 1)
    if name == "s":
        return inner
    return inner.map(pa.list_) if name == "l" else inner.map(lambda one: pa.map_(TEXT, one))


@st.composite
def _value(draw: st.DrawFn, name: str, kind: pa.DataType) -> Value:
    if draw(st.integers(0, 4)) == 0:
        return None
    if pa.types.is_struct(kind):
        return {one.name: draw(_value(one.name, one.type)) for one in kind}
    if pa.types.is_list(kind):
        return [draw(_value("s", kind.value_type)) for _ in range(draw(st.integers(0, 2)))]
    if pa.types.is_map(kind):
        return [(f"k{n}", draw(_value("s", kind.item_type))) for n in range(draw(st.integers(0, 2)))]
    return VALUES[name]


def _schema(one: pa.StructType) -> pa.Schema:
    return pa.schema(list(one))


def _seen(value: Value, kind: pa.DataType) -> Value:
    """The value as it is read in a type: fields by name, those that are missing are null, and the others are gone."""
    if value is None:
        return None
    if pa.types.is_struct(kind):
        return {one.name: _seen(value.get(one.name), one.type) for one in kind}
    if pa.types.is_list(kind):
        return [_seen(one, kind.value_type) for one in value]
    if pa.types.is_map(kind):
        return [(key, _seen(one, kind.item_type)) for key, one in value]
    return value


@given(_structs(), _structs(), st.data())
def test_any_two_schemas_merge_and_the_rows_of_both_fit_the_table(
    old: pa.StructType, new: pa.StructType, data: st.DataObject
) -> None:
    """Merge, cast and compaction lose no value and invent none; the table's fields keep their places."""
    have, want = _schema(old), _schema(new)
    lacking = fit_schema("t", have, want)
    table = pa.unify_schemas([have, pa.schema(lacking)])
    assert fit_schema("t", table, want) == fit_schema("t", table, have) == []
    assert lost_paths(have, table) == lost_paths(want, table) == []
    assert all_paths(table) == all_paths(have) | all_paths(want)
    assert bool(lacking) == bool(all_paths(want) - all_paths(have))
    assert with_times_of(table, have) == pa.schema([table.field(one.name) for one in have])
    for rows in (have, want):
        value = {one.name: data.draw(_value(one.name, one.type)) for one in rows}
        (row,) = pa.Table.from_pylist([value], schema=rows).to_pylist()
        kind = pa.schema([table.field(name) for name in rows.names])
        (found,) = pa.Table.from_pylist([value], schema=rows).cast(kind).to_pylist()
        assert found == {name: _seen(row[name], kind.field(name).type) for name in rows.names}


@given(_structs(), _structs())
def test_what_is_new_is_exactly_what_the_table_lacks(old: pa.StructType, new: pa.StructType) -> None:
    """Only these fields go to the table's metadata, so that those that are there stay as they are."""
    have, want = _schema(old), _schema(new)
    known = {one.name: one.type for one in have}
    paths = [path for one in fit_schema("t", have, want) for path in new_paths(one.name, known.get(one.name), one.type)]
    lacking = all_paths(want) - all_paths(have)
    assert set(paths) == {path for path in lacking if path.rpartition(".")[0] not in lacking}


@given(_structs())
def test_the_columns_of_a_table_may_all_be_null(kind: pa.StructType) -> None:
    """A new field has no value in earlier rows, and a writer of files keeps no NOT NULL."""
    required = pa.schema([pa.field(one.name, _required(one.type), nullable=False) for one in kind])
    assert normal_columns(required).equals(_schema(kind))


def test_names_inside_lists_stay() -> None:
    """Source and sink compare their columns as text; Spark calls an element `element`, and Arrow calls it `item`."""
    columns = arrow_schema(headers=True).append(pa.field("tags", pa.list_(pa.field("item", pa.string()))))
    assert [str(one.type) for one in normal_columns(columns)] == [str(one.type) for one in columns]


def _required(kind: pa.DataType) -> pa.DataType:
    if pa.types.is_struct(kind):
        return pa.struct([pa.field(one.name, _required(one.type), nullable=False) for one in kind])
    if pa.types.is_list(kind):
        return pa.list_(pa.field("element", _required(kind.value_type), nullable=False))
    if pa.types.is_map(kind):
        return pa.map_(TEXT, pa.field("value", _required(kind.item_type), nullable=False))
    return kind


def _wrapped(kind: pa.DataType) -> pa.DataType:
    return pa.list_(pa.struct([("m", pa.map_(TEXT, pa.struct([("x", kind)])))]))


@pytest.mark.parametrize(
    ("have", "want", "said"),
    [
        (
            _wrapped(INT),
            _wrapped(TEXT),
            r"t: field 'l.element.m.value.x' is int64 in the table and string in the query",
        ),
        (_wrapped(pa.int32()), _wrapped(INT), r"field 'l.element.m.value.x' is int32 in the table and int64 in the"),
        (
            _wrapped(INT),
            _wrapped(pa.struct([("y", INT)])),
            r"field 'l.element.m.value.x' is int64 in the table and str",
        ),
        (pa.struct([("x", INT)]), pa.list_(pa.struct([("x", INT)])), r"t: column 'l' is struct<x: int64> in the table"),
        (pa.struct([("x", INT)]), pa.struct([("X", INT)]), r"t: field 'l.X' is called 'l.x' in the table"),
        (
            pa.map_(pa.struct([("x", INT)]), INT),
            pa.map_(pa.struct([("x", INT), ("y", INT)]), INT),
            r"t: field 'l.key' is struct<x: int64> in the table",
        ),
    ],
    ids=["another type", "a wider type", "a struct", "a list", "another case", "a key of a map"],
)
def test_what_cannot_be_merged_is_refused_with_its_path(have: pa.DataType, want: pa.DataType, said: str) -> None:
    """A file with another type would make the table unreadable; in a wide struct the path shows where to look."""
    with pytest.raises(SchemaError, match=said):
        fit_schema("t", pa.schema([("l", have)]), pa.schema([("l", want)]))


def test_a_field_that_may_not_be_added_is_named_with_its_path() -> None:
    """As a column is."""
    have = pa.schema([("l", _wrapped(INT))])
    more = pa.list_(pa.struct([("m", pa.map_(TEXT, pa.struct([("y", TEXT), ("x", INT)])))]))
    for want, said in (
        (
            pa.schema([("l", more)]),
            r"t: the table has no field 'l.element.m.value.y' \(string\); option mergeSchema=true",
        ),
        (pa.schema([("z", INT)]), r"t: the table has no column 'z' \(int64\); option mergeSchema=true adds it"),
    ):
        with pytest.raises(SchemaError, match=said):
            refuse_new("t", have, fit_schema("t", have, want))
    refuse_new("t", have, [])


def test_lost_paths_name_fields_that_are_gone_or_have_another_type() -> None:
    """So that the log of a schema that is not taken up says why."""
    before = pa.schema([("l", _wrapped(INT)), ("s", pa.struct([("x", INT), ("y", TEXT)])), ("z", INT)])
    after = pa.schema([("l", _wrapped(TEXT)), ("s", pa.struct([("y", TEXT), ("n", INT)]))])
    assert lost_paths(before, after) == ["l.element.m.value.x", "s.x", "z"]
