"""The tables of one query, each with its quarantine."""

import contextlib
import json
from collections.abc import Callable, KeysView, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from functools import cache, partial

import pyarrow as pa

from spark_sink.errors import OffsetError, TableError
from spark_sink.formats.bad_values_quarantined import good_schema
from spark_sink.formats.json_evolution import agreed_columns
from spark_sink.formats.quarantine_addresses import quarantine_of
from spark_sink.lake.positions_in_delta_log import positions
from spark_sink.lake.table_addresses import PLACEHOLDER
from spark_sink.lake.table_contract import DataFile
from spark_sink.lake.table_formats import open_table
from spark_sink.ranges.batch_offset import Offset, TopicPartition
from spark_sink.sink.commit_by_compare_and_swap import Batch, Outcome
from spark_sink.sink.foreach_batch_write import BatchWrite
from spark_sink.sink.quarantine.quarantine_commit import TableWithQuarantine, refuse_ahead
from spark_sink.sink.range_write import RangeWrite
from spark_sink.sink.sink_options import SinkOptions
from spark_sink.sink.spark_offset_log import batch_offset

_THREADS = 8

Files = Mapping[str, Sequence[DataFile]]
Schemas = Mapping[str, pa.Schema]


class Tables:
    """The tables that a query writes, reused for all batches.

    Args:
        options: of the sink.
    """

    def __init__(self, options: SinkOptions) -> None:
        self._options = options
        self._last: tuple[int, Offset] | None = None  # the newest batch of this process
        self._tables: dict[str, _QueryTable] = {}
        # Of tables of other routes, each read once: many new topics may have the same one.
        self._positions = cache(partial(positions, group=options.group, storage_options=options.storage))

    def commit(  # noqa: PLR0913 -- the parts of one batch
        self,
        offset: Offset,
        files: Files,
        schema: pa.Schema,
        number: int,
        columns: Schemas | None = None,
        *,
        write: BatchWrite | RangeWrite | None = None,
    ) -> list[Outcome]:
        """Commit one batch to its tables. A table that has it already adds nothing, so the call may be repeated.

        Args:
            offset: the ranges of the batch.
            files: the written files, by the address of the table.
            schema: the query's columns of the rows.
            number: Spark's batch id.
            columns: columns of the rows of a table, if they differ from the query's.
            write: this batch write, in `foreachBatch` or outside of a stream; None for the batch of a stream.

        Raises:
            HoleError: rows before this batch are missing in a table.
            TableError: a table refuses its part, or files are where no table of the batch is.
        """
        batch = Batch(
            offset=offset,
            files=(),
            schema=good_schema(schema),
            number=number,
            agent=self._options.agent,
            write=write,
            by_topic=self._options.topic_notes,
        )
        topics_by_table = self._options.routes.by_table({one.topic for one in offset})
        _refuse_strayed(files, topics_by_table.keys())
        self._refuse_held_back(offset, files, number)
        self._last = number, offset
        self._check_default(batch)
        parts: list[tuple[_QueryTable, Batch]] = []
        for address, topics in topics_by_table.items():
            part = offset.only({key for key in offset.ranges if key.topic in topics})
            table = self._table(address)
            if table.needs(part):
                bad = files.get(quarantine_of(address), ())
                own = good_schema((columns or {}).get(address, schema))
                one = write.only(part) if isinstance(write, RangeWrite) else write
                found = files.get(address, ())
                parts.append((table, replace(batch, offset=part, files=found, bad=bad, schema=own, write=one)))
        if len(parts) <= 1:
            return [table.commit(own) for table, own in parts]
        with ThreadPoolExecutor(_THREADS) as pool:
            return list(pool.map(lambda part: part[0].commit(part[1]), parts))

    def add_columns(self, wanted: Sequence[Schemas]) -> None:
        """Add columns for fields that tables lack. A later batch retries failures, because the values are rescued."""
        for address in sorted({address for one in wanted for address in one}):
            self._table(address).add_columns(agreed_columns(one[address] for one in wanted if address in one))

    def _table(self, address: str) -> "_QueryTable":
        if address not in self._tables:
            self._tables[address] = _QueryTable(address, self._options, self._positions)
        return self._tables[address]

    def _refuse_held_back(self, offset: Offset, files: Files, number: int) -> None:
        """Refuse rows of a batch without new records: its query has held them back from an earlier batch.

        Spark runs such a batch for queries with state, and its offsets are those of the batch before. The positions of
        the tables are past these rows, so they would look like a replay.
        """
        rows = sum(file.rows for found in files.values() for file in found)
        if not rows or number < 1:
            return
        with contextlib.suppress(OffsetError):
            known, before = self._last or (-1, Offset())
            if known != number - 1:
                before = batch_offset(self._options.checkpoint, number - 1, self._options.storage)
            if before == offset:
                raise TableError(
                    f"batch {number} has no new records, so its {rows} rows are of earlier batches, whose offsets the "
                    "tables count as written; nothing was written. A query must pass each row on in the batch that "
                    "read it: windows, joins of streams and other operations that hold rows back do not fit this sink"
                )

    def _check_default(self, batch: Batch) -> None:
        """Check the default table: the first batch creates it even without a partition; if missing, it was deleted."""
        address = self._options.routes.default
        if PLACEHOLDER not in address:
            self._table(address).require(batch)


