"""Converts Python values into Arrow columns of a given type. A value that does not fit makes only its own row bad."""

from collections.abc import Callable, Mapping, Sequence
from operator import itemgetter
from typing import Any

import pyarrow as pa

from spark_sink.formats.decoder import Bad, without_rows

Row = Mapping[str, Any]
# Creates an array of values; raises one of UNFIT if a value does not fit.
MakeArray = Callable[[Sequence[Any], pa.DataType], pa.Array]

UNFIT = (pa.ArrowException, TypeError, ValueError, ArithmeticError, LookupError, AttributeError, RecursionError)
_EMPTY: Row = {}
_SPELLED = {pa.int8(): "byte", pa.int16(): "short", pa.int32(): "int", pa.int64(): "bigint", pa.bool_(): "boolean"}


def columns_of(rows: Sequence[Row | None], schema: pa.Schema, make: MakeArray) -> tuple[list[pa.Array], dict[int, Bad]]:
    """Convert rows into columns.

    Args:
        rows: N mappings by column name; None gives a row of nulls; names that the schema lacks are ignored.
        schema: schema of the columns.
        make: creates the array of one column.

    Returns:
        The columns, and by row number the reason why a row does not fit; such a row is null in every column.
    """
    bad: dict[int, Bad] = {}
    cells = cells_of(rows, schema.names)
    columns = [_column(values, field, bad, make) for values, field in zip(cells, schema, strict=True)]
    return (without_rows(columns, bad) if bad else columns), bad


def cells_of(rows: Sequence[Row | None], names: Sequence[str]) -> list[Sequence[Any]]:
    """Return the values of each name, in the order of the rows; None if a row lacks it."""
    if len(names) > 1:
        # If every row has every name, there is no Python step per value.
        try:
            return list(zip(*map(itemgetter(*names), rows), strict=True)) or [()] * len(names)  # type: ignore[arg-type]  # a None raises TypeError, which is expected
        except (KeyError, TypeError):
            pass
    rows = [row or _EMPTY for row in rows]
    return [[row.get(name) for row in rows] for name in names]  # type: ignore[union-attr]  # no None is left


def _column(values: Sequence[Any], field: pa.Field, bad: dict[int, Bad], make: MakeArray) -> pa.Array:
    try:
        return make(values, field.type)
    except UNFIT:
        pass
    arrays = []
    for number, value in enumerate(values):
        try:
            arrays.append(make([value], field.type))
        except UNFIT as error:
            kind = _SPELLED.get(field.type, field.type)
            text = f"column {field.name!r}: {str(value)[:100]!r} does not fit its type {kind}: {error}"
            bad.setdefault(number, Bad("WrongType", text))
            arrays.append(pa.nulls(1, field.type))
    # Values that fit one by one form a column, even if they do not fit in one call.
    return pa.concat_arrays(arrays)
