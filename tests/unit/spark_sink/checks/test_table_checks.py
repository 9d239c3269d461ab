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
from spark_sink.lake.parquet_landing import normal_schema
from spark_sink.lake.table_addresses import with_name
from spark_sink.lake.table_contract import KEYS, Change
from spark_sink.lake.table_formats import open_table
from spark_sink.ranges.batch_offset import TopicPartition

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


@pytest.mark.parametrize("address", ["{root}/table", "{root}/{topic}", "iceberg://lake.raw.table"])
def test_a_topic_that_another_group_has_written_is_a_fault(tmp_path: Path, address: str) -> None:
    """The first commit would be refused, after a batch that was read for nothing; a topic of another name may begin."""
    place, topic = address.replace("{root}", str(tmp_path)), "orders.a"
    storage = _storage(address, tmp_path)
    _written_by_first(place.replace("{topic}", topic), topic, storage)
    with pytest.raises(TableError, match=r"orders\.a/0 was written here by group 'first', up to offset 5; group 'g'"):
        check_table(place, "g", storage, COLUMNS, selected=ORDERS)
    for group, read in (("first", ORDERS), ("g", selects(["other"], None))):
        assert place in check_table(place, group, storage, COLUMNS, selected=read)


@pytest.mark.parametrize("address", ["{root}/{topic}", "iceberg://lake.raw.{topic}"])
def test_a_table_beside_those_of_topics_may_have_topics_of_another_group(tmp_path: Path, address: str) -> None:
    """A table for several topics may have a name that fits the address, but these topics have their own tables here."""
    place, storage = address.replace("{root}", str(tmp_path)), _storage(address, tmp_path)
    _written_by_first(place.replace("{topic}", "orders.all" if "root" in address else "all"), "orders.a", storage)
    assert "1 tables" in check_table(place, "g", storage, COLUMNS, selected=ORDERS)
    _written_by_first(with_name(place, "{topic}", "orders.b"), "orders.b", storage)
    with pytest.raises(TableError, match=r"orders\.b/0 was written here by group 'first'"):
        check_table(place, "g", storage, COLUMNS, selected=ORDERS)


def _storage(address: str, folder: Path) -> dict[str, str]:
    return {"catalog.warehouse": str(folder)} if address.startswith("iceberg") else {}


def _written_by_first(address: str, topic: str, storage: dict[str, str]) -> None:
    """Create a table in which the group `first` has written a topic."""
    table = open_table(address, "first", storage)
    rows = normal_schema(COLUMNS)
    table.create(rows)
    snapshot = table.refresh()
    assert snapshot is not None
    at = {TopicPartition(topic, 0): 5}
    table.swap(snapshot, Change(files=(), positions=at, beginnings={**dict.fromkeys(at, 0)}, schema=rows, note={}))


def test_a_full_disk_is_not_writable(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """It takes an empty file, and its error may come only when the content is on the disk."""

    def full(_: int) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(TableError, match="No space left on device; free some space, or name another"):
        check_writable(str(tmp_path / "t"), {})
