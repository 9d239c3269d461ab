"""A commit to a Delta table looks for expired entries of the log only at two in a hundred versions."""

import os
from pathlib import Path

from deltalake import DeltaTable, Field, Schema
from deltalake.schema import PrimitiveType

from spark_sink.lake.delta_log_reader import lasting, our_note
from spark_sink.lake.delta_transaction import CLEANUP_EVERY, commit

_SCHEMA = Schema([Field("offset", PrimitiveType("long"))])
_KEPT = {"delta.logRetentionDuration": "interval 1 days", "delta.checkpointInterval": "10"}


def _entry(path: Path, version: int) -> Path:
    return path / "_delta_log" / f"{version:020}.json"


def test_expired_entries_are_removed_once_in_a_hundred_versions(tmp_path: Path) -> None:
    """Entries before an old checkpoint stay up to version 99, and are gone at version 100."""
    handle = DeltaTable.create(str(tmp_path), schema=_SCHEMA, configuration=_KEPT)
    while handle.version() + 1 < CLEANUP_EVERY:
        commit(handle, transactions=[lasting("position", handle.version())])
        handle.update_incremental()
        for entry in (tmp_path / "_delta_log").iterdir():
            os.utime(entry, (0, 0))
    assert _entry(tmp_path, 1).exists()
    commit(handle)
    assert not _entry(tmp_path, 1).exists()
    handle = DeltaTable(str(tmp_path))
    assert (handle.version(), handle.transaction_version("position")) == (CLEANUP_EVERY, CLEANUP_EVERY - 2)


def test_a_commit_has_its_note_and_its_transactions(tmp_path: Path) -> None:
    """The note is in the log under the key by which this project's commits are known."""
    handle = DeltaTable.create(str(tmp_path), schema=_SCHEMA)
    commit(handle, (), [lasting("position", 7)], {"rows": 0})
    assert our_note(_entry(tmp_path, 1).read_text()) == {"rows": 0}
    assert DeltaTable(str(tmp_path)).transaction_version("position") == 7
