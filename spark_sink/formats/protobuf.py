"""Protobuf: converts descriptors into columns and messages into rows, with types from the registry, not generated code.

A type that no column can represent (a message inside itself or without fields, and Struct, Value and ListValue, which
accept any JSON) becomes JSON text. Fields of the writer's schema are matched with the columns by number, as in
Protobuf.
"""

import base64
import importlib
from collections.abc import Callable
from typing import Any

import pyarrow as pa

from spark_sink.errors import OptionError
from spark_sink.formats.json_text import json_text
from spark_sink.formats.protobuf_fit import fits, is_map, narrow, narrows, refusing, value_of
from spark_sink.formats.schema_registry import Registered

# google.protobuf's classes have no types.
Descriptor = Any
FieldDescriptor = Any
FileDescriptor = Any
Message = Any
Convert = Callable[[Any], Any]

_TIMESTAMP = "google.protobuf.Timestamp"
_ANY_JSON = {"google.protobuf.Struct", "google.protobuf.Value", "google.protobuf.ListValue"}
# Files that schemas import without a reference, with the modules of their descriptors.
_BUILT_IN = {
    "google/protobuf/": "google.protobuf.",
    "google/type/": "google.type.",
    "confluent/": "confluent_kafka.schema_registry.confluent.",
}
_MOST_VARINT_BYTES = 10
_GROUP = 3  # wire type
_YEARS_1_TO_9999 = range(-62_135_596_800, 253_402_300_800)  # in seconds since 1970


def columns(descriptor: Descriptor) -> pa.Schema:
    """Return the columns of a message."""
    return pa.schema([pa.field(one.name, _type(one, (descriptor.full_name,))) for one in descriptor.fields])


def _type(field: FieldDescriptor, above: tuple[str, ...]) -> pa.DataType:
    if is_map(field):
        key, value = field.message_type.fields_by_name["key"], field.message_type.fields_by_name["value"]
        return pa.map_(_type(key, above), _type(value, above))
    kind = _message_type(field.message_type, above) if field.message_type else _scalar(field)
    return pa.list_(kind) if field.is_repeated else kind


def _scalar(field: FieldDescriptor) -> pa.DataType:
    kinds = {
        field.CPPTYPE_INT32: pa.int32(),
        field.CPPTYPE_INT64: pa.int64(),
        # Spark has no unsigned integers, so the next larger type is used.
        field.CPPTYPE_UINT32: pa.int64(),
        field.CPPTYPE_UINT64: pa.decimal128(20, 0),
        field.CPPTYPE_DOUBLE: pa.float64(),
        field.CPPTYPE_FLOAT: pa.float32(),
        field.CPPTYPE_BOOL: pa.bool_(),
        field.CPPTYPE_ENUM: pa.string(),
        field.CPPTYPE_STRING: pa.binary() if field.type == field.TYPE_BYTES else pa.string(),
    }
    return kinds[field.cpp_type]


def _message_type(descriptor: Descriptor, above: tuple[str, ...]) -> pa.DataType:
    name = descriptor.full_name
    if name == _TIMESTAMP:
        return pa.timestamp("us", tz="UTC")
    if name in _ANY_JSON or name in above or not descriptor.fields:
        return pa.string()
    return pa.struct([pa.field(one.name, _type(one, (*above, name))) for one in descriptor.fields])


def file_of(schema: Registered) -> FileDescriptor:
    """Return the descriptor of a schema's file."""
    from google.protobuf import descriptor_pb2, descriptor_pool  # noqa: PLC0415 -- an optional package

    pool, added = descriptor_pool.DescriptorPool(), set(schema.references)
    for name, text in (*schema.references.items(), ("", schema.text)):
        file = descriptor_pb2.FileDescriptorProto.FromString(base64.b64decode(text))
        if name:
            file.name = name
        for imported in file.dependency:
            _add_built_in(pool, imported, added)
        pool.Add(file)
    return pool.FindFileByName(file.name)


