"""Protobuf: decides whether a field of a writer's schema has values for a column of the latest schema. Pure.

Fields are matched by number, so a field whose type was changed meets a column of another type. Arrow converts some of
these values without an error: 1.5 to 1, the text `abc` to the list `a`, `b`, `c`, a number to a time.
"""

import struct
from collections.abc import Callable
from typing import Any

# google.protobuf's classes have no types.
FieldDescriptor = Any

# By kind of the writer's field: kinds of fields whose column has the same value, or refuses it, as one too large.
_FITS = {
    "integer": {"integer", "float", "double"},
    "float": {"float", "double"},
    "double": {"float", "double"},
    "boolean": {"boolean"},
    "text": {"text"},
    "enum": {"enum", "text"},
    "message": {"message"},
}


def is_map(field: FieldDescriptor) -> bool:
    """Return whether a field is a map, which on the wire is a repeated message."""
    return bool(field.message_type and field.message_type.GetOptions().map_entry)


def value_of(field: FieldDescriptor) -> FieldDescriptor:
    """Return the field of a map's values."""
    return field.message_type.fields_by_name["value"]


def fits(writer: FieldDescriptor, reader: FieldDescriptor) -> bool:
    """Return whether the column of one field can have the values of the other; one value may become a list."""
    if is_map(writer) and is_map(reader):
        return fits(value_of(writer), value_of(reader))
    if is_map(writer) or is_map(reader) or (writer.is_repeated and not reader.is_repeated):
        return False
    return _kind(reader) in _FITS[_kind(writer)]


def refusing(writer: FieldDescriptor, reader: FieldDescriptor) -> Callable[[object], None]:
    """Return a conversion that refuses all values except a default one, which is not on the wire."""
    sentence = f"field {writer.full_name} is {_shape(writer)} in the writer's schema, {_shape(reader)} in the latest"

    def refuse(value: object) -> None:
        if value or writer.has_presence:
            raise ValueError(sentence)

    return refuse


def narrows(writer: FieldDescriptor, reader: FieldDescriptor) -> bool:
    """Return whether values may be too large for the column, and Arrow would make them infinite."""
    return (_kind(writer), _kind(reader)) == ("double", "float")


def narrow(value: float) -> float:
    """Return the value.

    Raises:
        OverflowError: it is too large for a float.
    """
    struct.pack("<f", value)
    return value


def _kind(field: FieldDescriptor) -> str:
    kinds = {
        field.CPPTYPE_BOOL: "boolean",
        field.CPPTYPE_DOUBLE: "double",
        field.CPPTYPE_ENUM: "enum",
        field.CPPTYPE_FLOAT: "float",
        field.CPPTYPE_MESSAGE: "message",
        field.CPPTYPE_STRING: "text",
    }
    return kinds.get(field.cpp_type, "integer")


def _shape(field: FieldDescriptor) -> str:
    return "a map" if is_map(field) else f"a repeated {_kind(field)}" if field.is_repeated else f"one {_kind(field)}"
