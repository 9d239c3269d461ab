"""`.format("delta-exactly-once")`: tasks write Parquet, the driver compares and swaps.

write    in each task: rows -> data files in the folders of their tables -> a message that describes the files
commit   in one Python process next to the driver, which lives for several batches: ranges of the batch from Spark's
         offset log, positions from the tables, `commit_by_compare_and_swap.commit` for each
abort    does nothing: Spark may call it after a successful commit, and deleting files would lose rows

A batch write inside `foreachBatch` is the same: with the batch's number it finds the same ranges, so a repeated call
adds nothing. A second write of a batch within one call is refused (`foreach_batch_write`). A batch write outside of a
stream has its ranges in its options (`range_write`).
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial

import pyarrow as pa
from pyspark.sql.datasource import (
    DataSource,
    DataSourceArrowWriter,
    DataSourceStreamArrowWriter,
    WriterCommitMessage,
)
from pyspark.sql.types import StructType

from spark_sink.errors import OptionError, TableError
from spark_sink.lake.table_contract import DataFile
from spark_sink.ranges.batch_offset import Offset, Range
from spark_sink.sink.direct_landing import (
    is_direct,
    parse,
    parse_ranges,
    parse_schemas,
    refuse_unread,
    run_of_task,
    table_schema,
)
from spark_sink.sink.foreach_batch_write import BatchWrite, run_of_write
from spark_sink.sink.query_columns import query_columns
from spark_sink.sink.query_tables import Tables
from spark_sink.sink.range_write import RangeWrite, added, fingerprints, ranges_of_write
from spark_sink.sink.rows_by_table import Sorting
from spark_sink.sink.sink_options import (
    BATCH_RUN,
    DELTA_FORMAT,
    ICEBERG_FORMAT,
    SinkOptions,
    batch_number,
    option_value,
)
from spark_sink.sink.spark_offset_log import batch_offset

NO_BATCH = -1


class ExactlyOnceSink(DataSource):
    """The calls of Spark that the sinks of both formats share."""

    def _given(self) -> Mapping[str, str]:
        return self.options

    def writer(self, schema: StructType, overwrite: bool) -> DataSourceArrowWriter:  # noqa: FBT001 -- Spark's signature
        """Create the writer of one batch of `foreachBatch`, or of ranges that the options name."""
        return batch_writer(self.name(), self._given(), schema, overwrite=overwrite)

    def streamWriter(self, schema: StructType, overwrite: bool) -> "SinkWriter":  # noqa: N802, FBT001 -- Spark's signature
        """Create the writer; Spark calls this once for the tasks and once for each commit.

        Raises:
            OptionError: an option is invalid, or only for `foreachBatch`.
        """
        if batch_number(self.options) is not None:
            raise OptionError("option 'batchId' is for foreachBatch: a stream numbers its batches itself")
        return stream_writer(self.name(), self._given(), schema, overwrite=overwrite)


class DeltaExactlyOnceSink(ExactlyOnceSink):
    """Delta tables that have every record exactly once, even after replays, crashes and pauses of writers.

    Options: `path` (`{topic}` in it means a table for each topic), `routes` (JSON, regular expression of topics to
    address), `kafka.group.id`, `checkpointLocation`, `agent`, `partitionBy` (columns, by commas), `mergeSchema`,
    `compression`, `compactEvery`, `storage.<name>` for the object store, `tableProperty.<name>` for new tables; in a
    batch write of `foreachBatch` also `batchId`, and outside of a stream `startingOffsets` and `endingOffsets`.
    docs/reference/options.md lists the defaults.
    """

    @classmethod
    def name(cls) -> str:
        """The format's name."""
        return "delta-exactly-once"


def stream_writer(
    name: str, given: Mapping[str, str], schema: StructType, *, overwrite: bool, stream: bool = True
) -> "SinkWriter":
    """Create the writer of a query.

    Args:
        name: the format's name.
        given: the options of the query.
        schema: columns of its rows.
        overwrite: the query wants to replace the rows.
        stream: whether the rows are those of a stream's batch.

    Raises:
        OptionError: an option is invalid, or is for tables of another format.
    """
    if overwrite:
        raise OptionError(f"{name} knows the output mode 'append' only")
    options = SinkOptions.parse(given, stream=stream)
    if name != f"{ICEBERG_FORMAT if options.iceberg else DELTA_FORMAT}-exactly-once":
        raise OptionError(f"{options.routes.default}: its format is not that of {name}; use the other sink")
    if is_direct(schema.names):
        return DirectWriter(options, table_schema(given))
    return SinkWriter(options, query_columns(schema))


