"""Opens a table of either format by its address: `iceberg://catalog.namespace.table` is Iceberg, all else is Delta."""

import pyarrow as pa

from spark_sink.lake.delta_table import DeltaLakeTable
from spark_sink.lake.iceberg.iceberg_table import IcebergTable
from spark_sink.lake.parquet_landing import Landing, storage_errors
from spark_sink.lake.table_addresses import Storage, is_iceberg
from spark_sink.lake.table_settings import TableSettings
from spark_sink.lake.table_storage import filesystem

LakeTable = DeltaLakeTable | IcebergTable


def open_table(
    address: str, group: str, storage: Storage | None = None, settings: TableSettings | None = None
) -> LakeTable:
    """Return a handle on a table for one consumer group; the table need not exist."""
    if is_iceberg(address):
        return IcebergTable(address, group, storage, settings)
    return DeltaLakeTable(address, group, storage, settings)


def open_landing(address: str, storage: Storage | None, schema: pa.Schema, settings: TableSettings) -> Landing:
    """Return the writer of rows for a table, for one task or one batch.

    The files of an Iceberg table have its field ids, so a missing table is created first.

    Raises:
        SchemaError: the columns do not fit an Iceberg table.
        TableError: the table cannot be read or created.
    """
    if is_iceberg(address):
        return IcebergTable(address, "", storage, settings).landing(schema)
    with storage_errors(address):
        files = filesystem(address, storage, make=True)
    return Landing(files, schema, settings.layout)
