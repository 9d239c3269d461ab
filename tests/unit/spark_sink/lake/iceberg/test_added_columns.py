"""A field of a record never stops the writers of an Iceberg table by its name."""

from pathlib import Path

import pyarrow as pa
import pytest
from pyiceberg.exceptions import ForbiddenError
from pyiceberg.table.update.schema import UpdateSchema

from spark_sink.errors import SchemaError, TableError
from spark_sink.lake.iceberg.iceberg_table import IcebergTable
from spark_sink.lake.iceberg.partition_terms import parse_terms
from spark_sink.lake.table_settings import TableSettings
from tests.table_kinds import ADDRESS, SCHEMA, peer, warehouse

NUMBER = pa.int64()
STRUCT = pa.struct({"b": NUMBER})
COLUMNS = pa.schema([*SCHEMA, ("a", STRUCT), ("items", pa.list_(STRUCT))])
TWINS = {
    "a struct's field": pa.schema([("a.b", NUMBER)]),
    "with another case": pa.schema([("A.b", NUMBER)]),
    "a list's element": pa.schema([("items.element", NUMBER)]),
    "a new column's field": pa.schema([("x", STRUCT), ("x.b", NUMBER)]),
    "in one column": pa.schema([("n", pa.struct({"a.b": NUMBER, "a": STRUCT}))]),
    "in one column with another case": pa.schema([("n", pa.struct({"X": NUMBER, "x": NUMBER}))]),
}


def _table(root: Path, *, merge: bool = False) -> IcebergTable:
    table = IcebergTable(ADDRESS, "g", warehouse(root), TableSettings(merge_schema=merge))
    table.create(COLUMNS)
    return table


@pytest.mark.parametrize("new", TWINS.values(), ids=TWINS)
def test_a_column_with_the_full_name_of_another_field_is_left_out(new: pa.Schema, tmp_path: Path) -> None:
    """It stays in `_rescued`; an error after each commit would end the query at the same record each time."""
    _table(tmp_path).add_columns(pa.schema([*new, ("code", NUMBER)]))
    names = [one.name for one in peer(tmp_path).schema().fields]
    assert set(names) - {*COLUMNS.names} in ({"code"}, {"code", "x"})


@pytest.mark.parametrize("new", TWINS.values(), ids=TWINS)
def test_a_query_with_such_a_column_is_refused(new: pa.Schema, tmp_path: Path) -> None:
    """For an existing table, and for a new one."""
    both = pa.schema([*COLUMNS, *new])
    with pytest.raises(SchemaError, match="has the full name of another field of the table"):
        IcebergTable(ADDRESS, "g", warehouse(tmp_path)).create(both)
    with pytest.raises(SchemaError, match="has the full name of another field of the table"):
        _table(tmp_path, merge=True).landing(both)


def test_a_catalog_that_refuses_columns_does_not_fail_the_batch_before(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The batch is committed, and a later one adds the columns; a query that needs them is refused."""
    table, new = _table(tmp_path, merge=True), pa.schema([*COLUMNS, ("code", NUMBER)])

    def refused(_update: UpdateSchema) -> None:
        raise ForbiddenError("read only")

    with monkeypatch.context() as patch:
        patch.setattr(UpdateSchema, "commit", refused)
        table.add_columns(new)
        with pytest.raises(TableError, match="columns were not added: ForbiddenError: read only"):
            table.landing(new)
    table.add_columns(new)
    assert "code" in [one.name for one in peer(tmp_path).schema().fields]


def test_a_field_with_the_name_of_a_partition_is_left_out(tmp_path: Path) -> None:
    """Iceberg has one name for a field and a partition; this field kept all others from becoming columns."""
    columns = pa.schema([*SCHEMA, ("timestamp", pa.timestamp("us", tz="UTC"))])
    settings = TableSettings(terms=parse_terms("day(timestamp), bucket(4, value)"))
    table = IcebergTable(ADDRESS, "g", warehouse(tmp_path), settings)
    table.create(columns)
    partitions = [one.name for one in peer(tmp_path).spec().fields]
    table.add_columns(pa.schema([*((name.upper(), NUMBER) for name in partitions), ("code", NUMBER)]))
    assert [one.name for one in peer(tmp_path).schema().fields] == [*columns.names, "code"]
