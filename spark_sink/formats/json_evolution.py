"""Columns of JSON values that a table defines: the columns that values can fill, and the fields that it lacks.

A sample differs at each start, but a table does not: agents that take their columns from it decode in the same way.
"""

import json
from collections.abc import Iterable, Sequence
from typing import Any

import pyarrow as pa

from spark_sink.errors import OptionError
from spark_sink.formats.declared_or_inferred_columns import infer_columns
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
    """Return the columns that are equal in all tables; None if there are none."""
    found = [one for one in tables[0] if all(one in other for other in tables)] if tables else []
    return pa.schema(found) if found else None


def new_columns(rescued: Iterable[str], known: pa.Schema) -> pa.Schema:
    """Find columns for fields that a table lacks.

    It leaves out fields inside known columns, fields without a value that shows a type, and names that conflict with
    the table's columns; the column `_rescued` keeps them.

    Args:
        rescued: texts of the column `_rescued`.
        known: the columns of the rows.
    """
    values: dict[str, list[Any]] = {}
    for text in rescued:
        for name, value in json.loads(text).items():
            values.setdefault(name, []).append(value)
    taken = {name.lower() for name in (*known.names, *RESERVED)}
    found: list[pa.Field] = []
    for name in sorted(values):
        if name.lower() in taken or not name or not _UNWRITABLE.isdisjoint(name) or not any(map(_shows, values[name])):
            continue
        if len(taken) >= _MOST_COLUMNS:
            break
        try:
            found += infer_columns(json.dumps({name: one}).encode() for one in values[name])
        except OptionError:  # names inside it differ only in case
            continue
        taken.add(name.lower())
    return pa.schema(found)


def _shows(value: object) -> bool:
    if isinstance(value, dict):
        return any(map(_shows, value.values()))
    if isinstance(value, list):
        return any(map(_shows, value))
    return value is not None


def agreed_columns(found: Iterable[pa.Schema]) -> pa.Schema:
    """Combine the columns of several tasks: for each the type that fits all values, text if there is none."""
    agreed: dict[str, pa.Field] = {}
    spelled: dict[str, str] = {}
    for one in (one for schema in found for one in schema):
        if spelled.setdefault(one.name.lower(), one.name) == one.name:
            agreed[one.name] = _agreed(agreed.get(one.name, one), one)
    return pa.schema(list(agreed.values()))


def _agreed(one: pa.Field, other: pa.Field) -> pa.Field:
    try:
        schemas = [pa.schema([one]), pa.schema([other])]
        return pa.unify_schemas(schemas, promote_options="permissive").field(0)
    except pa.ArrowException:
        return pa.field(one.name, pa.string())
