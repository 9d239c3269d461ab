"""Adds columns and fields inside structs to an Iceberg table, but those that would have the full name of another field.

Iceberg finds a field by its full name: `a.b` is the field `b` of the struct `a`, and also a column with a dot in its
name. Spark compares these names without case. A schema with such a pair is not valid, and no engine reads it.
"""

import logging
from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING

import pyarrow as pa

from spark_sink.errors import SchemaError, TableError, plain_with_class
from spark_sink.lake.iceberg.clock_order import behind_s
from spark_sink.lake.iceberg.columns import arrow_columns, numbered, refuse_foreign_types
from spark_sink.lake.schema_fit import fit_schema, fitting

if TYPE_CHECKING:
    from pyiceberg.table import Table

_ATTEMPTS = 5
_NONE = pa.schema([])
_log = logging.getLogger("azimuth.sink")


def add_columns(name: str, look: "Callable[[], Table | None]", columns: pa.Schema, *, needed: bool) -> None:
    """Add columns and fields that the table lacks; no error if other writers were faster each time.

    Args:
        name: of the table, in messages.
        look: reads the newest version of the table.
        columns: the columns.
        needed: raise if a column cannot be added; otherwise this is only logged.

    Raises:
        SchemaError: Iceberg does not have the type of a column, or a column is needed and has the full name of another
            field.
        TableError: the table cannot be read, or columns are needed and the catalog refused.
    """
    from pyiceberg.exceptions import CommitFailedException

    refuse_foreign_types(name, columns)
    for _ in range(_ATTEMPTS):
        table = look()
        if table is None:
            return
        have = arrow_columns(table.schema())
        lacking = (fit_schema if needed else fitting)(name, have, columns)
        partitions = [one.name for spec in table.specs().values() for one in spec.fields]
        new = _distinct(lacking, [*table.schema().column_names, *partitions], have)
        if needed:
            _refuse_others(name, lacking, new)
        if not new:
            return
        try:
            _refuse_late(table)
            with table.update_schema() as update:
                update.union_by_name(pa.schema(new))
        except CommitFailedException:
            continue
        except Exception as error:  # each catalog has its own errors
            said = f"{name}: columns were not added: {plain_with_class(error)}"
            if needed:
                raise TableError(said) from error
            _log.info("%s; left to the next batch", said)
        return


def _refuse_late(table: "Table") -> None:
    if late_s := behind_s(table.metadata):
        raise TableError(f"this clock is {late_s:.0f} s behind the table's last change: set the clocks of all writers")


def refuse_ambiguous(name: str, columns: pa.Schema) -> None:
    """Refuse columns of a new table of which two fields have the same full name.

    Raises:
        SchemaError: there are such columns.
    """
    _refuse_others(name, list(columns), _distinct(columns, ()))


def _distinct(columns: Iterable[pa.Field], names: Iterable[str], have: pa.Schema = _NONE) -> list[pa.Field]:
    """Return the columns whose fields, nested ones included, have unique full names.

    Args:
        columns: new ones, and columns of the table with only their new fields.
        names: full names that are in use.
        have: columns of the table.
    """
    taken = {one.lower() for one in names}
    found = []
    for one in columns:
        known = have.field(one.name) if one.name in have.names else None
        whole = pa.schema([one]) if known is None else pa.unify_schemas([pa.schema([known]), pa.schema([one])])
        try:
            own = numbered(whole).column_names
            before = () if known is None else numbered(pa.schema([known])).column_names
        except ValueError:  # two fields in it have one full name
            continue
        lower = {name.lower() for name in own}
        new = lower - {name.lower() for name in before}
        if len(lower) == len(own) and taken.isdisjoint(new):
            found.append(one)
            taken |= new
    return found


def _refuse_others(name: str, wanted: Sequence[pa.Field], distinct: Sequence[pa.Field]) -> None:
    for one in wanted:
        if one not in distinct:
            raise SchemaError(
                f"{name}: column {one.name!r} or a field in it has the full name of another field of the table, as in "
                "a.b for the field b of a, or the name of a partition; rename it, or leave it out of the columns"
            )
