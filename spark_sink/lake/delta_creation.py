"""Creates Delta tables: empty, or with files and positions in the same commit."""

import json

import pyarrow as pa
from deltalake import CommitProperties, DeltaTable, Schema
from deltalake.exceptions import DeltaError
from deltalake.transaction import create_table_with_add_actions

from spark_sink.errors import SchemaError
from spark_sink.formats.variant_type import arrow_columns, delta_field
from spark_sink.lake.delta_commit_parts import CommitParts
from spark_sink.lake.delta_log_files import lines_of, log_errors, read_commit
from spark_sink.lake.delta_transaction import metadata_of
from spark_sink.lake.file_statistics import bounded_columns
from spark_sink.lake.parquet_landing import check_partition_columns, normal_schema
from spark_sink.lake.schema_fit import fit_schema, refuse_unenforced_columns
from spark_sink.lake.table_addresses import Storage
from spark_sink.lake.table_settings import TableSettings
from spark_sink.lake.table_storage import filesystem

# Opening a table reads a checkpoint and all commits after it; writing a checkpoint costs time per file of the table.
PROPERTIES = {"delta.checkpointInterval": "50"}
# With the default retries a late creator would commit a second protocol and table id as version 1.
_RETRIES = 0


def create_empty(uri: str, schema: pa.Schema, settings: TableSettings, storage: Storage) -> DeltaTable:
    """Create a table without rows, and return its handle.

    Raises:
        SchemaError: Delta cannot have a column, or the table cannot be partitioned by one.
        DeltaError, OSError, ValueError: the storage refused, a property is invalid, or the table exists.
    """
    return DeltaTable.create(
        uri,
        schema=_columns(schema, settings),
        partition_by=list(settings.layout.partition_columns) or None,
        configuration=_configuration(schema, settings),
        storage_options=dict(storage) or None,
        commit_properties=CommitProperties(max_commit_retries=_RETRIES),
    )


def is_plain(schema: pa.Schema, settings: TableSettings) -> bool:
    """Return whether a new table takes its first rows without a check: `create_with` makes none.

    A table with properties of its own does not: with some, delta-rs or the sink writes no rows to it.
    """
    if settings.properties:
        return False
    try:
        columns = _columns(schema, settings)
        refuse_unenforced_columns("", columns)
        return not fit_schema("", normal_schema(arrow_columns(columns)), schema)
    except (SchemaError, DeltaError):  # two columns with one name
        return False


def create_with(parts: CommitParts, uri: str, schema: pa.Schema, settings: TableSettings, storage: Storage) -> None:
    """Create a table whose first version has these files, transactions and note.

    Raises:
        SchemaError, DeltaError, OSError, ValueError: as `create_empty`.
    """
    create_table_with_add_actions(
        uri,
        _columns(schema, settings),
        list(parts.files),
        "error",
        list(settings.layout.partition_columns),
        configuration=_configuration(schema, settings),
        storage_options=dict(storage) or None,
        commit_properties=CommitProperties(
            app_transactions=list(parts.transactions),
            custom_metadata=metadata_of(parts.transactions, parts.note),
            max_commit_retries=_RETRIES,
        ),
    )


def created_id(uri: str, storage: Storage) -> str:
    """Return the id of a table that has just been created, without opening it.

    Raises:
        TableError: its first commit is not there, or cannot be read.
    """
    with log_errors(uri):
        text = read_commit(filesystem(uri, storage), 0) or ""
        (line,) = (one for one in lines_of(text) if one.startswith('{"metaData"'))
        return str(json.loads(line)["metaData"]["id"])


def _columns(schema: pa.Schema, settings: TableSettings) -> Schema:
    # delta-rs commits a table with other partition columns, and cannot open it then.
    check_partition_columns(schema, settings.layout.partition_columns)
    return Schema([delta_field(one) for one in schema])


def _configuration(schema: pa.Schema, settings: TableSettings) -> dict[str, str | None]:
    # Statistics columns are set explicitly: delta-rs' datasets assume that no filter matches a column without bounds.
    bounded = ",".join(bounded_columns(schema, list(settings.layout.partition_columns)))
    return {**PROPERTIES, "delta.dataSkippingStatsColumns": bounded, **settings.properties}
