"""A commit to an Iceberg table does not copy the metadata at each look, and changes nothing before it succeeds."""

from pathlib import Path

import pytest
from pyiceberg.exceptions import CommitFailedException
from pyiceberg.table.metadata import TableMetadataV2

from spark_sink.lake.iceberg.iceberg_table import IcebergTable
from spark_sink.lake.iceberg.snapshot_commit import Prepared, commit
from spark_sink.lake.iceberg.snapshot_producers import ReadTransaction
from spark_sink.lake.table_contract import Change
from spark_sink.ranges.batch_offset import TopicPartition
from tests.table_kinds import ADDRESS, SCHEMA, iceberg_file, peer, warehouse

KEY = TopicPartition("t", 0)


def _commit(table: IcebergTable, root: Path, end: int) -> None:
    snapshot = table.refresh()
    assert snapshot is not None
    files = [iceberg_file(root, KEY, [end - 1])]
    table.swap(snapshot, Change(files=files, positions={KEY: end}, beginnings={}, schema=SCHEMA))


def test_a_commit_copies_the_metadata_a_few_times(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A copy has all snapshots, so with one at each of fourteen looks a commit takes longer with each snapshot."""
    table = IcebergTable(ADDRESS, "g", warehouse(tmp_path))
    table.create(SCHEMA)
    _commit(table, tmp_path, 1)
    copies: list[TableMetadataV2] = []
    copy = TableMetadataV2.model_copy

    def counted(
        self: TableMetadataV2, *, update: dict[str, object] | None = None, deep: bool = False
    ) -> TableMetadataV2:
        if deep:
            copies.append(self)
        return copy(self, update=update, deep=deep)

    monkeypatch.setattr(TableMetadataV2, "model_copy", counted)
    _commit(table, tmp_path, 2)
    assert len(copies) <= 2


def test_a_refused_commit_leaves_the_metadata_that_was_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The copies kept an append apart from the metadata that the next attempt compares."""
    table = IcebergTable(ADDRESS, "g", warehouse(tmp_path))
    table.create(SCHEMA)
    _commit(table, tmp_path, 1)
    handle = peer(tmp_path)
    before = handle.metadata.model_dump_json()

    def refuse(*_: object) -> None:
        raise CommitFailedException("another writer was faster")

    monkeypatch.setattr(handle, "_do_commit", refuse)
    monkeypatch.setattr(handle, "refresh", lambda: handle)
    with pytest.raises(Exception, match="another writer was faster"):
        commit(handle, 7, Prepared(entries=[], properties={"a": "b"}, summary={}))
    assert handle.metadata.model_dump_json() == before


def test_staged_updates_are_seen(tmp_path: Path) -> None:
    """As in pyiceberg's own transaction."""
    table = IcebergTable(ADDRESS, "g", warehouse(tmp_path))
    table.create(SCHEMA)
    transaction = ReadTransaction(peer(tmp_path))
    transaction.set_properties({"owner": "someone"})
    assert transaction.table_metadata.properties["owner"] == "someone"