def batch_writer(name: str, given: Mapping[str, str], schema: StructType, *, overwrite: bool) -> DataSourceArrowWriter:
    """Create the writer of one batch of `foreachBatch`, or of ranges that the options name.

    Args:
        name: the format's name.
        given: the options of the write.
        schema: columns of its rows.
        overwrite: the write wants to replace the rows.

    Raises:
        OptionError: the options do not say which offsets the rows are from, or one of them is invalid.
    """
    number = batch_number(given)
    if number is not None:
        writer = stream_writer(name, given, schema, overwrite=overwrite)
        run = option_value(given, BATCH_RUN)
        return BatchWriter(writer, number, run_of_task if run is None else partial(str, run))
    offset = ranges_of_write(given)
    if offset is not None and option_value(given, "checkpointLocation") is not None:
        raise OptionError(
            f"{name}: a write of ranges has no checkpoint; leave out 'checkpointLocation', or, in foreachBatch, set "
            "the option 'batchId' to the function's second argument"
        )
    if offset is None:
        raise OptionError(
            f"{name} must know from which offsets the rows are, because these show what a table has: in foreachBatch "
            "set the option 'batchId' to the function's second argument and 'checkpointLocation' to the query's; for "
            "rows of a batch read give spark_sink.fixed_offsets(options) to the read and the write; for other rows use "
            f"the format {name.removesuffix('-exactly-once')!r}"
        )
    return RangeWriter(stream_writer(name, given, schema, overwrite=overwrite, stream=False), offset)


@dataclass
class Landed(WriterCommitMessage):
    """The message of one task about its files.

    Attributes:
        files: files by the address of their table.
        ranges: the ranges that the task read from Kafka, if the reading tasks write the files.
        columns: columns of the rows of each table, if they were read for the batch.
        wanted: columns for fields that a table lacks.
        run: Spark's id of the query's run, in a write of `foreachBatch`.
        records: stands for the records of each topic, in a write outside of a stream.
    """

    files: dict[str, list[DataFile]]
    ranges: list[Range] = field(default_factory=list)
    columns: dict[str, pa.Schema] = field(default_factory=dict)
    wanted: dict[str, pa.Schema] = field(default_factory=dict)
    run: str = ""
    records: dict[str, int] = field(default_factory=dict)

    @property
    def rows(self) -> int:
        """Number of rows in the files."""
        return sum(file.rows for files in self.files.values() for file in files)


class SinkWriter(DataSourceStreamArrowWriter):
    """Writes and commits the batches of one query.

    Args:
        options: options of the sink.
        schema: schema of the rows.
    """

    def __init__(self, options: SinkOptions, schema: pa.Schema) -> None:
        self._options = options
        self.schema = schema

    @property
    def checkpoint(self) -> str:
        """The query's checkpointLocation."""
        return self._options.checkpoint

    def write(self, iterator: Iterator[pa.RecordBatch]) -> Landed:
        """Write the rows of one task into data files."""
        sorting = Sorting(self._options, self.schema, run_of_task())
        for batch in iterator:
            sorting.write(batch)
        return Landed(sorting.close())

    def commit(self, messages: Sequence[WriterCommitMessage | None], batchId: int) -> None:  # noqa: N803 -- Spark's name
        """Commit a batch to the tables, exactly once."""
        self.commit_part(messages, batchId)

    def commit_part(
        self,
        messages: Sequence[WriterCommitMessage | None],
        batch: int,
        write: BatchWrite | RangeWrite | None = None,
    ) -> None:
        """Commit a batch, or what a function of `foreachBatch` writes of it.

        Args:
            messages: from the tasks.
            batch: Spark's number of the batch; -1 for a write outside of a stream.
            write: this batch write; None for a stream.

        Raises:
            TableError: a table refuses its part, or a task has not finished.
        """
        if isinstance(write, RangeWrite):
            offset = write.offset
        else:
            offset = batch_offset(self._options.checkpoint, batch, self._options.storage)
        landed = [message for message in messages if isinstance(message, Landed)]
        if missing := len(messages) - len(landed):
            place, then = (
                (f"batch {batch}: ", ", and Spark repeats the batch") if batch != NO_BATCH else ("", "; repeat it")
            )
            raise TableError(
                f"{place}{missing} of {len(messages)} tasks do not say which files they wrote; nothing was "
                f"committed{then}"
            )
        self._refuse_incomplete(offset, landed)
        files: dict[str, list[DataFile]] = {}
        for message in landed:
            for table, found in message.files.items():
                files.setdefault(table, []).extend(found)
        columns = {table: one for message in landed for table, one in message.columns.items()}
        tables = _tables(self._options)
        tables.commit(offset, files, self.schema, batch, columns, write=write)
        tables.add_columns([message.wanted for message in landed if message.wanted])
        # If hundreds of tables reach their checkpoints at once, Arrow would keep the memory that it took to read them.
        pa.default_memory_pool().release_unused()

    def abort(self, messages: Sequence[WriterCommitMessage | None], batchId: int) -> None:  # noqa: N803 -- Spark's name
        """Do nothing: the commit may have succeeded, and then its files belong to the table."""

    def _refuse_incomplete(self, offset: Offset, landed: Sequence[Landed]) -> None:
        """Refuse a batch that lacks records; a query may filter its rows, so here any rows are valid."""


