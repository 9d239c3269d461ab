"""The labels of topics in their tables."""

from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa
import pytest
from deltalake import DeltaTable

from assignors.fleet import FleetTopic
from spark_sink import positions
from spark_sink.errors import TableError
from spark_sink.fleet import table_writer
from spark_sink.fleet.decode_and_commit import Committed
from spark_sink.fleet.table_writer import TableWriter
from spark_sink.fleet.unwritten_records import RecordBuffer
from spark_sink.lake.holes_and_doubles import verify
from spark_sink.lake.parquet_landing import Landing
from spark_sink.ranges.batch_offset import Range, TopicPartition
from tests.unit.spark_sink.fleet.scripted import Record


def some(label: str, begin: int, end: int) -> RecordBuffer:
    """Records of a partition."""
    rows = RecordBuffer()
    for offset in range(begin, end):
        rows.add(label, Record(label, offset))
    return rows


@pytest.mark.parametrize("address", ["t", "{topic}"], ids=["one table", "a table each"])
@pytest.mark.parametrize("identity", ["a/b+c", "///"])
def test_the_position_of_a_topic_made_anew_is_found_whatever_its_id(
    tmp_path: Path, address: str, identity: str
) -> None:
    """Every third id has a slash, as librdkafka writes them: part of a position's name or of a path it cut them off."""
    writer = TableWriter(str(tmp_path / address), "g", "a")
    first, anew = FleetTopic("c", "1", "x", "s"), FleetTopic("c", identity, "x", "s")
    assert writer.label([first]) == {first: "x"}
    label = writer.label([anew])[anew]
    assert label == f"x@{anew.printed_id}"
    rows = some(label, 0, 3)
    assert writer.commit(writer.land(rows, {label}), [Range(label, 0, 0, 3)]) == Committed(rows=3)
    assert writer.positions({label}) == {TopicPartition(label, 0): 3}
    assert positions(str(tmp_path / address), "g") == {TopicPartition(label, 0): 3}
    assert writer.commit(writer.land(rows, {label}), [Range(label, 0, 0, 3)]) == Committed()


@dataclass(frozen=True)
class Chunked:
    """More records than one Arrow batch can have, on a small scale."""

    count: int

    def rows(self, only: set[str]) -> pa.Table:
        """Each record in a batch of its own."""
        return pa.concat_tables(some("x", at, at + 1).rows(only) for at in range(self.count))


def test_all_batches_of_the_records_are_landed(tmp_path: Path) -> None:
    """More than 2 GiB of values are several batches: all but the first were lost, and their range was committed."""
    writer = TableWriter(str(tmp_path / "t"), "g", "a")
    writer.commit(writer.land(Chunked(5), {"x"}), [Range("x", 0, 0, 5)])
    report = verify(str(tmp_path / "t"), "g")
    assert (report.rows, report.duplicates, report.missing) == (5, 0, 0)


def test_files_without_all_of_the_records_are_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The commit states the whole range, so no position would show the loss."""
    write = Landing.write
    monkeypatch.setattr(Landing, "write", lambda landing, batch: write(landing, batch.slice(1)))
    writer = TableWriter(str(tmp_path / "t"), "g", "a")
    with pytest.raises(TableError, match="5 records were read and 4 are in the files"):
        writer.land(some("x", 0, 5), {"x"})


def test_small_files_are_joined_beside_the_commits(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """It runs in a separate thread with a separate handle: a commit does not wait for it, and no row changes."""
    monkeypatch.setattr(table_writer, "_COMPACT_AFTER", 1)
    monkeypatch.setattr(table_writer, "_COMPACT_EVERY", 5)
    table = str(tmp_path / "t")
    writer = TableWriter(table, "g", "a")
    for offset in range(14):
        writer.commit(writer.land(some("x", offset, offset + 1), {"x"}), [Range("x", 0, offset, offset + 1)])
        compacting = writer._compactions._thread
        assert compacting is not None
        compacting.join(10)
    report = verify(table, "g")
    assert (report.rows, report.duplicates, report.missing) == (14, 0, 0)
    assert len(DeltaTable(table).file_uris()) < 10
