"""Logs of Delta tables that lack files: the error says what is wrong and what to do, and nothing is written."""

from collections.abc import Callable
from pathlib import Path

import pytest
from deltalake import DeltaTable

from spark_sink.errors import TableError
from spark_sink.lake.holes_and_doubles import verify
from spark_sink.ranges.batch_offset import Offset, Range, TopicPartition
from spark_sink.sink.commit_by_compare_and_swap import Batch, commit
from tests.table_kinds import SCHEMA, kind_of

A = TopicPartition("a", 0)


def _name(version: int) -> str:
    return f"{version:020}.json"


def _empty(log: Path) -> None:
    (log / _name(0)).write_text("")


def _no_first(log: Path) -> None:
    (log / _name(0)).unlink()


def _gap(log: Path) -> None:
    (log / _name(1)).unlink()


def _no_json(log: Path) -> None:
    (log / _name(2)).write_text("garbage\n")


def _no_checkpoint(log: Path) -> None:
    (log / "_last_checkpoint").write_text('{"version":2,"size":4}')


def _no_commits(log: Path) -> None:
    for version in range(3):
        (log / _name(version)).rename(log / f"{version:020}.crc")


def _only_checkpoint(log: Path) -> None:
    DeltaTable(log.parent).create_checkpoint()
    for version in range(3):
        (log / _name(version)).unlink()


DAMAGES: dict[Callable[[Path], None], str] = {
    _empty: "its first commit is missing or empty, put it back from a backup",
    _no_first: "its first commit is missing or empty, put it back from a backup",
    _gap: "the log has version 2 after version 0, and what is between them is missing",
    _no_json: "a commit of the log is no JSON .*: put it back from a backup",
    _no_checkpoint: "_last_checkpoint names a checkpoint that is missing",
    _no_commits: "has files, but neither a commit nor a checkpoint",
    _only_checkpoint: "the log has no commit 2, but a checkpoint",
}


@pytest.mark.parametrize("damage", DAMAGES)
def test_a_damaged_log_is_an_error_that_says_what_to_do(tmp_path: Path, damage: Callable[[Path], None]) -> None:
    """In one line, with the table; nothing is written."""
    kind = kind_of("delta", tmp_path)
    table = kind.make()
    table.create(SCHEMA)
    for begin in (0, 3):
        files = [kind.write(A, range(begin, begin + 3))]
        commit(table, Batch(offset=Offset.of([Range("a", 0, begin, begin + 3)]), files=files, schema=SCHEMA))
    log = Path(table.name) / "_delta_log"
    damage(log)
    before = {one.name: one.read_bytes() for one in log.iterdir()}
    batch = Batch(offset=Offset.of([Range("a", 0, 6, 9)]), files=[kind.write(A, range(6, 9))], schema=SCHEMA)
    with pytest.raises(TableError, match=f"^{table.name}: [^\\n]*{DAMAGES[damage]}") as failed:
        commit(kind.make(), batch, sleep=lambda _: None)
    assert not any(word in str(failed.value) for word in ("{", "Kernel", "Generic"))
    assert {one.name: one.read_bytes() for one in log.iterdir()} == before


@pytest.mark.parametrize("damage", [_empty, _no_first, _gap, _no_json, _no_checkpoint])
def test_verify_says_the_same(tmp_path: Path, damage: Callable[[Path], None]) -> None:
    """It reads the log in another way."""
    kind = kind_of("delta", tmp_path)
    for begin in (0, 3, 6):
        files = [kind.write(A, range(begin, begin + 3))]
        commit(kind.make(), Batch(offset=Offset.of([Range("a", 0, begin, begin + 3)]), files=files, schema=SCHEMA))
    table = kind.make()
    damage(Path(table.name) / "_delta_log")
    with pytest.raises(TableError, match=f"^{table.name}: the table cannot be read: .*{DAMAGES[damage]}"):
        verify(table.name)
