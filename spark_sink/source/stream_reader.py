"""The reader of a query: connects Spark's calls with the group and the tasks.

It exists in several processes and is pickled between them. Only the process that Spark asks for offsets joins the
group, and only the tasks read. Each imports its modules at the place of use, so that the other processes stay small.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import pyarrow as pa
from pyspark.sql.datasource import DataSourceStreamReader, InputPartition
from pyspark.sql.streaming.datasource import ReadLimit, ReadMaxRows, SupportsTriggerAvailableNow

from spark_sink.fetch.raw_columns import without_columns
from spark_sink.formats import Decoder, decode_batch
from spark_sink.options.source_options import SourceOptions
from spark_sink.ranges.batch_offset import Offset, Range
from spark_sink.ranges.task_packing import Packing, pack

if TYPE_CHECKING:
    from spark_sink.source.membership_session import MembershipSession
    from spark_sink.source.registry_columns import RegistryColumns
    from spark_sink.source.table_columns import TableColumns, TopicsDecoder


class TaskRanges(InputPartition):
    """The ranges of one task, and the ids that their topics had when the batch was planned.

    Args:
        ranges: at most one of each partition.
        identities: ids by topic.
        decoders: decoders of the batch's topics, if their columns may change from batch to batch; else none.
    """

    def __init__(
        self, ranges: Sequence[Range], identities: Mapping[str, str], decoders: "Sequence[TopicsDecoder]" = ()
    ) -> None:
        super().__init__([tuple(one) for one in ranges])
        self.decoders = decoders
        self.identities = {one.topic: identities[one.topic] for one in ranges if one.topic in identities}

    @property
    def ranges(self) -> list[Range]:
        """At most one range of each partition."""
        return [Range(*one) for one in self.value]


class KafkaGroupReader(DataSourceStreamReader, SupportsTriggerAvailableNow):
    """The source's reader, with the interface that Spark calls.

    Contract:
    * It does not join a group, open a connection or start a thread before Spark requests an offset, because instances
      are pickled to tasks. Its process may have joined for it (`early_membership`).
    * `partitions` needs no membership: after a crash Spark replays a batch before it requests an offset.

    Args:
        options: options of the source.
        decoder: decoder of values; None for the raw format.
        per_batch: the tasks write JSON with the columns that the tables have when a batch is planned, or Avro and
            Protobuf with those of the subject's latest schema.
    """

    def __init__(self, options: SourceOptions, decoder: Decoder | None = None, *, per_batch: bool = False) -> None:
        self._options = options
        self._decoder = decoder
        self._per_batch = per_batch
        self._columns: TableColumns | RegistryColumns | None = None
        self._session: MembershipSession | None = None

    def __getstate__(self) -> dict[str, Any]:
        return {**vars(self), "_session": None, "_columns": None}

    def initialOffset(self) -> dict[str, Any]:  # noqa: N802 -- Spark's name
        """Return an offset without partitions."""
        return Offset().value()

    def getDefaultReadLimit(self) -> ReadLimit:  # noqa: N802 -- Spark's name
        """Return `maxOffsetsPerTrigger`; Spark's Python API combines no limits, so the planner applies the others."""
        return ReadMaxRows(self._options.limits.max_offsets)

    def prepareForTriggerAvailableNow(self) -> None:  # noqa: N802 -- Spark's name
        """Set the present ends as the targets of the run."""
        with self._joined() as feed:
            feed.stop_at_ends()

    def latestOffset(self, start: dict[str, Any], limit: ReadLimit) -> dict[str, Any]:  # noqa: N802 -- Spark's name
        """Plan the next batch, and commit the offsets of previous batches."""
        most = limit.max_rows if isinstance(limit, ReadMaxRows) else None
        with self._joined() as feed:
            return feed.next_offset(Offset.parse(start), most).value_of(self._options.reads)

    def reportLatestOffset(self) -> dict[str, Any] | None:  # noqa: N802 -- Spark's name
        """Return the ends of the logs as Spark's own source does, for `latestOffset` in the progress of a query."""
        if self._session is None:
            return None
        with self._session as feed:
            return feed.log_ends()

    def partitions(self, start: dict[str, Any], end: dict[str, Any]) -> list[TaskRanges]:
        """Pack the ranges of a batch into tasks; the end offset describes them completely."""
        packing = Packing(tasks=self._options.parallelism, min_tasks=self._options.min_partitions)
        offset = Offset.parse(end)
        decoders = self._decoders(Offset.parse(start), offset) if self._per_batch else ()
        return [TaskRanges(task, offset.identities, decoders) for task in pack(offset, packing)]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        """Read the ranges of a task, in Spark's Python workers."""
        from spark_sink.fetch.range_reader import fetch

        assert isinstance(partition, TaskRanges)  # noqa: S101 -- Spark passes the results of `partitions`
        rows = fetch(partition.ranges, self._options.fetch, partition.identities)
        yield from self._decoded(rows) if self._options.landing is None else self._landed(rows, partition)

    def commit(self, end: dict[str, Any]) -> None:
        """Do nothing: Spark calls this a batch late and never while idle, so `latestOffset` commits."""

    def stop(self) -> None:
        """Leave the group."""
        if self._session is not None:
            self._session.close()
            self._session = None

    def _decoded(self, rows: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        decoder, left_out = self._decoder, self._options.left_out
        if decoder is not None:
            rows = (decode_batch(batch, decoder) for batch in rows)
        return (without_columns(batch, left_out) for batch in rows)

    def _landed(self, rows: Iterable[pa.RecordBatch], task: TaskRanges) -> Iterator[pa.RecordBatch]:
        """Write the files of a task; yield their description, and as many rows as there are records."""
        # Imported here, so that a query without a table needs no deltalake.
        from spark_sink.sink.direct_landing import (
            CountedBatches,
            empty_rows,
            land,
            run_of_task,
            table_schema,
        )

        assert self._options.landing is not None  # noqa: S101 -- the caller has looked
        records, sink = CountedBatches(rows), self._options.landing
        if task.decoders:
            from spark_sink.source.table_columns import land_by_columns

            yield land_by_columns(records, self._options, task.decoders, task.ranges)
        else:
            yield land(self._decoded(records), sink, table_schema(sink), run_of_task(), task.ranges)
        yield from empty_rows(records.rows)

    def _decoders(self, start: Offset, offset: Offset) -> "Sequence[TopicsDecoder]":
        from spark_sink.source.registry_columns import RegistryColumns
        from spark_sink.source.table_columns import TableColumns

        if self._columns is None:
            self._columns = self._make_columns()
        topics = {one.topic for one in offset if one.records}
        if isinstance(self._columns, RegistryColumns):
            return self._columns.decoders(topics)
        assert isinstance(self._columns, TableColumns)  # noqa: S101 -- there are two
        return self._columns.decoders(topics, {one.topic for one in start})

    def _make_columns(self) -> "TableColumns | RegistryColumns":
        from spark_sink.formats import JsonDecoder
        from spark_sink.source.registry_columns import RegistryColumns
        from spark_sink.source.table_columns import TableColumns

        assert self._options.landing is not None  # noqa: S101 -- the options have been checked
        assert self._decoder is not None  # noqa: S101 -- the options have been checked
        if isinstance(self._decoder, JsonDecoder):
            return TableColumns(self._options, self._decoder)
        return RegistryColumns(self._options, self._decoder)

    def _joined(self) -> "MembershipSession":
        from spark_sink.monitoring.logs.process_log import log_as_worker
        from spark_sink.source.membership_session import MembershipSession

        if self._session is None:
            log_as_worker()
            self._session = MembershipSession(self._options)
        return self._session