def _add_built_in(pool: Any, name: str, added: set[str]) -> None:  # noqa: ANN401 -- a DescriptorPool
    home = next((path for prefix, path in _BUILT_IN.items() if name.startswith(prefix)), None)
    if name in added or home is None:
        return
    added.add(name)
    prefix = next(one for one in _BUILT_IN if name.startswith(one))
    module = home + name.removeprefix(prefix).removesuffix(".proto").replace("/", ".") + "_pb2"
    file: Any = importlib.import_module(module).DESCRIPTOR
    for one in file.dependencies:
        _add_built_in(pool, one.name, added)
    pool.AddSerializedFile(file.serialized_pb)


def message_of(schema: Registered, name: str | None) -> Descriptor:
    """Return the type of a message, at the top level of the file or inside another message.

    Raises:
        OptionError: the schema has no such message.
    """
    file = file_of(schema)
    messages = [one for top in file.message_types_by_name.values() for one in _with_nested(top)]
    for one in messages:
        if name in {None, one.full_name, one.full_name.removeprefix(f"{file.package}."), one.name}:
            return one
    raise OptionError(f"option 'valueMessage': the schema has {[one.full_name for one in messages]}, not {name!r}")


def _with_nested(descriptor: Descriptor) -> list[Descriptor]:
    inner = [one for one in descriptor.nested_types if not one.GetOptions().map_entry]
    return [descriptor, *(each for one in inner for each in _with_nested(one))]


def message_at(file: FileDescriptor, path: tuple[int, ...]) -> Descriptor:
    """Return the message at these indexes.

    Raises:
        ValueError: there is no such message.
    """
    messages = list(file.message_types_by_name.values())
    for depth, index in enumerate(path):
        if not 0 <= index < len(messages):
            raise ValueError(f"the schema has no message {list(path)}")
        found = messages[index]
        if depth < len(path) - 1:
            messages = list(found.nested_types)
    return found


def read_indexes(payload: bytes) -> tuple[tuple[int, ...], int]:
    """Read the indexes of the message's type: a count and indexes, zigzag varints; a single zero means the first.

    Raises:
        ValueError: the numbers are invalid.
    """
    count, at = _varint(payload, 0)
    if count == 0:
        return (0,), at
    if not 0 < count <= len(payload):
        raise ValueError(f"{count} message indexes are announced")
    path: list[int] = []
    for _ in range(count):
        index, at = _varint(payload, at)
        path.append(index)
    return tuple(path), at


def _varint(payload: bytes, at: int) -> tuple[int, int]:
    value = 0
    for place in range(_MOST_VARINT_BYTES):
        if at + place >= len(payload):
            raise ValueError("the bytes end inside the message indexes")
        byte = payload[at + place]
        value |= (byte & 0x7F) << (7 * place)
        if not byte & 0x80:
            return (value >> 1) ^ -(value & 1), at + place + 1
    raise ValueError("a message index has too many bytes")


def row_maker(writer: Descriptor, reader: Descriptor, fields: list[pa.Field]) -> Convert:
    """Return a function that converts a message into a row.

    Args:
        writer: the type of the messages.
        reader: the type of the columns.
        fields: the columns.
    """
    numbers = {one.name: reader.fields_by_name[one.name].number for one in fields}
    plans = []
    for column in fields:
        field = writer.fields_by_number.get(numbers[column.name])
        if field is not None:
            plans.append((column.name, field, _value_maker(field, reader.fields_by_name[column.name], column.type)))

    def make(message: Message) -> dict[str, Any]:
        return {
            name: value(getattr(message, field.name))
            for name, field, value in plans
            if not field.has_presence or message.HasField(field.name)
        }

    return make


