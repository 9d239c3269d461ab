"""Checks whether rows fit a Delta table: columns, partitioning, and rules that a writer of files cannot enforce."""

from collections.abc import Sequence

import pyarrow as pa
from deltalake import DeltaTable

from spark_sink.errors import SchemaError, TableError
from spark_sink.lake.table_contract import KEYS, DataFile

_UNENFORCED = ("delta.constraints.", "delta.columnMapping.mode")
_UNENFORCED_OF_COLUMNS = ("delta.generationExpression", "delta.identity.", "delta.invariants")


def fit_schema(name: str, have: pa.Schema, want: pa.Schema) -> list[pa.Field]:
    """Compare the columns of a batch with those of the table.

    A file with a column of another type makes the whole table unreadable, so the check is strict.

    Args:
        name: name of the table, for messages.
        have: columns of the table.
        want: columns of the batch.

    Returns:
        Columns that the table lacks.

    Raises:
        SchemaError: a column has another type, or names differ only in case.
    """
    cased = {one.lower(): one for one in have.names}
    for one in want:
        known = cased.get(one.name.lower())
        if known is None:
            continue
        if known != one.name:
            raise SchemaError(f"{name}: column {one.name!r} is called {known!r} in the table")
        if have.field(known).type != one.type:
            raise SchemaError(
                f"{name}: column {one.name!r} is {have.field(known).type} in the table and {one.type} in the query; "
                "cast it in the query, or write to another table"
            )
    return [one for one in want if one.name.lower() not in cased]


def refuse_other_partitioning(uri: str, columns: Sequence[str], files: Sequence[DataFile]) -> None:
    """Refuse files with partition columns other than the table's.

    Readers take a partition column from the log, not from the file: without a value in the log, it is null.

    Raises:
        SchemaError: the columns differ.
    """
    for file in files:
        if set(file.partition_values) != set(columns):
            raise SchemaError(
                f"{uri}: the table is partitioned by {', '.join(columns) or 'nothing'}, the query's files by "
                f"{', '.join(file.partition_values) or 'nothing'}; set partitionBy to the table's columns, or write "
                "to another table"
            )


def refuse_unenforced(uri: str, handle: DeltaTable) -> None:
    """Refuse a table with rules that only an engine can enforce, row by row.

    Raises:
        TableError: there is such a rule.
    """
    for column in handle.schema().fields:
        rules = ["NOT NULL"] if not column.nullable and column.name not in KEYS else []
        rules += [name for name in column.metadata if name.startswith(_UNENFORCED_OF_COLUMNS)]
        if rules:
            raise TableError(
                f"{uri}: column {column.name!r} has the rule {rules[0]}, which a writer of data files cannot keep; "
                "drop it, or write to another table"
            )
    for name, value in handle.metadata().configuration.items():
        if name.startswith(_UNENFORCED) and value != "none":
            raise TableError(
                f"{uri}: the table has the property {name}={value}, which a writer of data files cannot keep; "
                "drop it, or write to another table"
            )
