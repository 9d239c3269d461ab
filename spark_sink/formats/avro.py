"""Avro: converts schemas into columns and bytes into rows, with fastavro.

A type that no column can represent (a union of several types, a record inside itself or without fields, a decimal of
more than 38 digits) becomes JSON text. Logical types that a table lacks (times of day, local timestamps, nanoseconds,
durations) keep the stored number or bytes.

fastavro's own logical types round decimals and refuse timestamps after the year 9999. So the schemas for fastavro have
logical types with this module's own names.
"""

import io
import json
from collections.abc import Callable, Iterator, Mapping
from decimal import Context, Decimal
from typing import Any
from uuid import UUID

import pyarrow as pa

from spark_sink.errors import OptionError
from spark_sink.formats.json_text import json_text
from spark_sink.formats.schema_registry import Registered

Schema = Any  # of Avro, as parsed from JSON
Convert = Callable[[Any], Any]

_PRIMITIVE = {
    "boolean": pa.bool_(),
    "int": pa.int32(),
    "long": pa.int64(),
    "float": pa.float32(),
    "double": pa.float64(),
    "string": pa.string(),
    "bytes": pa.binary(),
    "null": pa.string(),
}
_MOST_DIGITS = 38
_UUID_BYTES = 16
_MARK = "azimuth-"
_LOGICAL = {
    ("int", "date"): pa.date32(),
    ("long", "timestamp-millis"): pa.timestamp("us", tz="UTC"),
    ("long", "timestamp-micros"): pa.timestamp("us", tz="UTC"),
    ("fixed", "uuid"): pa.string(),
}
_EXACT = Context(prec=10_000)


class Micros(int):
    """A timestamp in microseconds, distinct from plain numbers, which mean milliseconds."""

    __slots__ = ()


def parsed(schema: Registered, named: dict[str, Any] | None = None) -> dict[str, Any]:
    """Parse a schema with its references; add the named types to `named`.

    Raises:
        OptionError: the schema is not a record.
    """
    from fastavro.schema import parse_schema  # noqa: PLC0415 -- an optional package

    _register()
    named = {} if named is None else named
    for text in schema.references.values():
        parse_schema(_marked(json.loads(text)), named_schemas=named)
    found: Any = parse_schema(_marked(json.loads(schema.text)), named_schemas=named)
    if not isinstance(found, dict) or found.get("type") != "record":
        raise OptionError(f"Avro schema {schema.text[:80]!r} is not a record: only records have columns")
    seen: set[str] = set()
    for one in [found, *named.values()]:
        _set_defaults(one, named, seen)
    return found


def read(payload: bytes, writer: dict[str, Any], reader: dict[str, Any] | None) -> dict[str, Any]:
    """Read one record.

    Raises:
        ValueError: bytes are left over or missing; fastavro raises other errors for invalid bytes.
    """
    from fastavro import schemaless_reader  # noqa: PLC0415 -- an optional package

    # fastavro skips a field that only the writer has even if its bytes are cut off: it then also reads the added byte.
    source = io.BytesIO(payload + b"\0")
    found: Any = schemaless_reader(source, writer, reader)
    left = len(payload) - source.tell()
    if left:
        raise ValueError(f"{left} bytes are left over" if left > 0 else "the bytes end inside the value")
    return dict(found)


def columns(schema: Registered) -> tuple[pa.Schema, Convert]:
    """Return the columns of a record, and a function that converts the result of `read` into a row."""
    named: dict[str, Any] = {}
    record = parsed(schema, named)
    converts: dict[str, Convert] = {}
    fields = []
    for one in record["fields"]:
        kind, convert = _type(one["type"], named, (record["name"],))
        fields.append(pa.field(one["name"], kind))
        if convert is not None:
            converts[one["name"]] = convert
    return pa.schema(fields), _of_record(converts)


