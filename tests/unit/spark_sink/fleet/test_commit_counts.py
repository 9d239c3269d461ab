"""The ops log counts what is in the tables: each row by the agent that wrote it, and each failed attempt."""

from pathlib import Path
from typing import Any

import pytest
from deltalake import DeltaTable

from spark_sink.errors import TableError
from spark_sink.fleet import reader_and_writer_threads
from spark_sink.fleet.commit_counts import CommitCounts
from spark_sink.fleet.table_writer import TableWriter
from spark_sink.formats.quarantine_addresses import quarantine_of
from spark_sink.lake.delta_table import DeltaLakeTable
from spark_sink.lake.ops_log.ops_counts import OpsCounts
from spark_sink.lake.table_contract import Change, Snapshot
from spark_sink.ranges.batch_offset import Range
from tests.unit.spark_sink.fleet import scripted
from tests.unit.spark_sink.fleet.test_decoded_tables import Raw, options
from tests.unit.spark_sink.fleet.test_table_writer import some


def taken(counts: OpsCounts) -> dict[str | None, dict[str, Any]]:
    """The rows by topic."""
    return {row["topic"]: row for row in counts.take()}


def test_rows_of_two_agents_add_up_to_those_of_the_table(tmp_path: Path) -> None:
    """The later of two agents counts only what the table took from it: a whole batch, a part, or nothing."""
    table, counts = str(tmp_path / "t"), [OpsCounts(), OpsCounts()]
    writers = [TableWriter(table, "g", "a", ops=CommitCounts(one, "home")) for one in counts]
    for writer, begin, end in [(0, 0, 10), (1, 0, 10), (1, 4, 30), (0, 10, 20), (0, 25, 45)]:
        rows = some("x", begin, end)
        writers[writer].commit(writers[writer].land(rows, {"x"}), [Range("x", 0, begin, end)])
    found = [taken(one)["x"] for one in counts]
    assert [(one["rows"], one["batches"]) for one in found] == [(25, 2), (20, 1)]
    in_table = DeltaTable(table).to_pyarrow_table(columns=["value"])["value"].to_pylist()
    assert len(in_table) == 45
    assert sum(one["bytes"] for one in found) == pytest.approx(sum(map(len, in_table)), rel=0.1)
    assert {one["table_uri"] for one in found} == {table}


def test_bad_records_are_counted_once_and_apart(tmp_path: Path) -> None:
    """`rows` has both, as the logs of agents have."""
    table, counts = str(tmp_path / "t"), OpsCounts()
    writer = TableWriter(table, "g", "a", rows=options(table), ops=CommitCounts(counts))
    raw = Raw(["good", "not JSON", "good", "no value"])
    for _ in range(2):
        writer.commit(writer.land(raw, {"x"}), [Range("x", 0, 0, 4)])
    row = taken(counts)["x"]
    assert (row["batches"], row["rows"], row["quarantined"], row["source"]) == (1, 4, 2, None)
    assert DeltaTable(quarantine_of(table)).to_pyarrow_table().num_rows == 2


def test_a_table_of_many_topics_has_a_row_for_each(tmp_path: Path) -> None:
    """One commit is a batch of each topic in it."""
    counts = OpsCounts()
    writer = TableWriter(str(tmp_path / "t"), "g", "a", ops=CommitCounts(counts))
    rows = some("x", 0, 3)
    for offset in range(5):
        rows.add("y", scripted.Record("y", offset))
    writer.commit(writer.land(rows, {"x", "y"}), [Range("x", 0, 0, 3), Range("y", 0, 0, 5)])
    assert {topic: (row["rows"], row["batches"]) for topic, row in taken(counts).items()} == {"x": (3, 1), "y": (5, 1)}


def test_without_an_ops_log_nothing_is_counted(tmp_path: Path) -> None:
    """Not even the sizes of the records."""
    writer = TableWriter(str(tmp_path / "t"), "g", "a")
    assert not writer.land(some("x", 0, 3), {"x"}).record_bytes


def test_a_table_that_cannot_be_made_is_an_error_of_its_topic(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """A file lies in its way; the other topic has rows and no error."""
    (tmp_path / "y").write_text("in the way")
    counts = OpsCounts()

    join = scripted.gains("x", records=scripted.some("x", 0, 5))

    scripted.read(monkeypatch, tmp_path / "{topic}", 5, join, ops=CommitCounts(counts, "s"))
    found = taken(counts)
    assert (found["x"]["rows"], found["x"]["errors"]) == (5, 0)
    assert (found["y"]["rows"], found["y"]["source"]) == (0, "s")
    assert found["y"]["errors"] >= 1
    assert "is a file" in found["y"]["last_error"]


def test_an_error_of_the_whole_source_has_no_topic(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """A shared table that refuses twice, and then takes the records."""
    commit, counts, refused = DeltaLakeTable.swap, OpsCounts(), list[int]()

    def refuse(table: DeltaLakeTable, snapshot: Snapshot, change: Change) -> None:
        if change.positions and len(refused) < 3 * 2:  # three attempts for each commit
            refused.append(1)
            raise TableError("the disk is full")
        commit(table, snapshot, change)

    monkeypatch.setattr(DeltaLakeTable, "swap", refuse)
    monkeypatch.setattr(reader_and_writer_threads, "_PAUSE_S", 0.05)

    join = scripted.gains("x", "y", records=scripted.some("x", 0, 5), held={"x": 0})

    again = scripted.once_more(scripted.some("x", 0, 5))

    scripted.read(monkeypatch, tmp_path / "t", 5, join, *[again] * 900, ops=CommitCounts(counts, "s"))
    found = taken(counts)
    assert (found["x"]["rows"], found["x"]["batches"]) == (5, 1)
    assert (found[None]["errors"], found[None]["last_error"]) == (2, "the disk is full")
