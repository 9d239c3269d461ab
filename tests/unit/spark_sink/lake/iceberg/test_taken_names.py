"""A name in the catalog that is not, or no longer, that of the sink's table."""

from pathlib import Path

import pytest
from pyiceberg.catalog.sql import SqlCatalog
from pyiceberg.exceptions import NoSuchTableError

from spark_sink.errors import TableError
from spark_sink.lake.iceberg.iceberg_table import IcebergTable
from tests.iceberg_batches import Writer, offsets
from tests.table_kinds import ADDRESS, SCHEMA, catalog, warehouse


def test_a_view_is_no_table(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A REST catalog says that the name is taken, and then that there is no such table."""

    def create(*_: object, **__: object) -> None:
        raise NoSuchTableError("Table does not exist: raw.events")

    monkeypatch.setattr(SqlCatalog, "create_table_if_not_exists", create)
    monkeypatch.setattr(SqlCatalog, "view_exists", lambda *_: True, raising=False)
    with pytest.raises(TableError, match=r"^lake.raw.events: the table cannot be created: a view has this name$"):
        IcebergTable(ADDRESS, "g", warehouse(tmp_path)).create(SCHEMA)


def test_a_table_that_was_renamed_can_be_renamed_back(tmp_path: Path) -> None:
    """The tasks of a batch create a missing table, which then has the name; the error says how to give it back."""
    writer = Writer(tmp_path)
    writer.write(0, 3)
    catalog(tmp_path).rename_table(("raw", "events"), ("raw", "kept"))
    with pytest.raises(TableError, match=r"The new one is empty: .* drop the new one and rename the former back\.$"):
        writer.write(3, 6)
    catalog(tmp_path).drop_table(("raw", "events"))
    catalog(tmp_path).rename_table(("raw", "kept"), ("raw", "events"))
    writer.write(3, 6)
    assert offsets(tmp_path) == list(range(6))