def _type(  # noqa: PLR0911 -- a table of types
    kind: Schema, named: Mapping[str, Any], above: tuple[str, ...]
) -> tuple[pa.DataType, Convert | None]:
    """Return the type of a column, and the conversion of its values if the read value is not the final one."""
    if isinstance(kind, list):
        rest = [one for one in kind if one != "null"]
        return _type(rest[0], named, above) if len(rest) == 1 else _TEXT
    if isinstance(kind, str):
        return (_PRIMITIVE[kind], None) if kind in _PRIMITIVE else _type(named[kind], named, above)
    if logical := _logical(kind):
        return _logical_type(kind, logical)
    match kind["type"]:
        case "record" | "error":
            return _record_type(kind, named, above)
        case "array":
            inner, convert = _type(kind["items"], named, above)
            return pa.list_(inner), None if convert is None else _of_array(convert)
        case "map":
            inner, convert = _type(kind["values"], named, above)
            return pa.map_(pa.string(), inner), None if convert is None else _of_map(convert)
        case "enum":
            return pa.string(), None
        case "fixed":
            return pa.binary(), None
        case other:
            return _type(other, named, above)


_TEXT: tuple[pa.DataType, Convert] = (pa.string(), json_text)


def required(kind: Schema, named: Mapping[str, Any], path: str = "", above: tuple[str, ...] = ()) -> Iterator[str]:
    """Yield the paths of the fields without a default, as `list.element.field`, also those inside other fields."""
    if isinstance(kind, list):
        rest = [one for one in kind if one != "null"]
        if len(rest) == 1:  # a union of several types has no fields
            yield from required(rest[0], named, path, above)
        return
    found = named.get(kind) if isinstance(kind, str) else kind
    if not isinstance(found, dict):
        return
    match found["type"]:
        case "array":
            yield from required(found["items"], named, f"{path}element.", above)
        case "map":
            yield from required(found["values"], named, f"{path}value.", above)
        case "record" | "error" if found["name"] not in above:
            for one in found["fields"]:
                if "default" not in one:
                    yield path + one["name"]
                yield from required(one["type"], named, f"{path}{one['name']}.", (*above, found["name"]))
        case dict() | list() as inner:
            yield from required(inner, named, path, above)


def _record_type(kind: Schema, named: Mapping[str, Any], above: tuple[str, ...]) -> tuple[pa.DataType, Convert | None]:
    if kind["name"] in above or not kind["fields"]:
        return _TEXT
    converts: dict[str, Convert] = {}
    fields = []
    for one in kind["fields"]:
        inner, convert = _type(one["type"], named, (*above, kind["name"]))
        fields.append(pa.field(one["name"], inner))
        if convert is not None:
            converts[one["name"]] = convert
    return pa.struct(fields), _of_record(converts) if converts else None


def _of_record(converts: Mapping[str, Convert]) -> Convert:
    def convert(row: dict[str, Any]) -> dict[str, Any]:
        row = row.copy()  # all rows share the object of a default
        for name, one in converts.items():
            if (value := row[name]) is not None:
                row[name] = one(value)
        return row

    return convert


def _of_array(convert: Convert) -> Convert:
    return lambda values: [_some(convert, one) for one in values]


def _of_map(convert: Convert) -> Convert:
    return lambda values: {key: _some(convert, one) for key, one in values.items()}


def _some(convert: Convert, value: object) -> object:
    return None if value is None else convert(value)


def _logical_type(kind: Schema, logical: str) -> tuple[pa.DataType, Convert | None]:
    if logical == "decimal":
        scale = kind.get("scale", 0)
        if kind["precision"] > _MOST_DIGITS:
            return pa.string(), lambda value: str(_decimal(value, scale))
        return pa.decimal128(kind["precision"], scale), lambda value: _decimal(value, scale)
    convert = _micros if logical == "timestamp-millis" else _uuid if logical == "uuid" else None
    return _LOGICAL[kind["type"], logical], convert


def _decimal(value: bytes | Decimal, scale: int) -> Decimal:
    # The value is bytes in defaults, and if the writer's schema has no logical type.
    if isinstance(value, Decimal):
        return value
    return Decimal(int.from_bytes(value, "big", signed=True)).scaleb(-scale, _EXACT)


def _micros(value: int) -> int:
    return value if type(value) is Micros else value * 1_000


def _uuid(value: bytes) -> str:
    return str(UUID(bytes=value))


def _logical(kind: Schema) -> str:
    found = str(kind.get("logicalType", ""))
    return found.removeprefix(_MARK) if found.startswith(_MARK) else ""


