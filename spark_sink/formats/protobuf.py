"""Protobuf: descriptors into columns, messages into rows. No generated code: types come from the registry."""

import base64
from collections.abc import Callable
from typing import Any

import pyarrow as pa

from spark_sink.errors import OptionError
from spark_sink.formats.schema_registry import Registered

_TIMESTAMP = "google.protobuf.Timestamp"


def _scalar(field: Any) -> pa.DataType:  # noqa: ANN401 -- a FieldDescriptor, whose module has no types
    kinds = {
        field.CPPTYPE_INT32: pa.int32(),
        field.CPPTYPE_INT64: pa.int64(),
        # Spark has no unsigned integers: the next larger type holds them.
        field.CPPTYPE_UINT32: pa.int64(),
        field.CPPTYPE_UINT64: pa.decimal128(20, 0),
        field.CPPTYPE_DOUBLE: pa.float64(),
        field.CPPTYPE_FLOAT: pa.float32(),
        field.CPPTYPE_BOOL: pa.bool_(),
        field.CPPTYPE_ENUM: pa.string(),
        field.CPPTYPE_STRING: pa.binary() if field.type == field.TYPE_BYTES else pa.string(),
    }
    return kinds[field.cpp_type]


def columns(descriptor: Any) -> pa.Schema:  # noqa: ANN401 -- a Descriptor
    """The columns of a message."""
    return pa.schema([pa.field(one.name, _type(one, (descriptor.full_name,))) for one in descriptor.fields])


def _type(field: Any, above: tuple[str, ...]) -> pa.DataType:  # noqa: ANN401 -- a FieldDescriptor
    if _is_map(field):
        key, value = field.message_type.fields_by_name["key"], field.message_type.fields_by_name["value"]
        return pa.map_(_type(key, above), _type(value, above))
    kind = _message_type(field.message_type, above) if field.message_type else _scalar(field)
    return pa.list_(kind) if field.is_repeated else kind


def _message_type(descriptor: Any, above: tuple[str, ...]) -> pa.DataType:  # noqa: ANN401 -- a Descriptor
    if descriptor.full_name == _TIMESTAMP:
        return pa.timestamp("us", tz="UTC")
    if descriptor.full_name in above:
        raise OptionError(f"Protobuf message {descriptor.full_name!r} holds itself: no column type has an end")
    inner = (*above, descriptor.full_name)
    return pa.struct([pa.field(one.name, _type(one, inner)) for one in descriptor.fields])


def _is_map(field: Any) -> bool:  # noqa: ANN401 -- a FieldDescriptor
    return bool(field.message_type and field.message_type.GetOptions().map_entry)


def _file_of(schema: Registered) -> Any:  # noqa: ANN401 -- a FileDescriptor
    # Timestamps and wrappers are what schemas import without a reference.
    from google.protobuf import descriptor_pb2, descriptor_pool, timestamp_pb2, wrappers_pb2  # noqa: PLC0415 -- optional

    pool = descriptor_pool.DescriptorPool()
    for known in (timestamp_pb2, wrappers_pb2):
        pool.AddSerializedFile(known.DESCRIPTOR.serialized_pb)
    for name, text in (*schema.references.items(), ("", schema.text)):
        file = descriptor_pb2.FileDescriptorProto.FromString(base64.b64decode(text))
        if name:
            file.name = name
        pool.Add(file)
    return pool.FindFileByName(file.name)


def message_of(schema: Registered, name: str | None) -> Any:  # noqa: ANN401 -- a Descriptor
    """The type of a message.

    Raises:
        OptionError: the schema has no such message.
    """
    file = _file_of(schema)
    messages = list(file.message_types_by_name.values())
    for one in messages:
        if name in {None, one.full_name, one.name}:
            return one
    raise OptionError(f"option 'valueMessage': the schema has {[one.full_name for one in messages]}, not {name!r}")


def reader(schema: Registered, name: str) -> Callable[[bytes], Any]:
    """Make a function that reads the bytes behind the schema id.

    Args:
        schema: of the writer.
        name: full name of the message that is wanted; another one is an error.
    """
    from google.protobuf.message_factory import GetMessageClass  # noqa: PLC0415 -- an optional package

    file = _file_of(schema)
    known: dict[tuple[int, ...], Any] = {}

    def read(payload: bytes) -> Any:  # noqa: ANN401 -- a row
        path, begin = _indexes(payload)
        if path not in known:
            known[path] = GetMessageClass(_at(file, path))
        message = known[path]()
        if message.DESCRIPTOR.full_name != name:
            raise ValueError(f"the message is a {message.DESCRIPTOR.full_name}, need {name}")
        message.ParseFromString(payload[begin:])
        return _row(message)

    return read


def _at(file: Any, path: tuple[int, ...]) -> Any:  # noqa: ANN401 -- a FileDescriptor and a Descriptor
    found = list(file.message_types_by_name.values())[path[0]]
    for index in path[1:]:
        found = found.nested_types[index]
    return found


def _indexes(payload: bytes) -> tuple[tuple[int, ...], int]:
    """Read which message of the file follows: a count and indexes, zigzag varints; a zero alone is the first."""
    count, at = _varint(payload, 0)
    if count == 0:
        return (0,), at
    path: list[int] = []
    for _ in range(count):
        index, at = _varint(payload, at)
        path.append(index)
    return tuple(path), at


def _varint(payload: bytes, at: int) -> tuple[int, int]:
    value = shift = 0
    while True:
        byte = payload[at]
        value |= (byte & 0x7F) << shift
        at, shift = at + 1, shift + 7
        if not byte & 0x80:
            return (value >> 1) ^ -(value & 1), at


def _row(message: Any) -> Any:  # noqa: ANN401 -- a Message, and what a column holds
    if message.DESCRIPTOR.full_name == _TIMESTAMP:
        return message.seconds * 1_000_000 + message.nanos // 1_000
    return {field.name: _value(message, field) for field in message.DESCRIPTOR.fields}


def _value(message: Any, field: Any) -> Any:  # noqa: ANN401 -- a Message, a FieldDescriptor, what a column holds
    if field.has_presence and not message.HasField(field.name):
        return None
    found = getattr(message, field.name)
    if _is_map(field):
        inner = field.message_type.fields_by_name["value"]
        return [(key, _one(found[key], inner)) for key in found]
    if field.is_repeated:
        return [_one(one, field) for one in found]
    return _one(found, field)


def _one(value: Any, field: Any) -> Any:  # noqa: ANN401 -- as above
    if field.message_type:
        return _row(value)
    if field.enum_type:
        known = field.enum_type.values_by_number.get(value)
        return known.name if known else str(value)
    return value
