"""Avro: schemas into columns, bytes into rows, both by fastavro."""

import json
from typing import IO, Any

import pyarrow as pa

from spark_sink.errors import OptionError
from spark_sink.formats.schema_registry import Registered

_PRIMITIVE = {
    "boolean": pa.bool_(),
    "int": pa.int32(),
    "long": pa.int64(),
    "float": pa.float32(),
    "double": pa.float64(),
    "string": pa.string(),
    "bytes": pa.binary(),
}
_LOGICAL = {
    "date": pa.date32(),
    "timestamp-millis": pa.timestamp("us", tz="UTC"),
    "timestamp-micros": pa.timestamp("us", tz="UTC"),
    "uuid": pa.string(),
}


def parsed(schema: Registered, named: dict[str, Any] | None = None) -> dict[str, Any]:
    """Parse a schema with what it refers to; puts the types that have a name into `named`."""
    from fastavro.schema import parse_schema  # noqa: PLC0415 -- an optional package

    named = {} if named is None else named
    for text in schema.references.values():
        parse_schema(json.loads(text), named_schemas=named)
    found = parse_schema(json.loads(schema.text), named_schemas=named)
    if not isinstance(found, dict) or found.get("type") != "record":
        raise OptionError(f"Avro schema {schema.text[:80]!r} is no record: only records have columns")
    return found


def read(source: IO[bytes], writer: dict[str, Any], reader: dict[str, Any]) -> dict[str, Any]:
    """Read one record."""
    from fastavro import schemaless_reader  # noqa: PLC0415 -- an optional package

    found: Any = schemaless_reader(source, writer, reader)
    return dict(found)


def columns(schema: Registered) -> pa.Schema:
    """The columns of a record.

    Raises:
        OptionError: a field has a type that no column can hold.
    """
    named: dict[str, Any] = {}
    record = parsed(schema, named)
    return pa.schema([pa.field(one["name"], _type(one["type"], named, one["name"])) for one in record["fields"]])


def _type(kind: Any, named: dict[str, Any], path: str) -> pa.DataType:  # noqa: ANN401, C901, PLR0911 -- a table of types
    if isinstance(kind, list):
        rest = [one for one in kind if one != "null"]
        if len(rest) != 1:
            raise OptionError(f"Avro field {path!r}: a union of {len(rest)} types has no column type")
        return _type(rest[0], named, path)
    if isinstance(kind, str):
        return _PRIMITIVE[kind] if kind in _PRIMITIVE else _type(named[kind], named, path)
    logical = kind.get("logicalType")
    if logical == "decimal":
        return pa.decimal128(kind["precision"], kind.get("scale", 0))
    if logical in _LOGICAL:
        return _LOGICAL[logical]
    match kind["type"]:
        case "record":
            fields = [
                pa.field(one["name"], _type(one["type"], named, f"{path}.{one['name']}")) for one in kind["fields"]
            ]
            return pa.struct(fields)
        case "array":
            return pa.list_(_type(kind["items"], named, path))
        case "map":
            return pa.map_(pa.string(), _type(kind["values"], named, path))
        case "enum":
            return pa.string()
        case "fixed":
            return pa.binary()
        case inner:
            return _type(inner, named, path)
