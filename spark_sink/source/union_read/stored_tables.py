"""Tables of either format, each at one version: its rows and its positions belong together."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Protocol

import pyarrow as pa
from deltalake import DeltaTable
from deltalake.exceptions import DeltaError

from spark_sink.errors import TableError, plain
from spark_sink.formats.variant_type import arrow_columns
from spark_sink.lake.delta_log_reader import TransactionLog
from spark_sink.lake.iceberg.catalogs import iceberg_address
from spark_sink.lake.iceberg.columns import arrow_columns as iceberg_columns
from spark_sink.lake.iceberg.stored_rows import open_to_read_later
from spark_sink.lake.matching_tables import has_placeholder, matching_tables
from spark_sink.lake.parquet_landing import normal_schema
from spark_sink.lake.positions_in_delta_log import groups, parse_group
from spark_sink.lake.restore_refusal import refuse_restored
from spark_sink.lake.table_addresses import Storage, full_address, is_iceberg, table_uri
from spark_sink.lake.table_dataset import all_rows, table_dataset
from spark_sink.lake.table_storage import is_delta_table, no_delta_table, no_iceberg_table
from spark_sink.lake.vacuumed_files import with_way_out
from spark_sink.ranges.batch_offset import TopicPartition

if TYPE_CHECKING:
    import pyarrow.dataset as pa_dataset


class Rows(Protocol):
    """Reads the rows of one version; each call begins again."""

    def __call__(self, columns: Sequence[str]) -> Iterator[pa.RecordBatch]:
        """Yield columns of all rows."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class StoredTable:
    """A table at one version.

    Attributes:
        name: in messages.
        schema: its columns.
        rows: reads its rows.
        dataset: the same rows, for engines that push filters down; None for Iceberg.
        positions: the next offset of each partition, of all groups; no two groups write the same partition.
        beginnings: the first offset of each partition, if a writer stored it.
        identities: the topic id of each name, as a number, if a writer stored it.
    """

    name: str
    schema: pa.Schema
    rows: Rows
    positions: Mapping[TopicPartition, int]
    beginnings: Mapping[TopicPartition, int] = field(default_factory=dict)
    identities: Mapping[str, int] = field(default_factory=dict)
    dataset: "Callable[[], pa_dataset.Dataset] | None" = None


def open_tables(address: str, storage: Storage) -> list[StoredTable]:
    """Open the tables of an address.

    Args:
        address: as for the sink; `{topic}` in it names the table of each topic. An Iceberg table is
            `catalog.namespace.table` with options of its catalog.
        storage: options of the object store, and of the catalog with `catalog.` before their names.

    Returns:
        Sorted by address; empty if `{topic}` is in the address and no table is there yet.

    Raises:
        OptionError: no store has the scheme of the address.
        TableError: there is no table, or one cannot be read or was restored and not rewound.
    """
    address = full_address(address, storage)
    opened = _iceberg if is_iceberg(address) else _delta
    if not has_placeholder(address):
        return [opened(address, storage)]
    try:
        found = matching_tables(address, storage)
    except TableError as error:
        if "table matches" in str(error):
            return []
        raise
    return [opened(one, storage) for one in found]


def _delta(address: str, storage: Storage) -> StoredTable:
    uri, options = table_uri(address), dict(storage) or None
    try:
        if not is_delta_table(uri, storage):
            raise TableError(no_delta_table(uri))
        handle = DeltaTable(uri, storage_options=options)
        schema = normal_schema(arrow_columns(handle.schema()))
    except (DeltaError, OSError) as error:
        raise TableError(f"{uri}: the table cannot be read: {plain(error)}") from error
    log = TransactionLog(uri, storage)
    kept = log.refresh(handle.version())
    positions: dict[TopicPartition, int] = {}
    beginnings: dict[TopicPartition, int] = {}
    identities: dict[str, int] = {}
    for group in groups(kept):
        refuse_restored(uri, log, group)
        own = parse_group(kept, group)
        positions |= own.positions
        beginnings |= own.beginnings
        identities |= own.identities

    def rows(columns: Sequence[str]) -> Iterator[pa.RecordBatch]:
        with _errors_of_rows(uri):
            yield from all_rows(handle, columns)

    def dataset() -> "pa_dataset.Dataset":
        with _errors_of_rows(uri):
            return table_dataset(handle)

    return StoredTable(
        name=uri,
        schema=schema,
        rows=rows,
        positions=positions,
        beginnings=beginnings,
        identities=identities,
        dataset=dataset,
    )


@contextmanager
def _errors_of_rows(uri: str) -> Iterator[None]:
    try:
        yield
    except (DeltaError, OSError, pa.ArrowException) as error:
        raise TableError(f"{uri}: the rows cannot be read: {with_way_out(plain(error))}") from error


def _iceberg(address: str, storage: Storage) -> StoredTable:
    found = open_to_read_later(iceberg_address(address), storage)
    if found is None:
        raise TableError(no_iceberg_table(address))
    positions: dict[TopicPartition, int] = {}
    beginnings: dict[TopicPartition, int] = {}
    identities: dict[str, int] = {}
    for state in found.state.groups.values():
        positions |= state.positions
        beginnings |= state.beginnings
        identities |= state.identities
    return StoredTable(
        name=found.name,
        schema=iceberg_columns(found.table.schema()),
        rows=found.rows,
        positions=positions,
        beginnings=beginnings,
        identities=identities,
    )
