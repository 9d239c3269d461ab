"""Columns of JSON values that a table defines: the columns that values can fill, and the fields that it lacks.

A sample differs at each start, but a table does not: agents that take their columns from it decode in the same way.
"""

import json
from collections.abc import Collection, Iterable, Sequence
from typing import Any

import pyarrow as pa

from spark_sink.errors import OptionError
from spark_sink.formats.declared_or_inferred_columns import MOST_LEVELS, infer_columns
from spark_sink.formats.decoder import RESERVED

# Parquet and Spark refuse these characters in the names of columns.
_UNWRITABLE = frozenset(" ,;{}()\n\t=")
_MOST_COLUMNS = 1_000  # objects used as maps have any number of fields

_FILLED = (
    pa.types.is_string,
    pa.types.is_boolean,
    pa.types.is_signed_integer,
    pa.types.is_floating,
    pa.types.is_decimal,
    pa.types.is_date,
    pa.types.is_timestamp,
)


def value_columns(table: pa.Schema) -> pa.Schema | None:
    """Return the columns of a table that JSON values can fill; None if it has none, like a table of raw bytes."""
    found = [one for one in table if one.name not in RESERVED and _filled(one.type)]
    return pa.schema(found) if found else None


def _filled(kind: pa.DataType) -> bool:
    if pa.types.is_struct(kind):
        return all(one.nullable and _filled(one.type) for one in kind)
    if pa.types.is_list(kind):
        return kind.value_field.nullable and _filled(kind.value_type)
    return any(check(kind) for check in _FILLED)


def common_columns(tables: Sequence[pa.Schema]) -> pa.Schema | None:
    """Return the columns that are equal in all tables, of structs the fields that are; None if there are none."""
    found = _common_fields(list(tables[0]), [list(one) for one in tables[1:]]) if tables else []
    return pa.schema(found) if found else None


def _common_fields(first: Iterable[pa.Field], others: Sequence[Iterable[pa.Field]]) -> list[pa.Field]:
    found = []
    known = [{field.name: field for field in one} for one in others]
    for one in first:
        if all(one.name in other for other in known):
            kind = _common_type(one.type, [other[one.name].type for other in known])
            if kind is not None:
                found.append(one.with_type(kind))
    return found


def _common_type(first: pa.DataType, others: Sequence[pa.DataType]) -> pa.DataType | None:
    if pa.types.is_struct(first) and all(pa.types.is_struct(one) for one in others):
        fields = _common_fields(list(first), [list(one) for one in others])
        return pa.struct(fields) if fields else None
    if pa.types.is_list(first) and all(pa.types.is_list(one) for one in others):
        inner = _common_type(first.value_type, [one.value_type for one in others])
        return None if inner is None else pa.list_(first.value_field.with_type(inner))
    return first if all(one == first for one in others) else None


def new_columns(rescued: Iterable[str], known: pa.Schema) -> pa.Schema:
    """Find columns for fields that a table lacks.

    It leaves out fields without a value that shows a type, and names that conflict with those of the table; the column
    `_rescued` keeps them.

    Args:
        rescued: texts of the column `_rescued`.
        known: the columns of the rows.

    Returns:
        New columns, and known columns with only the fields that are new in them.
    """
    return pa.schema(_new_fields(list(known), map(json.loads, rescued), MOST_LEVELS, RESERVED))


def _new_fields(
    known: Sequence[pa.Field], objects: Iterable[dict[str, Any]], levels: int, reserved: Collection[str] = ()
) -> list[pa.Field]:
    values: dict[str, list[Any]] = {}
    for one in objects:
        for name, value in one.items():
            values.setdefault(name, []).append(value)
    kinds = {one.name: one.type for one in known if one.name not in reserved}
    taken = {name.lower() for name in (*(one.name for one in known), *reserved)}
    found: list[pa.Field] = []
    for name in sorted(values):
        if name in kinds:
            if (part := _new_inside(kinds[name], values[name], levels)) is not None:
                found.append(pa.field(name, part))
            continue
        if name.lower() in taken or not name or not _UNWRITABLE.isdisjoint(name) or not any(map(_shows, values[name])):
            continue
        if len(taken) >= _MOST_COLUMNS:
            continue
        try:
            found += infer_columns((json.dumps({name: one}).encode() for one in values[name]), levels=levels)
        except OptionError:  # names inside it differ only in case
            continue
        taken.add(name.lower())
    return found


def _new_inside(kind: pa.DataType, values: Iterable[Any], levels: int) -> pa.DataType | None:
    """Return a struct, or a list of structs, with only its new fields; None if there are none."""
    if pa.types.is_struct(kind):
        fields = _new_fields(list(kind), [one for one in values if isinstance(one, dict)], levels - 1)
        return pa.struct(fields) if fields else None
    if pa.types.is_list(kind):
        items = [each for one in values if isinstance(one, list) for each in one]
        part = _new_inside(kind.value_type, items, levels - 1)
        return None if part is None else pa.list_(part)
    return None


def _shows(value: object) -> bool:
    if isinstance(value, dict):
        return any(map(_shows, value.values()))
    if isinstance(value, list):
        return any(map(_shows, value))
    return value is not None


def agreed_columns(found: Iterable[pa.Schema]) -> pa.Schema:
    """Combine the columns of several tasks: for each the type that fits all values, text if there is none."""
    return pa.schema(_agreed_fields(one for schema in found for one in schema))


def _agreed_fields(found: Iterable[pa.Field]) -> list[pa.Field]:
    agreed: dict[str, pa.Field] = {}
    spelled: dict[str, str] = {}
    for one in found:
        if spelled.setdefault(one.name.lower(), one.name) == one.name:
            agreed[one.name] = pa.field(one.name, _agreed(agreed.get(one.name, one).type, one.type))
    return list(agreed.values())


def _agreed(one: pa.DataType, other: pa.DataType) -> pa.DataType:
    if pa.types.is_struct(one) and pa.types.is_struct(other):
        return pa.struct(_agreed_fields([*one, *other]))
    if pa.types.is_list(one) and pa.types.is_list(other):
        return pa.list_(_agreed(one.value_type, other.value_type))
    try:
        schemas = [pa.schema([("x", one)]), pa.schema([("x", other)])]
        return pa.unify_schemas(schemas, promote_options="permissive").field(0).type
    except pa.ArrowException:
        return pa.string()
