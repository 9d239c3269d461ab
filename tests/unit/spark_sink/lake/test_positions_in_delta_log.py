"""Positions of a group, kept in the Delta log."""

import json
import threading
from collections import Counter
from pathlib import Path

import pyarrow as pa
import pyarrow.fs as pa_fs
import pytest
from deltalake import CommitProperties, DeltaTable, Schema, Transaction, write_deltalake
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from spark_sink import positions
from spark_sink.errors import TableError
from spark_sink.lake import delta_log_files, newest_commits
from spark_sink.lake.delta_log_files import LogListing, list_log
from spark_sink.lake.delta_log_reader import LogEntry, TransactionLog
from spark_sink.lake.positions_in_delta_log import application, beginning, groups, parse_group, parse_positions
from spark_sink.lake.table_storage import read_text
from spark_sink.ranges.batch_offset import TopicPartition

SCHEMA = Schema.from_arrow(pa.schema([("topic", pa.string())]))


def _table(path: Path, **properties: str) -> DeltaTable:
    return DeltaTable.create(str(path), schema=SCHEMA, configuration=dict(properties))


def _advance(handle: DeltaTable, versions: dict[str, int]) -> None:
    handle.update_incremental()
    transactions = [Transaction(name, version) for name, version in versions.items()]
    handle.create_write_transaction(
        [], "append", handle.schema(), commit_properties=CommitProperties(app_transactions=transactions)
    )


def test_no_table_means_no_positions(tmp_path: Path) -> None:
    """At the first start there are no positions."""
    assert positions(str(tmp_path / "none"), "g") == {}


def test_positions_follow_the_table(tmp_path: Path) -> None:
    """A second call in the same process reads only new commits."""
    handle = _table(tmp_path)
    _advance(handle, {"g/flights.JFK-LAX/0": 7, "g/flights.JFK-LAX/1": 0})
    assert positions(str(tmp_path), "g") == {("flights.JFK-LAX", 0): 7, ("flights.JFK-LAX", 1): 0}
    _advance(handle, {"g/flights.JFK-LAX/0": 9})
    assert positions(f"file://{tmp_path}", "g")[TopicPartition("flights.JFK-LAX", 0)] == 9


def test_only_the_tables_of_gained_topics_are_read_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A rebalance moves few topics, and each request to an object store takes long: a listing, and one commit."""
    handles = [_table(tmp_path / name) for topic in range(10) for name in (f"t{topic}", f"t{topic}_quarantine")]
    for number, handle in enumerate(handles[::2]):
        _advance(handle, {f"g/t{number}/0": number})
    address = str(tmp_path / "{topic}")
    assert positions(address, "g") == {(f"t{number}", 0): number for number in range(10)}
    _advance(handles[6], {"g/t3/0": 7})
    read: list[str] = []

    def counted(files: pa_fs.SubTreeFileSystem, path: str) -> str | None:
        read.append(Path(files.base_path).name)
        return read_text(files, path)

    monkeypatch.setattr(delta_log_files, "read_text", counted)
    gained = [TopicPartition(name, 0) for name in ("t3", "t8", "none")]
    assert positions(address, "g", partitions=gained) == {("t3", 0): 7, ("t8", 0): 8}
    assert Counter(read) == {"t3": 1, "t8": 1}  # and a listing


def test_tables_are_read_concurrently(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """One after the other, hundreds of tables in an object store would take longer than a session of the group."""
    for number in range(4):
        _advance(_table(tmp_path / f"t{number}"), {f"g/t{number}/0": 1})
    together = threading.Barrier(4, timeout=30)

    def waiting(files: pa_fs.FileSystem, table: str) -> LogListing:
        together.wait()
        return list_log(files, table)

    monkeypatch.setattr(newest_commits, "list_log", waiting)
    gained = [TopicPartition(f"t{number}", 0) for number in range(4)]
    assert len(positions(str(tmp_path / "{topic}"), "g", partitions=gained)) == 4


@settings(deadline=None, max_examples=25, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    commits=st.lists(st.dictionaries(st.integers(0, 3), st.integers(0, 9)), min_size=1, max_size=14),
    checkpoint=st.integers(0, 13),
    wanted=st.sets(st.integers(0, 3), min_size=1),
)
def test_the_newest_commits_give_what_the_whole_log_gives(
    tmp_path_factory: pytest.TempPathFactory, commits: list[dict[int, int]], checkpoint: int, wanted: set[int]
) -> None:
    """For partitions in any commits, with positions set back by a rewind, over checkpoints and a cleaned log."""
    path = tmp_path_factory.mktemp("table")
    handle = _table(path)
    for number, moved in enumerate(commits):
        _advance(handle, {f"g/t/{partition}": at for partition, at in moved.items()})
        if number == checkpoint:
            handle.create_checkpoint()
            for version in range(number):
                (path / "_delta_log" / f"{version:020}.json").unlink()
    log = TransactionLog(str(path), operations=False)
    everything = parse_positions(log.refresh(), "g")
    keys = [TopicPartition("t", one) for one in wanted]
    found = positions(str(path), "g", partitions=keys)
    assert {key: found.get(key) for key in keys} == {key: everything.get(key) for key in keys}


def test_other_groups_and_other_writers_are_not_mixed_in() -> None:
    """Group names may hold slashes and may be the beginning of one another."""
    key = TopicPartition("t", 3)
    transactions = {application(g, key): n for n, g in enumerate(["a", "a/b", "b"], start=1)}
    transactions |= {beginning("a", key): 9, "some-writer": 5, "a/x": 1, "a/t/zero": 1}
    assert parse_positions(transactions, "a") == {key: 1}
    assert parse_positions(transactions, "a/b") == {key: 2}
    assert parse_group(transactions, "a").beginnings == {key: 9}
    assert parse_group(transactions, "b").beginnings == {}
    assert groups(transactions) == ["a", "a/b", "b"]


def test_all_transactions_equal_those_that_the_table_answers_one_by_one(tmp_path: Path) -> None:
    """Over checkpoints, cleaned logs and a fresh start: our reading of the log is the table's own."""
    handle = _table(tmp_path, **{"delta.checkpointInterval": "10"})
    log = TransactionLog(str(tmp_path))
    for number in range(25):
        _advance(handle, {f"g/t/{number % 4}": number})
        if number == 21:
            for gone in range(18):
                (tmp_path / "_delta_log" / f"{gone:020}.json").unlink()
        handle.update_incremental()
        expected = {f"g/t/{p}": handle.transaction_version(f"g/t/{p}") for p in range(min(number + 1, 4))}
        assert dict(log.refresh()) == expected
        assert dict(TransactionLog(str(tmp_path)).refresh(handle.version())) == expected


