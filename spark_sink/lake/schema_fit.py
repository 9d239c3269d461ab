"""Checks whether rows fit a Delta table: columns, partitioning, and rules that a writer of files cannot enforce."""

import contextlib
from collections.abc import Iterator, Sequence

import pyarrow as pa
from deltalake import DeltaTable, Schema
from deltalake.schema import ArrayType, MapType, PrimitiveType, StructType, VariantType

from spark_sink.errors import SchemaError
from spark_sink.lake.struct_fields import first_new, lacking_fields
from spark_sink.lake.table_contract import KEYS, DataFile

_DeltaType = ArrayType | MapType | PrimitiveType | StructType | VariantType

_UNENFORCED = ("delta.constraints.", "delta.columnMapping.mode")
_UNENFORCED_OF_COLUMNS = ("delta.generationExpression", "delta.identity.", "delta.invariants")


def fit_schema(name: str, have: pa.Schema, want: pa.Schema) -> list[pa.Field]:
    """Compare the columns of a batch with those of the table, and fields inside structs by their names.

    A file with a column of another type makes the whole table unreadable, so the check is strict.

    Args:
        name: name of the table, for messages.
        have: columns of the table.
        want: columns of the batch.

    Returns:
        What the table lacks: new columns, and columns of the table with only the fields that are new in them.

    Raises:
        SchemaError: a column or a field has another type, or names differ only in case.
    """
    return lacking_fields(name, "", have, want)


def fitting(name: str, have: pa.Schema, want: pa.Schema) -> list[pa.Field]:
    """Return what `fit_schema` returns, without the columns that it refuses."""
    new: list[pa.Field] = []
    for one in want:
        with contextlib.suppress(SchemaError):
            new += fit_schema(name, have, pa.schema([one]))
    return new


def refuse_new(name: str, have: pa.Schema, new: Sequence[pa.Field], way_out: str = "") -> None:
    """Refuse columns and fields that a table lacks, because nothing allows to add them.

    Args:
        name: name of the table.
        have: columns of the table.
        new: from `fit_schema`.
        way_out: what else the user can do, after the option that adds them.

    Raises:
        SchemaError: there is one.
    """
    if not new:
        return
    one = new[0]
    known = have.field(one.name).type if one.name in have.names else None
    path, kind = first_new(one.name, known, one.type)
    what = "column" if known is None else "field"
    raise SchemaError(f"{name}: the table has no {what} {path!r} ({kind}); option mergeSchema=true adds it{way_out}")


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
        SchemaError: there is such a rule.
    """
    refuse_unenforced_columns(uri, handle.schema())
    for name, value in handle.metadata().configuration.items():
        if name.startswith(_UNENFORCED) and value != "none":
            raise SchemaError(
                f"{uri}: the table has the property {name}={value}, which a writer of data files cannot keep; "
                "drop it, or write to another table"
            )


def refuse_unenforced_columns(uri: str, columns: Schema) -> None:
    """Refuse the rules of columns, as `refuse_unenforced`.

    Raises:
        SchemaError: there is such a rule.
    """
    for column in columns.fields:
        if (path := next(_required(column.name, column.type), None)) is not None:
            raise SchemaError(
                f"{uri}: field {path!r} has the rule NOT NULL, which a writer of data files cannot keep; drop it, or "
                "write to another table"
            )
        rules = ["NOT NULL"] if not column.nullable and column.name not in KEYS else []
        rules += [name for name in column.metadata if name.startswith(_UNENFORCED_OF_COLUMNS)]
        if rules:
            raise SchemaError(
                f"{uri}: column {column.name!r} has the rule {rules[0]}, which a writer of data files cannot keep; "
                "drop it, or write to another table"
            )


def _required(path: str, kind: _DeltaType) -> Iterator[str]:
    """Yield the paths inside a column that have no null."""
    inner: list[tuple[str, _DeltaType, bool]] = []
    if isinstance(kind, StructType):
        inner = [(one.name, one.type, one.nullable) for one in kind.fields]
    elif isinstance(kind, ArrayType):
        inner = [("element", kind.element_type, kind.contains_null)]
    elif isinstance(kind, MapType):
        inner = [("key", kind.key_type, True), ("value", kind.value_type, kind.value_contains_null)]
    for name, one, nullable in inner:
        if not nullable:
            yield f"{path}.{name}"
        yield from _required(f"{path}.{name}", one)
