"""A storage that gives only a part of a commit: some proxies answer HEAD with a wrong Content-Length."""

from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from spark_sink.errors import TableError
from spark_sink.lake.delta_log_files import commit_path, read_commit, transactions_of
from spark_sink.lake.delta_log_reader import TransactionLog
from spark_sink.lake.delta_table import DeltaLakeTable
from spark_sink.lake.table_contract import Table
from spark_sink.lake.table_storage import filesystem
from spark_sink.ranges.batch_offset import Offset, Range, TopicPartition
from spark_sink.sink.commit_by_compare_and_swap import Batch, commit
from tests.table_kinds import SCHEMA, Kind, kind_of

A = TopicPartition("a", 0)
READS = 12  # more than the batches below need


class _Files:
    """A file system whose read of this number gives only this part of the content."""

    def __init__(self, files: Any, number: int, part: float) -> None:
        self._files, self._left, self._part = files, number, part

    def open_input_stream(self, path: str) -> Any:
        """Open a file, or a part of it."""
        stream = self._files.open_input_stream(path)
        self._left -= 1
        if self._left != -1:
            return stream
        content = stream.read()
        return pa.BufferReader(content[: int(len(content) * self._part)])

    def __getattr__(self, name: str) -> Any:
        return getattr(self._files, name)


def _write(table: Table, kind: Kind, begin: int, end: int) -> None:
    files = [kind.write(A, range(begin, end))]
    commit(table, Batch(offset=Offset.of([Range("a", 0, begin, end)]), files=files, schema=SCHEMA))


@pytest.mark.parametrize("number", range(READS))
@pytest.mark.parametrize("part", [0, 0.5])
def test_a_replay_adds_nothing_whichever_read_of_the_log_is_cut(tmp_path: Path, part: float, number: int) -> None:
    """A commit whose transactions are not seen would be taken for one without any, and its batch be written again."""
    kind = kind_of("delta", tmp_path)
    first = kind.make()
    first.create(SCHEMA)
    second = DeltaLakeTable(str(tmp_path / "table"), "g")
    second.refresh()
    _write(first, kind, 0, 6)
    second._log._files = _Files(second._log._files, number, part)
    for begin in range(0, 9, 3):
        for _ in range(2):  # an agent repeats a batch that failed
            try:
                _write(second, kind, begin, begin + 3)
            except TableError:
                continue
            break
    rows = kind.rows()
    assert (sorted(offset for _, offset in rows), set(rows.values())) == (list(range(9)), {1})


def test_no_length_of_a_commit_loses_its_transactions(tmp_path: Path) -> None:
    """Cut after a line, each line that is left is JSON, and nothing but the number of transactions shows the cut."""
    kind = kind_of("delta", tmp_path)
    table = kind.make()
    table.create(SCHEMA)
    _write(table, kind, 0, 3)
    files = filesystem(str(tmp_path / "table"))
    whole = (tmp_path / "table" / commit_path(1)).read_text()
    for kept in range(len(whole)):
        try:
            text = read_commit(_Files(files, 0, kept / len(whole)), 1)
        except OSError:
            continue
        assert text is not None
        assert dict(transactions_of(text)) == dict(transactions_of(whole)), kept


def test_a_commit_that_was_cut_inside_a_character_is_an_error_of_the_table(tmp_path: Path) -> None:
    """Only such an error is tried again; a column may have any name."""
    table, schema = DeltaLakeTable(str(tmp_path), "g"), pa.schema([*SCHEMA, ("größe", pa.int64())])
    table.create(schema)
    table.refresh()
    whole, files = (tmp_path / commit_path(0)).read_bytes(), table._log._files
    kept = whole.index("ö".encode()) + 1
    table._log._files = _Files(files, 0, (kept + 0.5) / len(whole))
    with pytest.raises(TableError, match=rf"cannot be read: {commit_path(0)}: the {kept} bytes .* are no text"):
        table.refresh()
    assert table.refresh() is not None


def test_a_commit_that_is_empty_in_the_storage_changes_nothing(tmp_path: Path) -> None:
    """A machine may lose its power before the content of a new file is on its disk; delta-rs reads such a table."""
    kind = kind_of("delta", tmp_path)
    table = kind.make()
    table.create(SCHEMA)
    _write(table, kind, 0, 3)
    before = TransactionLog(str(tmp_path / "table"), {}).refresh()
    (tmp_path / "table" / "_delta_log" / f"{2:020}.json").write_text("")
    assert TransactionLog(str(tmp_path / "table"), {}).refresh() == before


def test_a_checkpoint_that_was_cut_is_named(tmp_path: Path) -> None:
    """A table may have hundreds of them, and one must be put back from a backup."""
    kind = kind_of("delta", tmp_path)
    kind.make().create(SCHEMA)
    kind.foreign["checkpoint"]()
    [checkpoint] = tmp_path.rglob("*.checkpoint.parquet")
    content = checkpoint.read_bytes()
    for kept in (0, 3, len(content) // 2, len(content) - 1):
        checkpoint.write_bytes(content[:kept])
        with pytest.raises(
            TableError, match=rf"/table: the table's log .* the checkpoint _delta_log/{checkpoint.name}: "
        ):
            TransactionLog(str(tmp_path / "table"), {}).refresh()


def test_a_commit_that_is_listed_and_not_found_is_no_log_that_was_cleaned_by_hand(tmp_path: Path) -> None:
    """A store that answers 404 once; a person would look for a commit that is there."""
    kind = kind_of("delta", tmp_path)
    table = kind.make()
    table.create(SCHEMA)
    _write(table, kind, 0, 3)
    log = TransactionLog(str(tmp_path / "table"), {})
    log._files = _Gone(log._files, commit_path(1))
    with pytest.raises(TableError, match="the store lists commit 1, and did not find it"):
        log.refresh(1)


class _Gone:
    """A file system that lists a file and does not find it."""

    def __init__(self, files: Any, path: str) -> None:
        self._files, self._path = files, path

    def open_input_stream(self, path: str) -> Any:
        """Open another file."""
        if path == self._path:
            raise FileNotFoundError(path)
        return self._files.open_input_stream(path)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._files, name)
