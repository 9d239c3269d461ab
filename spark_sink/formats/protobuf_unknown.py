"""Protobuf: finds fields of a message that the latest schema, or the writer's own schema, lacks."""

from collections.abc import Callable, Mapping
from typing import Any

from spark_sink.formats.protobuf import Descriptor, FieldDescriptor, Message, has_own_json, plain
from spark_sink.formats.protobuf_fit import is_map, value_of
from spark_sink.formats.unknown_fields import Each, Known

Row = Mapping[str, Any]


def unknown_finder(writer: Descriptor, reader: Descriptor) -> Callable[[Message], tuple[Row, Known] | None]:
    """Return a function that returns the fields set in a message, and which of them are known.

    The function returns None if no field can be unknown. Fields that the writer's schema also lacks have their number
    as name.
    """
    comparison = _Comparison()
    known = comparison.known(writer, reader)

    def find(message: Message) -> tuple[Row, Known] | None:
        if comparison.complete and not _has_strangers(message):
            return None
        row: Any = plain(message)
        return row, known

    return find


def _has_strangers(message: Message) -> bool:
    """Return whether a message, or one inside it, has fields that its type lacks."""
    copy = type(message)()
    copy.CopyFrom(message)
    copy.DiscardUnknownFields()
    return bool(copy.ByteSize() != message.ByteSize())


class _Comparison:
    """Compares the fields of two types of messages, by number."""

    def __init__(self) -> None:
        self._messages: dict[tuple[str, str], dict[str, Known]] = {}
        self.complete = True

    def known(self, writer: Descriptor, reader: Descriptor) -> dict[str, Known]:
        """Return the known fields, by the writer's names."""
        pair = (writer.full_name, reader.full_name)
        if pair in self._messages:
            return self._messages[pair]
        found = self._messages[pair] = {}
        if writer.file.pool.FindAllExtensions(writer):  # fields of the message that its type does not list
            self.complete = False
        for field in writer.fields:
            if (match := reader.fields_by_number.get(field.number)) is not None:
                found[field.name] = self._inside(field, match)
            else:
                self.complete = False
        return found

    def _inside(self, writer: FieldDescriptor, reader: FieldDescriptor) -> Known:
        if is_map(writer) and is_map(reader):
            inner = self._inside(value_of(writer), value_of(reader))
            return None if inner is None else Each(inner)
        if not (writer.message_type and reader.message_type) or has_own_json(writer.message_type):
            return None
        inner = self.known(writer.message_type, reader.message_type)
        return Each(inner) if writer.is_repeated else inner
