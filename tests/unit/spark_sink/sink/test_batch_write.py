"""A batch write in foreachBatch commits its batch once, and a second write of the same batch is not lost in silence."""

import uuid
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from pathlib import Path

import pyarrow as pa
import pytest
from deltalake import DeltaTable
from pyspark.sql.pandas.types import from_arrow_schema
from pyspark.sql.types import LongType, StringType, StructField, StructType

from spark_sink import DeltaExactlyOnceSink, IcebergExactlyOnceSink, positions
from spark_sink.errors import OptionError, TableError
from spark_sink.fetch.raw_columns import arrow_schema
from spark_sink.lake.holes_and_doubles import verify
from spark_sink.lake.iceberg.catalogs import open_catalog
from spark_sink.ranges.batch_offset import Offset, Range
from spark_sink.sink.delta_sink import BatchWriter, SinkWriter, batch_writer
from spark_sink.sink.rewind.delta_rewind import rewind
from spark_sink.sink.sink_options import SinkOptions
from tests.table_kinds import Place

SCHEMA = arrow_schema(headers=False)
KINDS = ("delta", "iceberg")


@dataclass
class Query(Place):
    """A query that writes its batches in a function, as Spark runs it.

    Attributes:
        checkpoint: name of its checkpoint.
        topic: the topic that it reads.
        run: id of its run.
    """

    checkpoint: str = "c"
    topic: str = "t"
    run: str = field(default_factory=lambda: str(uuid.uuid4()))

    def write(self, table: str, batch: int, offsets: Iterable[int], of: tuple[int, int], *, tasks: int = 1) -> None:
        """Write some rows of a batch in a writer of their own; `of` is the range of the batch."""
        log = self.root / self.checkpoint / "offsets"
        log.mkdir(parents=True, exist_ok=True)
        (log / f"{batch}").write_text(f"v1\n{{}}\n{Offset.of([Range(self.topic, 0, *of)]).json()}\n")
        given = {
            "path": self.address(table).removeprefix("iceberg://"),
            "kafka.group.id": "g",
            "checkpointLocation": str(self.root / self.checkpoint),
            "batchId": str(batch),
            "tableFormat": self.format,
            **self.storage,
        }
        writer = BatchWriter(SinkWriter(SinkOptions.parse(given), SCHEMA), batch, lambda: self.run)
        rows = [{"topic": self.topic, "partition": 0, "offset": one, "value": b"v"} for one in offsets]
        record_batch = pa.RecordBatch.from_pylist(rows, schema=SCHEMA)
        writer.commit([writer.write(iter([record_batch])) for _ in range(tasks)])

    def restarted(self) -> "Query":
        """Return the next run of the query, with the same checkpoint."""
        return Query(self.root, self.format, self.checkpoint, self.topic)

    def restore_point(self, table: str) -> Callable[[], object]:
        """Return a call that brings the present version of a table back."""
        if self.format == "iceberg":
            found = open_catalog("lake", self.storage).load_table(("raw", table))
            number = found.metadata.current_snapshot_id
            assert number is not None
            return lambda: found.refresh().manage_snapshots().set_current_snapshot(snapshot_id=number).commit()
        version = DeltaTable(self.address(table)).version()
        return lambda: DeltaTable(self.address(table)).restore(version)


@pytest.fixture(params=KINDS)
def query(request: pytest.FixtureRequest, tmp_path: Path) -> Query:
    """One query for each format."""
    return Query(tmp_path, request.param)


def test_a_repeated_batch_adds_nothing_to_any_of_its_tables(query: Query) -> None:
    """Spark calls the function again if it died after the first of two writes."""
    for tables, batch in (("xy", 0), ("x", 1), ("xy", 1), ("yx", 1), ("xy", 2)):
        query = query.restarted()
        for table in tables:
            query.write(table, batch, range(3 * batch, 3 * batch + 3), (3 * batch, 3 * batch + 3))
    for table in "xy":
        assert positions(query.address(table), "g", query.storage) == {("t", 0): 9}
        assert query.offsets(table) == list(range(9))
        if query.format == "delta":
            found = verify(query.address(table))
            assert (found.rows, found.ok) == (9, True)


