"""Python values into Arrow columns of a given type; what does not fit is told by row."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import pyarrow as pa

from spark_sink.formats.decoder import Bad

_NULL = type(None)
_ERRORS = (pa.ArrowException, TypeError, ValueError, OverflowError)


def columns_of(
    rows: Sequence[Mapping[str, Any] | None], schema: pa.Schema, *, json: bool = False
) -> tuple[list[pa.Array], dict[int, Bad]]:
    """Make columns of rows.

    Args:
        rows: N mappings by column name; None makes a row of nulls; names that the schema lacks are passed over.
        schema: of the columns.
        json: the values were JSON: numbers may not lose digits, and times and dates stand as text.

    Returns:
        The columns, and by row what did not fit; such a row is null in every column.
    """
    bad: dict[int, Bad] = {}
    columns = [_column(rows, field, bad, json=json) for field in schema]
    if bad:
        # A bad row is null as a whole: half a record is worth nothing.
        kept = [None if number in bad else row for number, row in enumerate(rows)]
        columns = [_column(kept, field, {}, json=json) for field in schema]
    return columns, bad


def _column(rows: Sequence[Mapping[str, Any] | None], field: pa.Field, bad: dict[int, Bad], *, json: bool) -> pa.Array:
    name = field.name
    values = [None if row is None else row.get(name) for row in rows]
    make = _json_array if json else pa.array
    try:
        return make(values, field.type)
    except _ERRORS:
        pass
    for number, value in enumerate(values):
        try:
            make([value], field.type)
        except _ERRORS as error:
            text = f"column {name!r}: {str(value)[:100]!r} is no {field.type} ({error})"
            bad.setdefault(number, Bad("WrongType", text))
            values[number] = None
    return make(values, field.type)


def _json_array(values: list[Any], kind: pa.DataType) -> pa.Array:
    """Make an array as strictly as JSON's types allow: Arrow itself would make 1 of 1.5 and a day of 5."""
    kinds = set(map(type, values)) - {_NULL}
    if not kinds <= _allowed(kind):
        raise TypeError(f"JSON has {sorted(one.__name__ for one in kinds)} here")
    if pa.types.is_timestamp(kind) or pa.types.is_date(kind) or (pa.types.is_decimal(kind) and str in kinds):
        return pa.array(values, pa.string()).cast(kind)
    if pa.types.is_struct(kind):
        # Field by field, so that each is checked as strictly.
        mask = pa.array([value is None for value in values], pa.bool_())
        fields = [_json_array([(value or {}).get(one.name) for value in values], one.type) for one in kind]
        return pa.StructArray.from_arrays(fields, fields=list(kind), mask=mask)
    if pa.types.is_list(kind):
        flat = _json_array([one for value in values for one in value or ()], kind.value_type)
        offsets, at = [0], 0
        for value in values:
            at += len(value or ())
            offsets.append(at)
        mask = pa.array([value is None for value in values], pa.bool_())
        return pa.ListArray.from_arrays(pa.array(offsets, pa.int32()), flat, type=kind, mask=mask)
    return pa.array(values, kind)


_ALLOWED: tuple[tuple[Callable[[pa.DataType], bool], set[type]], ...] = (
    (pa.types.is_boolean, {bool}),
    (pa.types.is_integer, {int}),
    (pa.types.is_floating, {int, float}),
    (pa.types.is_decimal, {int, str}),
    (pa.types.is_struct, {dict}),
    (pa.types.is_list, {list}),
)


def _allowed(kind: pa.DataType) -> set[type]:
    """The Python types that JSON values of a column may have."""
    return next((kinds for check, kinds in _ALLOWED if check(kind)), {str})
