"""Transactions of several tables read from their newest commits."""

from collections.abc import Mapping
from pathlib import Path

import pyarrow as pa
import pytest
from deltalake import CommitProperties, DeltaTable, Schema, Transaction

from spark_sink.errors import TableError
from spark_sink.lake.newest_commits import newest_of_tables

SCHEMA = Schema.from_arrow(pa.schema([("topic", pa.string())]))


def _commit(path: Path, *commits: Mapping[str, int]) -> None:
    handle = DeltaTable.create(str(path), schema=SCHEMA)
    for versions in commits:
        handle.update_incremental()
        properties = CommitProperties(app_transactions=[Transaction(name, at) for name, at in versions.items()])
        handle.create_write_transaction([], "append", handle.schema(), commit_properties=properties)


def _newest(folder: Path, wanted: Mapping[str, set[str]], *, threads: int) -> dict[str, dict[str, int]]:
    """Read tables by their names."""
    found = newest_of_tables({str(folder / name): names for name, names in wanted.items()}, {}, threads)
    return {Path(address).name: dict(transactions) for address, transactions in found.items()}


def test_each_table_answers_from_its_own_newest_commits(tmp_path: Path) -> None:
    """Those with all that is wanted; a table that does not exist has no transactions, and is not in doubt."""
    _commit(tmp_path / "one", {"a": 1, "b": 1}, {"a": 2})
    _commit(tmp_path / "two", {"a": 7})
    _commit(tmp_path / "lacks", {"a": 8})
    wanted = {"one": {"a", "b"}, "two": {"a"}, "lacks": {"b"}, "absent": {"a"}}
    found = _newest(tmp_path, wanted, threads=2)
    assert found == {"one": {"a": 2, "b": 1}, "two": {"a": 7}, "absent": {}}


def test_a_wanted_transaction_further_back_than_a_few_commits_is_not_answered(tmp_path: Path) -> None:
    """The log as a whole is read for it; answering without it would read the partition from its beginning."""
    _commit(tmp_path / "t", {"old": 1}, *({"new": at} for at in range(8)))
    assert _newest(tmp_path, {"t": {"old", "new"}}, threads=1) == {}
    assert _newest(tmp_path, {"t": {"new"}}, threads=1) == {"t": {"new": 7}}


def test_a_log_that_cannot_be_read_is_an_error_and_not_an_absent_table(tmp_path: Path) -> None:
    """Taken for absent, its partitions would be read from their beginnings."""
    _commit(tmp_path / "t", {"a": 1})
    (tmp_path / "t" / "_delta_log" / f"{2:020}.json").write_text('{"txn": 5}')
    with pytest.raises(TableError, match="t: the table's log cannot be read"):
        _newest(tmp_path, {"t": {"a"}}, threads=1)