def test_a_second_write_of_a_batch_in_one_call_is_refused(query: Query) -> None:
    """Two halves of a batch by filter: the table's position is past the second half, so it would be lost in silence."""
    query.write("x", 0, range(0, 10, 2), (0, 10))
    with pytest.raises(TableError, match=r"already written a part of batch 0 here, so these 5 rows .*unionByName"):
        query.write("x", 0, range(1, 10, 2), (0, 10))
    query.write("x", 1, range(10, 12), (10, 12))
    assert query.offsets("x") == [0, 2, 4, 6, 8, 10, 11]


def test_a_second_write_is_refused_in_a_repeated_call_too(query: Query) -> None:
    """A crash between the two writes: in the next run the first half is a replay, and the second half is missing."""
    query.write("x", 0, range(0, 10, 2), (0, 10))
    query = query.restarted()
    query.write("x", 0, range(0, 10, 2), (0, 10))
    with pytest.raises(TableError, match="already written a part of batch 0"):
        query.write("x", 0, range(1, 10, 2), (0, 10))
    assert query.offsets("x") == [0, 2, 4, 6, 8]


def test_the_rows_of_a_refused_write_are_not_lost_in_the_next_run(query: Query) -> None:
    """The function now writes all rows at once, or the second part only, and the batch looks like a replay."""
    query.write("x", 0, range(0, 10, 2), (0, 10))
    with pytest.raises(TableError, match="already written a part of batch 0"):
        query.write("x", 0, range(1, 10, 2), (0, 10))
    query = query.restarted()
    for rest in (range(10), range(1, 10, 2), range(1, 10, 4)):
        said = f"another part of batch 0 here than these {len(rest)} rows.*RESTORE the version before"
        with pytest.raises(TableError, match=said):
            query.write("x", 0, rest, (0, 10))
    assert query.offsets("x") == [0, 2, 4, 6, 8]
    # Each part in a table of its own: the first part is a replay, and so is none of it.
    query.restarted().write("x", 0, [], (0, 10))
    query.write("x", 0, range(0, 10, 2), (0, 10))
    query.write("y", 0, range(1, 10, 2), (0, 10))
    query.write("x", 1, range(10, 12), (10, 12))
    assert (query.offsets("x"), query.offsets("y")) == ([0, 2, 4, 6, 8, 10, 11], [1, 3, 5, 7, 9])


@pytest.mark.parametrize("first", [range(3, 10, 2), range(0)], ids=["rows", "no rows"])
def test_a_batch_of_a_refused_write_is_whole_after_a_rewind(
    query: Query, monkeypatch: pytest.MonkeyPatch, first: range
) -> None:
    """Back to the version before it and rewind, as the message says; then a repetition is a replay as usual."""
    query.write("x", 0, range(3), (0, 3))
    restore = query.restore_point("x")
    query.write("x", 1, first, (3, 10))
    with pytest.raises(TableError, match="already written a part of batch 1"):
        query.write("x", 1, range(4, 10, 2), (3, 10))
    restore()
    rewind(query.address("x"), None, query.storage, apply=True)
    monkeypatch.setattr("spark_sink.sink.delta_sink._KEPT", {})  # a new process
    for _ in range(2):
        query = query.restarted()
        query.write("x", 1, range(3, 10), (3, 10))
    assert query.offsets("x") == list(range(10))


@pytest.mark.parametrize("tasks", [0, 1])
def test_rows_after_an_empty_write_are_refused_and_an_empty_write_after_rows_is_not(query: Query, tasks: int) -> None:
    """An empty part moves the positions too; Spark may plan no task for it, so that none says which run it is."""
    query.write("x", 0, [], (0, 4), tasks=tasks)
    with pytest.raises(TableError, match="already written a part of batch 0"):
        query.write("x", 0, range(4), (0, 4))
    for _ in range(2):
        query = query.restarted()
        query.write("y", 0, range(4), (0, 4))
        query.write("y", 0, [], (0, 4), tasks=tasks)
    assert query.offsets("y") == [0, 1, 2, 3]