class DirectWriter(SinkWriter):
    """Commits files that the source's tasks have written."""

    def write(self, iterator: Iterator[pa.RecordBatch]) -> Landed:
        """Collect the descriptions of the files."""
        landed = Landed({})
        for batch in iterator:
            for text in batch.column(0).drop_null().to_pylist():
                landed.ranges.extend(parse_ranges(text))
                landed.columns, landed.wanted = parse_schemas(text)
                for table, found in parse(text, self.schema).items():
                    landed.files.setdefault(table, []).extend(found)
        return landed

    def _refuse_incomplete(self, offset: Offset, landed: Sequence[Landed]) -> None:
        refuse_unread(offset, [one for message in landed for one in message.ranges])


class BatchWriter(DataSourceArrowWriter):
    """Writes and commits one batch of `foreachBatch`, as the stream's writer does.

    Args:
        writer: the stream's writer.
        number: of the batch.
        run: returns Spark's id of the query's run, in a task.
    """

    def __init__(self, writer: SinkWriter, number: int, run: Callable[[], str] = run_of_task) -> None:
        self._writer = writer
        self._number = number
        self._run = run

    def write(self, iterator: Iterator[pa.RecordBatch]) -> Landed:
        """Write the rows of one task into data files."""
        landed = self._writer.write(iterator)
        landed.run = self._run()
        return landed

    def commit(self, messages: Sequence[WriterCommitMessage | None]) -> None:
        """Commit the rows of the batch, exactly once.

        Raises:
            TableError: this call of the function has written to the table before, or a table refuses its part.
        """
        runs = {one.run for one in messages if isinstance(one, Landed) and one.rows}
        write = BatchWrite.of(self._writer.checkpoint, self._number, run_of_write(runs, self._number))
        self._writer.commit_part(messages, self._number, write)

    def abort(self, messages: Sequence[WriterCommitMessage | None]) -> None:
        """Do nothing, as for a stream."""


class RangeWriter(DataSourceArrowWriter):
    """Writes and commits rows of the ranges that the options name, outside of a stream.

    Args:
        writer: a stream's writer.
        offset: the ranges.
    """

    def __init__(self, writer: SinkWriter, offset: Offset) -> None:
        self._writer = writer
        self._offset = offset

    def write(self, iterator: Iterator[pa.RecordBatch]) -> Landed:
        """Write the rows of one task into data files."""
        records: list[dict[str, int]] = []

        def noting() -> Iterator[pa.RecordBatch]:
            for batch in iterator:
                yield batch
                records.append(fingerprints(batch))  # after the writer has checked and written the rows

        landed = self._writer.write(noting())
        landed.records = added(records)
        return landed

    def commit(self, messages: Sequence[WriterCommitMessage | None]) -> None:
        """Commit the rows, exactly once.

        Raises:
            HoleError: a range begins after the table's position.
            TableError: rows are from before the table's positions, or a table refuses its part.
        """
        records = added(one.records for one in messages if isinstance(one, Landed))
        self._writer.commit_part(messages, NO_BATCH, RangeWrite(offset=self._offset, rows=records))

    def abort(self, messages: Sequence[WriterCommitMessage | None]) -> None:
        """Do nothing, as for a stream."""


# Spark keeps the committing process between batches, and cached handles read only new commits.
_KEPT: dict[tuple[str, str], tuple[SinkOptions, Tables]] = {}


def _tables(options: SinkOptions) -> Tables:
    place = options.checkpoint, options.routes.default  # foreachBatch may write several tables
    known = _KEPT.get(place)
    if known is None or known[0] != options:
        known = _KEPT[place] = options, Tables(options)
    return known[1]