class _QueryTable:
    """One table of a query, with its quarantine.

    Args:
        address: of the table.
        options: of the sink.
        elsewhere: returns the positions of another table.
    """

    def __init__(
        self, address: str, options: SinkOptions, elsewhere: Callable[[str], Mapping[TopicPartition, int]]
    ) -> None:
        self._options, self._elsewhere = options, elsewhere
        self._table = open_table(address, options.group, options.storage, options.table)
        self._quarantine = open_table(quarantine_of(address), options.group, options.storage, options.quarantine)
        self._both = TableWithQuarantine(self._table, self._quarantine)
        self._exists = self._opened = False
        self._announced: set[TopicPartition] = set()  # partitions whose first offset the table has

    def needs(self, part: Offset) -> bool:
        """Return whether a batch has work here; an empty range counts until the table has its first offset."""
        return any(one.records or one.key not in self._announced for one in part)

    def require(self, batch: Batch) -> None:
        """Create the table with the first batch; later a missing table was deleted.

        Raises:
            TableError: it was deleted.
        """
        if self._exists:
            return
        if self._table.refresh() is None:
            if batch.number <= 0:
                self._table.create(batch.schema)
            elif self._table.newest() is None:
                raise TableError(
                    f"{self._table.name}: there is no table, but the checkpoint {self._options.checkpoint} is at batch "
                    f"{batch.number}; nothing was written. Restore the table, or start again with a new checkpoint"
                )
        self._exists = True

    def commit(self, batch: Batch) -> Outcome:
        """Commit a batch to the table and its bad rows to the quarantine.

        Raises:
            HoleError: rows before this batch are missing.
            TableError: the table refuses it.
        """
        if not self._opened:
            self._open(batch)
        try:
            outcome = self._both.commit(batch)
        except TableError:
            # A rewind may be the reason, so this process compares the quarantine with the table again.
            self._opened, self._both = False, TableWithQuarantine(self._table, self._quarantine)
            raise
        self._exists = self._opened = True
        self._announced |= batch.offset.ranges.keys()
        self._table.compact(self._options.compact_every)
        if outcome.quarantined is not None:
            self._quarantine.compact(self._options.compact_every)
        return outcome

    def add_columns(self, columns: pa.Schema) -> None:
        """Add columns that the table lacks; no error if another writer is faster or the storage refuses."""
        self._table.add_columns(columns)

    def _open(self, batch: Batch) -> None:
        """Compare the table with its quarantine, the previous batch and tables of other routes, once per process."""
        known = refuse_ahead(self._table, self._quarantine)
        self._refuse_forgotten(batch, known.keys())
        self._refuse_written_elsewhere(batch, known.keys())

    def _refuse_forgotten(self, batch: Batch, known: KeysView[TopicPartition]) -> None:
        """Refuse a table that lacks the positions of the previous batch: it was deleted between two runs.

        A topic that goes to another table now is looked up in its former table.
        """
        new = batch.offset.ranges.keys() - known
        if not new or batch.number < 1:
            return
        options = self._options
        with contextlib.suppress(OffsetError):
            lost = new & batch_offset(options.checkpoint, batch.number - 1, options.storage).ranges.keys()
            if lost:
                lost -= positions(json.dumps(options.routes.addresses()), options.group, options.storage).keys()
            for topic, partition in sorted(lost)[:1]:
                raise TableError(
                    f"{self._table.name}: it knows nothing of {topic}/{partition} and group {options.group!r}, which "
                    f"the checkpoint {options.checkpoint} had before batch {batch.number}; nothing was written. Was "
                    "the table deleted, or the group renamed? Put that right, or start again with a new checkpoint"
                )

    def _refuse_written_elsewhere(self, batch: Batch, known: KeysView[TopicPartition]) -> None:
        """Refuse a batch that another table has: Spark repeats it after a crash, and the routes changed in between."""
        for key in sorted(batch.offset.ranges.keys() - known):
            begin = batch.offset.ranges[key].begin
            for other in sorted(self._options.routes.others(key.topic)):
                at = self._elsewhere(other).get(key, begin)
                if at > begin:
                    raise TableError(
                        f"{self._table.name}: {key.topic}/{key.partition} was written to {other} up to offset {at}, "
                        f"and {batch.name} begins at {begin}, so its records would be in both tables; nothing was "
                        "written. Begin where the other table ends; a stream needs a new checkpoint"
                    )


def _refuse_strayed(files: Files, tables: KeysView[str]) -> None:
    """Refuse files without a table in the batch: the positions would move, and their rows would be lost.

    Raises:
        TableError: there is such a file.
    """
    taken = tables | {quarantine_of(table) for table in tables}
    for address, found in files.items():
        rows = sum(file.rows for file in found)
        if address not in taken and rows:
            topics = sorted({key.topic for file in found for key in file.spans})
            raise TableError(
                f"{address}: the tasks wrote {rows} rows of {', '.join(topics[:3])} here, but the batch goes to "
                f"{', '.join(sorted(tables)[:3]) or 'no table'}; nothing was committed. Leave the column topic as it "
                "is, and give source and sink the same absolute address"
            )