def test_another_query_with_the_same_batch_numbers_is_no_replay(query: Query) -> None:
    """Each checkpoint counts its batches from 0; only offsets decide which rows a table has."""
    other = Query(query.root, query.format, "other", "u", query.run)
    for batch in (0, 1):
        query.write("x", batch, range(3 * batch, 3 * batch + 3), (3 * batch, 3 * batch + 3))
        other.write("x", batch, range(3 * batch, 3 * batch + 3), (3 * batch, 3 * batch + 3))
    assert query.offsets("x") == [0, 0, 1, 1, 2, 2, 3, 3, 4, 4, 5, 5]


@pytest.mark.parametrize("run", ["", "nightly"], ids=["another thread", "a job group of the user"])
def test_a_write_that_does_not_know_its_run_is_refused(tmp_path: Path, run: str) -> None:
    """Without the run, a second write and a replay look the same."""
    with pytest.raises(TableError, match=r"nothing was written. Write in the thread in which Spark calls the function"):
        Query(tmp_path, "delta", run=run).write("x", 0, range(3), (0, 3))


def test_a_run_that_the_options_give_counts_in_place_of_the_job_group(tmp_path: Path) -> None:
    """The tasks of Spark Connect do not know the run; `SparkLanding` does."""
    query = Query(tmp_path, "delta")
    query.write("x", 0, range(2), (0, 2))
    (tmp_path / query.checkpoint / "offsets" / "1").write_text(f"v1\n{{}}\n{Offset.of([Range('t', 0, 2, 6)]).json()}\n")
    given = {"path": query.address("x"), "kafka.group.id": "g", "checkpointLocation": str(tmp_path / query.checkpoint)}
    columns = from_arrow_schema(SCHEMA)

    def write(run: str, offsets: Iterable[int]) -> None:
        options = {**given, "batchId": "1", "batchRun": run}
        writer = batch_writer("delta-exactly-once", options, columns, overwrite=False)
        rows = [{"topic": "t", "partition": 0, "offset": one, "value": b"v"} for one in offsets]
        writer.commit([writer.write(iter([pa.RecordBatch.from_pylist(rows, schema=SCHEMA)]))])

    first, second = str(uuid.uuid4()), str(uuid.uuid4())
    write(first, range(2, 6))
    write(second, range(2, 6))
    assert query.offsets("x") == list(range(6))
    with pytest.raises(TableError, match="already written a part of batch 1"):
        write(second, range(2, 6))


@pytest.mark.parametrize("sink", [DeltaExactlyOnceSink, IcebergExactlyOnceSink], ids=KINDS)
def test_a_batch_write_without_a_batch_is_refused(sink: type[DeltaExactlyOnceSink | IcebergExactlyOnceSink]) -> None:
    """Without the offsets of a batch nothing shows which rows a table has already."""
    schema = StructType([StructField("topic", StringType()), StructField("offset", LongType())])
    given = {"path": "a.b.c", "kafka.group.id": "g", "checkpointLocation": "c"}
    with pytest.raises(OptionError, match="in foreachBatch set the option 'batchId'"):
        sink(given).writer(schema, overwrite=False)
    with pytest.raises(OptionError, match="'batchId': 'x', need the number"):
        sink({**given, "batchId": "x"}).writer(schema, overwrite=False)
    with pytest.raises(OptionError, match="'append' only"):
        sink({**given, "batchId": "1"}).writer(schema, overwrite=True)
    with pytest.raises(OptionError, match="'batchId' is for foreachBatch"):
        sink({**given, "batchId": "1"}).streamWriter(schema, overwrite=False)
