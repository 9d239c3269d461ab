"""Questions about tables in folders: which tables of an address are looked at, and whether files can be written."""

import errno
import os
from pathlib import Path

import pyarrow as pa
import pytest
from deltalake import write_deltalake

from spark_sink.checks import check_table, check_writable, selects
from spark_sink.errors import TableError
from spark_sink.formats.bad_values_quarantined import SCHEMA
from spark_sink.lake.table_contract import KEYS

COLUMNS = pa.schema([*KEYS.items(), ("id", pa.int64())])
ORDERS = selects((), r"orders\..*")


def test_the_quarantines_of_topics_are_not_looked_at(tmp_path: Path) -> None:
    """They have columns of their own: with decoded values, each start after the first bad record found a fault."""
    write_deltalake(str(tmp_path / "orders.a"), COLUMNS.empty_table())
    write_deltalake(str(tmp_path / "orders.a_quarantine"), SCHEMA.empty_table())
    assert check_table(f"{tmp_path}/{{topic}}", "g", {}, COLUMNS, selected=ORDERS).endswith(": 1 tables")


def test_tables_of_topics_that_are_not_read_are_not_looked_at(tmp_path: Path) -> None:
    """Other pipelines may write their tables into the same folder."""
    write_deltalake(str(tmp_path / "customers"), pa.table({"name": ["x"]}))
    assert check_table(f"{tmp_path}/{{topic}}", "g", {}, COLUMNS, selected=ORDERS).endswith(": 0 tables")


def test_the_table_of_a_topic_that_is_read_must_fit(tmp_path: Path) -> None:
    """The two exceptions do not hide a fault."""
    write_deltalake(str(tmp_path / "orders.a"), pa.table({"name": ["x"]}))
    with pytest.raises(TableError, match=r"orders\.a: is a table of another writer"):
        check_table(f"{tmp_path}/{{topic}}", "g", {}, COLUMNS, selected=ORDERS)


def test_a_full_disk_is_not_writable(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """It takes an empty file, and its error may come only when the content is on the disk."""

    def full(_: int) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(TableError, match="No space left on device; free some space, or name another"):
        check_writable(str(tmp_path / "t"), {})
