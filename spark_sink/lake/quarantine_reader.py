"""Reads the records of a table's quarantine in parts, including those that the table names but the quarantine lacks."""

from collections.abc import Iterator, Mapping, Sequence

import pyarrow as pa
from deltalake.exceptions import DeltaError

from spark_sink.errors import TableError, plain
from spark_sink.formats.bad_values_quarantined import SCHEMA
from spark_sink.formats.quarantine_addresses import quarantine_of
from spark_sink.lake.delta_log_reader import TransactionLog
from spark_sink.lake.foreign_parquet import open_parquet
from spark_sink.lake.newest_version import newest_handle
from spark_sink.lake.parquet_landing import storage_errors
from spark_sink.lake.positions_in_delta_log import groups, parse_group, parse_positions
from spark_sink.lake.table_addresses import Storage
from spark_sink.lake.table_contract import DataFile
from spark_sink.lake.table_dataset import all_rows
from spark_sink.lake.table_storage import address_of, filesystem, is_delta_table
from spark_sink.lake.unwritten_quarantine import named_quarantine

_ROWS = 8192  # rows of one part, because values may be large


def quarantine_records(
    uri: str, log: TransactionLog, storage: Storage | None = None, columns: Sequence[str] = SCHEMA.names
) -> Iterator[pa.RecordBatch]:
    """Read all records that were ever quarantined.

    A commit of the table names its bad records, and the quarantine adds them in a separate commit. If a writer died
    between the two, the named files are also read.

    Args:
        uri: address of the table.
        log: log of the table; commits after its last read version are left out.
        storage: options of the object store.
        columns: columns of the quarantine.

    Raises:
        TableError: the quarantine cannot be read.
    """
    address = quarantine_of(uri)
    wanted = pa.schema([SCHEMA.field(name) for name in columns])
    try:
        held: Mapping[str, int] = {}
        if is_delta_table(address, storage):
            handle = newest_handle(address, storage)
            held = TransactionLog(address, storage).refresh(handle.version())
            for batch in all_rows(handle, columns, batch_size=_ROWS):
                yield batch.cast(wanted)
        for file in _named(log, held):
            yield from file_records(address, file, storage, wanted)
    except (DeltaError, OSError, pa.ArrowException) as error:
        raise TableError(f"{address}: the quarantine cannot be read: {plain(error)}") from error


def _named(log: TransactionLog, held: Mapping[str, int]) -> Iterator[DataFile]:
    for group in groups(log.transactions):
        asked = parse_group(log.transactions, group).quarantined
        for one in named_quarantine(log, group, asked, parse_positions(held, group)):
            yield from one.files


def file_records(
    address: str, file: DataFile, storage: Storage | None, wanted: pa.Schema = SCHEMA
) -> Iterator[pa.RecordBatch]:
    """Read some columns of one file of a quarantine.

    Args:
        address: of the quarantine.
        file: in the quarantine's folder; it need not be in the table.
        storage: options of the object store.
        wanted: the columns.

    Raises:
        TableError: the file cannot be read.
    """
    files = filesystem(address, storage)
    with storage_errors(address_of(files, file.path)), files.open_input_file(file.path) as stream:
        for batch in open_parquet(stream).iter_batches(batch_size=_ROWS, columns=wanted.names):
            yield batch.select(wanted.names).cast(wanted)
