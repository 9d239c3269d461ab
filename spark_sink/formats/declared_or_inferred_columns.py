"""Columns of JSON values: from an option, or inferred from a sample of records."""

import contextlib
import json
import re
from collections.abc import Collection, Iterable
from typing import Any

import pyarrow as pa

from spark_sink.errors import OptionError
from spark_sink.formats.json_decoder import parse

_SIMPLE = {
    "string": pa.string(),
    "boolean": pa.bool_(),
    "byte": pa.int8(),
    "short": pa.int16(),
    "integer": pa.int32(),
    "int": pa.int32(),
    "long": pa.int64(),
    "bigint": pa.int64(),
    "float": pa.float32(),
    "double": pa.float64(),
    "date": pa.date32(),
    "timestamp": pa.timestamp("us", tz="UTC"),
}
# delta-rs writes a schema of more than 41 structs in each other into a table's log, and cannot read it.
MOST_LEVELS = 32
_DECIMAL = re.compile(r"decimal\((\d+)(?:,\s*(\d+))?\)", re.ASCII)


def given_columns(text: str) -> pa.Schema:
    """Read a schema from an option.

    Args:
        text: JSON: `{"name": type, ...}` with Spark's names of types, `[type]` for arrays and `{...}` for structs; or
            the result of `StructType.json()`.

    Raises:
        OptionError: it is neither.
    """
    try:
        value = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise OptionError(
            f"option 'valueSchema': {text!r} is neither 'variant' nor JSON such as {{\"id\": \"bigint\"}} ({error}); "
            "StructType.fromDDL(...).json() makes it of Spark's DDL"
        ) from error
    if not isinstance(value, dict) or not value:
        raise OptionError(f'option \'valueSchema\': {text!r}, need {{"name": "type"}}')
    spark = value.get("type") == "struct" and isinstance(value.get("fields"), list)
    return pa.schema(list(_spark_type(value) if spark else _type(value)))


def _type(kind: object) -> pa.DataType:
    if isinstance(kind, list) and len(kind) == 1:
        return pa.list_(_type(kind[0]))
    if isinstance(kind, dict):
        return _struct([pa.field(name, _type(inner)) for name, inner in kind.items()])
    return _simple(kind)


def _spark_type(kind: object) -> pa.DataType:
    match kind:
        case {"type": "array", "elementType": inner}:
            return pa.list_(_spark_type(inner))
        case {"type": "struct", "fields": [*fields]}:
            return _struct([_spark_field(one) for one in fields])
        case _:
            return _simple(kind)


def _spark_field(one: object) -> pa.Field:
    match one:
        case {"name": str(name), "type": kind}:
            return pa.field(name, _spark_type(kind))
        case _:
            raise OptionError(f"option 'valueSchema': {one!r} is not a field, need 'name' and 'type'")


def _struct(fields: list[pa.Field]) -> pa.DataType:
    if not fields:
        raise OptionError(
            "option 'valueSchema': a struct has no fields, and no table can hold it: give it one, or 'string'"
        )
    return pa.struct(fields)


def _simple(kind: object) -> pa.DataType:
    text = str(kind)
    if text in _SIMPLE:
        return _SIMPLE[text]
    if found := _DECIMAL.fullmatch(text):
        with contextlib.suppress(ValueError):  # an invalid precision
            return pa.decimal128(int(found[1]), int(found[2] or 0))
    raise OptionError(
        f"option 'valueSchema': type {text!r} is not known; known are decimal(p,s), p up to 38, and {sorted(_SIMPLE)}"
    )


def infer_columns(
    values: Iterable[bytes | None], skipped: Collection[str] = (), levels: int = MOST_LEVELS
) -> pa.Schema:
    """Infer the columns of a sample: for each member the type that fits every value, text if there is none.

    Args:
        values: records; values other than JSON objects are ignored.
        skipped: members without a column.
        levels: of objects and arrays in a column; deeper ones become text.

    Raises:
        OptionError: there is no object among them, or names of members differ only in case.
    """
    seen: list[dict[str, Any]] = [found for one in values if (found := parse(one, 0, {}))]
    if not seen:
        raise OptionError("no JSON object was found to infer a schema from: give it with the option 'valueSchema'")
    fields = _members(seen, "", levels)
    if not (fields := [one for one in fields if one.name not in skipped]):
        raise OptionError(
            f"the JSON objects have no members but {sorted(skipped)}: give 'valueSchema', or 'variant' there"
        )
    return pa.schema(fields)


def _members(objects: Iterable[dict[str, Any]], path: str, levels: int) -> list[pa.Field]:
    values: dict[str, list[Any]] = {}
    for one in objects:
        for name, inner in one.items():
            values.setdefault(name, []).append(inner)
    spelled: dict[str, str] = {}
    for name in sorted(values):
        if (other := spelled.setdefault(name.lower(), name)) != name:
            raise OptionError(
                f"members {path + other!r} and {path + name!r} differ in case only, and a table's columns may not: say "
                "with the option 'valueSchema' which to take"
            )
    return [pa.field(name, _common(found, f"{path}{name}.", levels)) for name, found in sorted(values.items())]


def _common(values: list[Any], path: str, levels: int) -> pa.DataType:
    """Return the type that fits all values; text if there is none, or if no value shows a type: `[]`, `{}`, null."""
    found = [one for one in values if one is not None]
    kinds = set(map(type, found))
    if levels > 0 and kinds == {dict} and any(found):
        return pa.struct(_members(found, path, levels - 1))
    if levels > 0 and kinds == {list} and any(one is not None for inner in found for one in inner):
        return pa.list_(_common([one for inner in found for one in inner], path, levels - 1))
    if kinds == {int} and all(-(2**63) <= one < 2**63 for one in found):
        return pa.int64()
    if float in kinds and kinds <= {int, float}:
        return pa.float64()
    return pa.bool_() if kinds == {bool} else pa.string()