def test_an_older_version_can_be_asked_for(tmp_path: Path) -> None:
    """A snapshot is one version as a whole, even when the log has moved on."""
    handle = _table(tmp_path)
    for number in range(5):
        _advance(handle, {"g/t/0": number})
    log = TransactionLog(str(tmp_path))
    assert log.refresh() == {"g/t/0": 4}
    assert log.refresh(2) == {"g/t/0": 1}
    assert log.version == 2


def test_a_new_table_in_the_old_place_is_read_from_its_start(tmp_path: Path) -> None:
    """Positions of a deleted table must not live on."""
    handle = _table(tmp_path)
    for number in range(5):
        _advance(handle, {"g/t/0": number})
    assert positions(str(tmp_path), "g") == {("t", 0): 4}
    for file in (tmp_path / "_delta_log").iterdir():
        file.unlink()
    assert positions(str(tmp_path), "g") == {}
    _advance(_table(tmp_path), {"g/t/1": 1})
    assert positions(str(tmp_path), "g") == {("t", 1): 1}


@pytest.mark.parametrize(
    ("operation", "replaces"),
    {
        "CREATE OR REPLACE TABLE": True,
        "CREATE OR REPLACE TABLE AS SELECT": True,  # of Spark, as the two below
        "REPLACE TABLE": True,
        "REPLACE TABLE AS SELECT": True,
        "CLONE": True,  # of its CREATE OR REPLACE TABLE ... CLONE
        "CREATE TABLE AS SELECT": False,
        "WRITE": False,
    }.items(),
)
def test_a_commit_that_replaces_its_table_is_known_by_its_operation(operation: str, *, replaces: bool) -> None:
    """By the operation alone: a comment may have these words, too."""
    text = json.dumps({"commitInfo": {"operation": operation, "note": '"operation":"REPLACE TABLE"', "of": "CLONE"}})
    assert LogEntry(3, text).replaces_table == replaces
    assert LogEntry(3, text.replace(": ", ":")).replaces_table == replaces


def test_a_log_with_a_gap_is_refused(tmp_path: Path) -> None:
    """Guessing over a missing commit could forget a position."""
    handle = _table(tmp_path)
    for number in range(5):
        _advance(handle, {"g/t/0": number})
    (tmp_path / "_delta_log" / f"{2:020}.json").unlink()
    with pytest.raises(TableError, match="commit 2 is missing"):
        TransactionLog(str(tmp_path)).refresh()


def test_checkpoints_in_parts_count_only_when_whole(tmp_path: Path) -> None:
    """Spark writes large checkpoints in several files; one that is not complete must not be used."""
    handle = _table(tmp_path)
    for number in range(4):
        _advance(handle, {f"g/t/{number}": number})
    handle.update_incremental()
    handle.create_checkpoint()
    log = tmp_path / "_delta_log"
    whole = log / f"{4:020}.checkpoint.parquet"
    whole.replace(log / f"{4:020}.checkpoint.{1:010}.{2:010}.parquet")
    assert len(TransactionLog(str(tmp_path)).refresh()) == 4
    for gone in range(4):
        (log / f"{gone:020}.json").unlink()
    with pytest.raises(TableError, match="is missing"):
        TransactionLog(str(tmp_path)).refresh()


def test_positions_have_no_expiry(tmp_path: Path) -> None:
    """`lastUpdated` would let delta.setTransactionRetentionDuration forget a position, and its rows come again."""
    handle = _table(tmp_path)
    _advance(handle, {"g/t/0": 1})
    lines = (tmp_path / "_delta_log" / f"{1:020}.json").read_text().splitlines()
    (found,) = [json.loads(line)["txn"] for line in lines if "txn" in line]
    assert found.get("lastUpdated") is None


@pytest.mark.parametrize("name", ["00000000000000000001.json", "00000000000000000000.checkpoint.parquet"])
def test_a_log_that_is_broken_is_one_sentence(tmp_path: Path, name: str) -> None:
    """A partial file, after a full disk or an interrupted copy, is reported as such, not as a defect of the program."""
    log = tmp_path / "_delta_log"
    write_deltalake(str(tmp_path), pa.table({"a": [1]}))
    (log / name).write_text('{"txn": {"appId": "g/t/0", "ver')
    with pytest.raises(TableError, match="the table's log cannot be read"):
        positions(str(tmp_path), "g")
