"""Columns of JSON values from the sink's tables: `valueSchema=table`.

Each batch is planned with the present columns of its tables. So all agents of a group write a field in the same way,
whenever they started, and if one of them adds a column, the others use it with their next batch.
"""

from collections.abc import Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

import pyarrow as pa
import pyarrow.compute as pc
from deltalake import DeltaTable
from deltalake.exceptions import DeltaError, TableNotFoundError

from spark_sink.errors import TableError, plain
from spark_sink.fetch.raw_columns import without_columns
from spark_sink.formats import Decoder, JsonDecoder, decode_batch
from spark_sink.formats.bad_values_quarantined import good_schema
from spark_sink.formats.json_evolution import common_columns, new_columns, value_columns
from spark_sink.formats.quarantine_addresses import SUFFIX
from spark_sink.formats.unknown_policy import COLUMN
from spark_sink.formats.variant_type import arrow_columns
from spark_sink.lake.positions_in_delta_log import existing
from spark_sink.lake.table_addresses import Storage, is_iceberg
from spark_sink.lake.table_contract import DataFile
from spark_sink.lake.table_formats import open_table
from spark_sink.options.option_texts import addresses
from spark_sink.options.source_options import SourceOptions
from spark_sink.ranges.batch_offset import Range
from spark_sink.sink.direct_landing import describe, description, run_of_task
from spark_sink.sink.rows_by_table import Sorting, landed_schema
from spark_sink.sink.sink_options import SinkOptions

_THREADS = 8


@dataclass(frozen=True, slots=True)
class TopicsDecoder:
    """Topics with the same decoder, because their tables have the same columns."""

    topics: frozenset[str]
    decoder: Decoder


def kept_columns(positions: str, storage: Storage | None = None) -> pa.Schema | None:
    """Return the value columns that are equal in all tables of a query.

    Args:
        positions: the option.
        storage: options of the object store.

    Returns:
        None if no table exists, or no table has value columns.

    Raises:
        TableError: a table cannot be read.
    """
    tables = [
        uri
        for one in addresses(positions, "option 'positions'")
        for uri, topic in existing(one, storage)
        if not (topic or "").endswith(SUFFIX)
    ]
    handles: dict[str, DeltaTable] = {}
    with ThreadPoolExecutor(_THREADS) as pool:
        found = pool.map(lambda uri: columns_of_table(uri, storage, handles), tables)
    columns = [value_columns(one) for one in found if one is not None]
    return common_columns([one for one in columns if one is not None])


class TableColumns:
    """The columns of one query's tables, read again for each batch.

    Args:
        source: options of the source, whose tasks land the rows.
        first: the decoder for tables that do not exist yet; they get its columns.
    """

    def __init__(self, source: SourceOptions, first: JsonDecoder) -> None:
        assert source.landing is not None  # noqa: S101 -- the options have been checked
        self._options = SinkOptions.parse(source.landing)
        self._source = source
        self._first = first
        self._handles: dict[str, DeltaTable] = {}

    def decoders(self, topics: Iterable[str], known: Iterable[str]) -> Sequence[TopicsDecoder]:
        """Return the decoders of one batch.

        A missing table is created first. If several agents create it at the same time, one succeeds, and all use its
        columns.

        Args:
            topics: topics of the batch.
            known: topics of the previous batch. If a table of theirs is missing, it was deleted; the sink reports it.

        Raises:
            TableError: a table can neither be read nor created.
        """
        by_table = self._options.routes.by_table(topics)
        before = self._options.routes.by_table(known)
        with ThreadPoolExecutor(_THREADS) as pool:
            found = pool.map(lambda table: self._columns(table, make=table not in before), by_table)
        alike: dict[pa.Schema, set[str]] = {}
        for columns, names in zip(found, by_table.values(), strict=True):
            alike.setdefault(columns, set()).update(names)
        return [TopicsDecoder(frozenset(names), self._first.with_columns(one)) for one, names in alike.items()]

    def _columns(self, address: str, *, make: bool) -> pa.Schema:
        options = self._options
        schema = columns_of_table(address, options.storage, self._handles)
        if schema is None and make:
            rows = landed_schema(self._first, headers=self._source.headers, left_out=self._source.left_out)
            open_table(address, options.group, options.storage, options.table).create(good_schema(rows))
            schema = columns_of_table(address, options.storage, self._handles)
        return (value_columns(schema) if schema else None) or self._first.fields


