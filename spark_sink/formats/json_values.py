"""JSON values. One object a record; its members become columns.

Parsed by orjson a record at a time, then converted a column at a time. Arrow's own JSON reader is faster, and ends the
process with a segmentation fault at a value as simple as `null`: not for records that anybody may write.
"""

import json
from collections.abc import Iterable, Sequence
from typing import Any

import orjson
import pyarrow as pa

from spark_sink.errors import OptionError
from spark_sink.formats.arrow_columns import columns_of
from spark_sink.formats.decoder import Bad, Decoded

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


class JsonDecoder:
    """Decodes JSON objects into columns that are known beforehand.

    Args:
        columns: names and types; members that are not among them are passed over.
    """

    def __init__(self, columns: pa.Schema) -> None:
        self._columns = columns

    @property
    def columns(self) -> pa.Schema:
        """Names and types of what is decoded."""
        return self._columns

    def decode(self, values: Sequence[bytes | None]) -> Decoded:
        """Decode the values of one batch."""
        bad: dict[int, Bad] = {}
        rows = [_parse(value, number, bad) for number, value in enumerate(values)]
        columns, wrong = columns_of(rows, self._columns, json=True)
        return Decoded(columns, bad | wrong)


def _parse(value: bytes | None, number: int, bad: dict[int, Bad]) -> dict[str, Any] | None:
    if value is None:
        bad[number] = Bad("NullValue", "the record has no value")
        return None
    try:
        found = orjson.loads(value)
    except orjson.JSONDecodeError as error:
        bad[number] = Bad("NotJson", str(error))
        return None
    if not isinstance(found, dict):
        bad[number] = Bad("NotAnObject", f"the value is a JSON {type(found).__name__}, need an object")
        return None
    return found


def given_columns(text: str) -> pa.Schema:
    """Read a schema that was given as an option.

    Args:
        text: JSON: `{"name": type, ...}` with Spark's names of types, `[type]` for arrays and `{...}` for structs; or
            what `StructType.json()` gives.

    Raises:
        OptionError: it is neither.
    """
    try:
        value = json.loads(text)
    except ValueError as error:
        raise OptionError(
            f"option 'valueSchema': {text!r} is neither 'variant' nor JSON such as {{\"id\": \"bigint\"}} ({error}); "
            "StructType.fromDDL(...).json() makes it of Spark's DDL"
        ) from error
    if not isinstance(value, dict) or not value:
        raise OptionError(f'option \'valueSchema\': {text!r}, need {{"name": "type"}}')
    if value.get("type") == "struct" and isinstance(value.get("fields"), list):
        return pa.schema([pa.field(one["name"], _spark_type(one["type"])) for one in value["fields"]])
    return pa.schema([pa.field(name, _type(kind)) for name, kind in value.items()])


def _type(kind: object) -> pa.DataType:
    if isinstance(kind, list) and len(kind) == 1:
        return pa.list_(_type(kind[0]))
    if isinstance(kind, dict):
        return pa.struct([pa.field(name, _type(inner)) for name, inner in kind.items()])
    return _simple(kind)


def _spark_type(kind: Any) -> pa.DataType:  # noqa: ANN401 -- a part of Spark's JSON
    if isinstance(kind, dict) and kind.get("type") == "array":
        return pa.list_(_spark_type(kind["elementType"]))
    if isinstance(kind, dict) and kind.get("type") == "struct":
        return pa.struct([pa.field(one["name"], _spark_type(one["type"])) for one in kind["fields"]])
    return _simple(kind)


def _simple(kind: object) -> pa.DataType:
    text = str(kind)
    if text in _SIMPLE:
        return _SIMPLE[text]
    if text.startswith("decimal(") and text.endswith(")"):
        precision, _, scale = text[len("decimal(") : -1].partition(",")
        return pa.decimal128(int(precision), int(scale or 0))
    raise OptionError(f"option 'valueSchema': type {text!r} is not known; known are decimal(p,s), {sorted(_SIMPLE)}")


def infer_columns(values: Iterable[bytes | None]) -> pa.Schema:
    """Find the columns of a sample: of each member the type that holds every value seen, text where none does.

    Args:
        values: records; those that are no JSON objects are passed over.

    Raises:
        OptionError: there is no object among them, or names of members differ in case only.
    """
    seen: dict[str, list[Any]] = {}
    for number, value in enumerate(values):
        for name, inner in (_parse(value, number, {}) or {}).items():
            seen.setdefault(name, []).append(inner)
    if not seen:
        raise OptionError("no JSON object was found to infer a schema from: give it with the option 'valueSchema'")
    spelled: dict[str, str] = {}
    for name in sorted(seen):
        if (other := spelled.setdefault(name.lower(), name)) != name:
            raise OptionError(
                f"members {other!r} and {name!r} differ in case only, and a table's columns may not: say with the "
                "option 'valueSchema' which to take"
            )
    return pa.schema([pa.field(name, _common(found)) for name, found in sorted(seen.items())])


def _common(values: list[Any]) -> pa.DataType:
    try:
        found = pa.infer_type(values)
    except pa.ArrowException:
        return pa.string()
    return pa.string() if pa.types.is_null(found) else found