def _value_maker(field: FieldDescriptor, reader: FieldDescriptor, kind: pa.DataType) -> Convert:
    if not fits(field, reader):
        return refusing(field, reader)
    if is_map(field):
        one = _one_maker(value_of(field), value_of(reader), kind.item_type)
        # Protobuf defines no order of keys, but decoding a value again must give the same result.
        return lambda found: [(key, one(found[key])) for key in sorted(found)]
    if field.is_repeated:
        one = _one_maker(field, reader, kind.value_type)
        return lambda found: [one(each) for each in found]
    if reader.is_repeated:
        one, always = _one_maker(field, reader, kind.value_type), field.has_presence
        # As Protobuf reads it: one element, and none for a default value, which is not on the wire.
        return lambda found: [one(found)] if always or found else []
    return _one_maker(field, reader, kind)


def _one_maker(field: FieldDescriptor, reader: FieldDescriptor, kind: pa.DataType) -> Convert:
    if field.enum_type:
        names = {number: value.name for number, value in field.enum_type.values_by_number.items()}
        return lambda number: names.get(number) or str(number)
    if not field.message_type:
        return narrow if narrows(field, reader) else _same
    if field.message_type.full_name == _TIMESTAMP and not pa.types.is_string(kind):
        return lambda found: found.seconds * 1_000_000 + found.nanos // 1_000
    if pa.types.is_struct(kind) and reader.message_type:
        return row_maker(field.message_type, reader.message_type, list(kind))
    return lambda found: json_text(plain(found))


def _same(value: object) -> object:
    return value


def has_own_json(descriptor: Descriptor) -> bool:
    """Return whether the JSON of a message is not an object of its fields."""
    return descriptor.full_name in {*_ANY_JSON, _TIMESTAMP}


def plain(message: Message) -> object:
    """Return a message as a JSON value: the fields that are set, by name, or by number if the type lacks them."""
    name = message.DESCRIPTOR.full_name
    if name in _ANY_JSON:
        return _plain_json(message, name)
    if name == _TIMESTAMP:
        return message.ToJsonString() if _in_years(message) else f"{message.seconds}.{message.nanos:09}"
    return {_name(field): _plain_field(field, value) for field, value in message.ListFields()} | strangers(message)


def _name(field: FieldDescriptor) -> str:
    """Return the name of a field in JSON: an extension may have the short name of another field."""
    return f"[{field.full_name}]" if field.is_extension else str(field.name)


def strangers(message: Message) -> dict[str, object]:
    """Return the fields that the type of a message lacks, by number; those of messages inside it are not included."""
    from google.protobuf.unknown_fields import UnknownFieldSet  # noqa: PLC0415 -- an optional package

    found: dict[str, list[object]] = {}
    for one in UnknownFieldSet(message):
        found.setdefault(str(one.field_number), []).append(_plain_stranger(one))
    return {number: values[0] if len(values) == 1 else values for number, values in found.items()}


def _plain_stranger(field: Any) -> object:  # noqa: ANN401 -- an UnknownField, whose data is a set of fields in a group
    if field.wire_type == _GROUP:
        return [[one.field_number, _plain_stranger(one)] for one in field.data]
    return field.data


def _in_years(message: Message) -> bool:
    return bool(message.seconds in _YEARS_1_TO_9999 and 0 <= message.nanos < 10**9)


def _plain_json(message: Message, name: str) -> object:
    if name == "google.protobuf.Struct":
        return {key: plain(message.fields[key]) for key in sorted(message.fields)}
    if name == "google.protobuf.ListValue":
        return [plain(one) for one in message.values]
    kind = message.WhichOneof("kind")
    if kind in {None, "null_value"}:
        return None
    found = getattr(message, kind)
    return plain(found) if kind in {"struct_value", "list_value"} else found


def _plain_field(field: FieldDescriptor, value: Any) -> object:  # noqa: ANN401 -- of any field
    if is_map(field):
        inner = field.message_type.fields_by_name["value"]
        return {key: _plain_one(inner, value[key]) for key in sorted(value)}
    return [_plain_one(field, one) for one in value] if field.is_repeated else _plain_one(field, value)


def _plain_one(field: FieldDescriptor, value: Any) -> object:  # noqa: ANN401 -- of any field
    if field.message_type:
        return plain(value)
    if field.enum_type:
        known = field.enum_type.values_by_number.get(value)
        return known.name if known else value
    return value