def land_by_columns(
    batches: Iterable[pa.RecordBatch],
    options: SourceOptions,
    decoders: Sequence[TopicsDecoder],
    ranges: Iterable[Range],
) -> pa.RecordBatch:
    """Decode and write the rows of one task, each topic with its table's columns; return the description of the files.

    Raises:
        TableError: the storage refused.
    """
    assert options.landing is not None  # noqa: S101 -- the options have been checked
    sink, run = SinkOptions.parse(options.landing), run_of_task()
    parts = [_Part(one, sink, run, options) for one in decoders]
    for batch in batches:
        for part in parts:
            part.write(batch if len(parts) == 1 else part.own(batch))
    files = {table: found for part in parts for table, found in part.close().items()}
    columns = {table: part.schema for part in parts for table in sink.routes.by_table(part.topics)}
    wanted = {table: found for part in parts if (found := part.wanted()) for table in sink.routes.by_table(part.topics)}
    return description(describe(files, parts[0].schema, ranges, columns, wanted))


class _Part:
    """The rows of one task with the same decoder."""

    def __init__(self, one: TopicsDecoder, sink: SinkOptions, run: str, options: SourceOptions) -> None:
        self.topics = one.topics
        self.schema = landed_schema(one.decoder, headers=options.headers, left_out=options.left_out)
        self._left_out = options.left_out
        self._decoder = one.decoder
        self._sorting = Sorting(sink, self.schema, run)
        # The records of the first batch with a new field show its type; the next batch has the column.
        # Only JSON shows a type; with a registry, the subject's latest schema does.
        evolves = one.decoder.unknown == "evolve" and isinstance(one.decoder, JsonDecoder) and sink.table.merge_schema
        self._most = options.value.sample if evolves else 0
        self._rescued: list[str] = []

    def own(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        """Return the rows of these topics."""
        return batch.filter(pc.is_in(batch.column("topic"), pa.array(sorted(self.topics), pa.string())))

    def write(self, batch: pa.RecordBatch) -> None:
        """Decode and write some rows."""
        if not batch.num_rows:
            return
        rows = decode_batch(batch, self._decoder)
        self._sorting.write(without_columns(rows, self._left_out))
        if len(self._rescued) < self._most:
            found = rows.column(COLUMN).drop_null().slice(0, self._most - len(self._rescued))
            self._rescued += found.to_pylist()

    def close(self) -> dict[str, list[DataFile]]:
        """Finish the files, and return them by the address of their table."""
        return self._sorting.close()

    def wanted(self) -> pa.Schema:
        """Return columns for fields that the table lacks; empty except with `evolve`."""
        return new_columns(self._rescued, self.schema)


def columns_of_table(uri: str, storage: Storage | None, handles: dict[str, DeltaTable]) -> pa.Schema | None:
    """Return the columns of a table, None if there is none.

    Args:
        uri: address of the table.
        storage: options of the object store.
        handles: of Delta tables that were read before; it gets this one.

    Raises:
        TableError: the table cannot be read.
    """
    if is_iceberg(uri):
        snapshot = open_table(uri, "", storage).refresh()
        return snapshot.schema if snapshot else None
    try:
        if uri in handles:
            handles[uri].update_incremental()
        else:
            handles[uri] = DeltaTable(uri, storage_options=dict(storage or {}) or None)
    except TableNotFoundError:
        handles.pop(uri, None)
        return None
    except (DeltaError, OSError) as error:
        raise TableError(f"{uri}: the table cannot be read: {plain(error)}") from error
    return arrow_columns(handles[uri].schema())