def _register() -> None:
    """Register the readers of this module's logical types with fastavro, which keeps them in one dictionary."""
    from fastavro.read import LOGICAL_READERS  # noqa: PLC0415 -- an optional package

    LOGICAL_READERS[f"long-{_MARK}timestamp-millis"] = _read_millis
    LOGICAL_READERS[f"long-{_MARK}timestamp-micros"] = _read_micros
    for kind in ("bytes", "fixed"):
        LOGICAL_READERS[f"{kind}-{_MARK}decimal"] = _read_decimal


def _read_millis(data: int, _writer: Schema, reader: Schema) -> int | float:
    if isinstance(reader, str):  # the reader's schema has a plain number
        return float(data) if reader in {"float", "double"} else data
    return Micros(data * 1_000)


def _read_micros(data: int, _writer: Schema, reader: Schema) -> int | float:
    if isinstance(reader, str):
        return float(data) if reader in {"float", "double"} else data
    return Micros(data) if reader is not None and _logical(reader) == "timestamp-millis" else data


def _read_decimal(data: bytes, writer: Schema, reader: Schema) -> Decimal | bytes | str:
    if reader is not None and not (isinstance(reader, dict) and _logical(reader) == "decimal"):
        return data.decode() if reader == "string" else data
    return _decimal(data, writer.get("scale", 0))


def _marked(schema: Schema) -> Schema:
    """Return the schema with this module's logical types under its own names, and without all others."""
    if isinstance(schema, list):
        return [_marked(one) for one in schema]
    if not isinstance(schema, dict):
        return schema
    found = {name: value for name, value in schema.items() if name != "logicalType"}
    if _is_read(schema):
        found["logicalType"] = _MARK + schema["logicalType"]
    for name in ("type", "items", "values"):
        if name in found:
            found[name] = _marked(found[name])
    if isinstance(found.get("fields"), list):
        found["fields"] = [_marked(one) for one in found["fields"]]
    return found


def _is_read(schema: Mapping[str, Any]) -> bool:
    kind, logical = schema.get("type"), schema.get("logicalType")
    if not isinstance(kind, str) or not isinstance(logical, str):
        return False
    if logical == "decimal":
        return kind in {"bytes", "fixed"} and _is_decimal(schema)
    if logical == "uuid":
        return kind == "fixed" and schema.get("size") == _UUID_BYTES
    return (kind, logical) in _LOGICAL


def _is_decimal(schema: Mapping[str, Any]) -> bool:
    """Return whether precision and scale are valid; Avro ignores the logical type if they are not."""
    precision, scale = schema.get("precision"), schema.get("scale", 0)
    if type(precision) is not int or type(scale) is not int or not 0 <= scale <= precision or not precision:
        return False
    size = schema.get("size")
    return size is None or (type(size) is int and 10**precision <= 2 ** (8 * size - 1))


def _set_defaults(kind: Schema, named: Mapping[str, Any], seen: set[str]) -> None:
    """Convert defaults in place: fastavro returns them as in the schema's JSON, in which bytes are text."""
    if isinstance(kind, list):
        for one in kind:
            _set_defaults(one, named, seen)
    if not isinstance(kind, dict):
        return
    if "name" in kind:
        if kind["name"] in seen:
            return
        seen.add(kind["name"])
    for name in ("type", "items", "values"):
        if isinstance(kind.get(name), dict | list):
            _set_defaults(kind[name], named, seen)
    for one in kind.get("fields", ()):
        _set_defaults(one["type"], named, seen)
        if "default" in one:
            one["default"] = _default(one["type"], one["default"], named)


def _default(kind: Schema, value: Any, named: Mapping[str, Any]) -> Any:  # noqa: ANN401, PLR0911 -- a table of types
    if isinstance(kind, list):
        return _default(next((one for one in kind if (one == "null") == (value is None)), kind[0]), value, named)
    if isinstance(kind, str):
        if kind == "bytes":
            return value.encode("latin-1") if isinstance(value, str) else value
        return _default(named[kind], value, named) if kind in named else value
    match kind["type"]:
        case "record" | "error":
            given = {one["name"]: value.get(one["name"], one.get("default")) for one in kind["fields"]}
            return {one["name"]: _default(one["type"], given[one["name"]], named) for one in kind["fields"]}
        case "array":
            return [_default(kind["items"], one, named) for one in value]
        case "map":
            return {key: _default(kind["values"], one, named) for key, one in value.items()}
        case "fixed" | "bytes":
            return value.encode("latin-1") if isinstance(value, str) else value
        case _:
            return value
