"""The tables of one query: each compares and swaps for itself, its quarantine before it."""

import contextlib
import json
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace

import pyarrow as pa

from spark_sink.errors import OffsetError, TableError
from spark_sink.formats.quarantine import SCHEMA as QUARANTINE_SCHEMA
from spark_sink.formats.quarantine import good_schema, quarantine_of
from spark_sink.lake.delta_table import DeltaLakeTable, TableSettings
from spark_sink.lake.positions import positions
from spark_sink.lake.table_contract import DataFile
from spark_sink.lake.table_storage import PLACEHOLDER
from spark_sink.ranges.batch_offset import Offset, TopicPartition
from spark_sink.sink.compare_and_swap import Batch, Outcome, commit
from spark_sink.sink.sink_options import SinkOptions
from spark_sink.sink.spark_checkpoint import batch_offset

_THREADS = 8

Files = Mapping[str, Sequence[DataFile]]


class Tables:
    """Handles that are kept from batch to batch.

    Args:
        options: of the sink.
    """

    def __init__(self, options: SinkOptions) -> None:
        self._options = options
        self._handles: dict[str, DeltaLakeTable] = {}
        self._known: dict[str, set[TopicPartition]] = {}
        self._looked: set[str] = set()

    def commit(self, offset: Offset, files: Files, schema: pa.Schema, number: int) -> list[Outcome]:
        """Bring one batch into its tables. A table that has it already takes nothing, so all may be repeated.

        Args:
            offset: the ranges of the batch.
            files: what was written, by the address of the table.
            schema: columns of the rows as the query has them.
            number: Spark's batch id.

        Raises:
            HoleError: rows before this batch are missing in a table.
            TableError: a table cannot take its part.
        """
        batch = Batch(offset=offset, files=(), schema=good_schema(schema), number=number, agent=self._options.agent)
        self._check_default(batch)
        parts = [
            (table, replace(batch, offset=part, files=files.get(table, ())), files.get(quarantine_of(table), ()))
            for table, topics in self._options.routes.by_table({one.topic for one in offset}).items()
            if self._needed(table, part := offset.only({one.key for one in offset if one.topic in topics}))
        ]
        if len(parts) <= 1:
            return [self._commit(*part) for part in parts]
        with ThreadPoolExecutor(_THREADS) as pool:
            return list(pool.map(lambda part: self._commit(*part), parts))

    def _commit(self, table: str, batch: Batch, bad: Sequence[DataFile]) -> Outcome:
        if bad:
            quarantine = quarantine_of(table)
            held = {key for file in bad for key in file.spans}
            ranges = batch.offset.only(held)
            settings = TableSettings(properties=self._options.table.properties)
            wanted = replace(batch, offset=ranges, files=bad, schema=QUARANTINE_SCHEMA, gaps=True)
            commit(self._handle(quarantine, settings), wanted)
        handle = self._handle(table, self._options.table)
        if table not in self._looked:
            self._refuse_forgotten(handle, batch)
            self._looked.add(table)
        outcome = commit(handle, batch)
        self._known.setdefault(table, set()).update(batch.offset.ranges)
        handle.compact(self._options.compact_every)
        return outcome

    def _handle(self, table: str, settings: TableSettings) -> DeltaLakeTable:
        if table not in self._handles:
            self._handles[table] = DeltaLakeTable(table, self._options.group, self._options.storage, settings)
        return self._handles[table]

    def _needed(self, table: str, part: Offset) -> bool:
        # An empty range is worth a look only until the table knows where the partition begins.
        known = self._known.get(table, set())
        return any(one.records or one.key not in known for one in part)

    def _refuse_forgotten(self, handle: DeltaLakeTable, batch: Batch) -> None:
        """What the batch before had, the table knows: if not, it was deleted between two runs, and its rows are gone.

        A topic that goes to another table now is known where it went before.
        """
        snapshot = handle.refresh()
        new = batch.offset.ranges.keys() - (snapshot.positions if snapshot else {})
        if not new or batch.number < 1:
            return
        options = self._options
        with contextlib.suppress(OffsetError):
            lost = new & batch_offset(options.checkpoint, batch.number - 1, options.storage).ranges.keys()
            if lost:
                lost -= positions(json.dumps(options.routes.addresses()), options.group, options.storage).keys()
            for topic, partition in sorted(lost)[:1]:
                raise TableError(
                    f"{handle.name}: it knows nothing of {topic}/{partition} and group {options.group!r}, which the "
                    f"checkpoint {options.checkpoint} had before batch {batch.number}; nothing was written. Was the "
                    "table deleted, or the group renamed? Put that right, or start again with a new checkpoint"
                )

    def _check_default(self, batch: Batch) -> None:
        """The first batch makes the table even where it holds no partition, so a missing one was deleted."""
        table = self._options.routes.default
        if PLACEHOLDER in table or table in self._known:
            return
        handle = self._handle(table, self._options.table)
        if handle.refresh() is None:
            if batch.number > 0:
                raise TableError(
                    f"{table}: there is no table, but the checkpoint {self._options.checkpoint} is at batch "
                    f"{batch.number}; nothing was written. Restore the table, or start again with a new checkpoint"
                )
            handle.create(batch.schema)
        self._known[table] = set()
