"""Protobuf: finds fields of a message that the latest schema, or the writer's own schema, lacks."""

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any

from spark_sink.formats.protobuf import Descriptor, FieldDescriptor, Message, has_own_json, plain, strangers
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
        has_strangers = _has_strangers(message)
        if comparison.complete and not has_strangers:
            return None
        row: Any = plain(message)
        return row | _hidden(message) if has_strangers else row, known

    return find


def _has_strangers(message: Message) -> bool:
    """Return whether a message, or one inside it, has fields that its type lacks."""
    copy = type(message)()
    copy.CopyFrom(message)
    copy.DiscardUnknownFields()
    return bool(copy.ByteSize() != message.ByteSize())


def _hidden(message: Message) -> dict[str, object]:
    """Return fields that types with a JSON of their own lack, by path: that JSON has no place for them."""
    found: dict[str, list[object]] = {}
    for path, value in _hidden_below(message, "", inside=False):
        found.setdefault(path, []).append(value)
    return {path: values[0] if len(values) == 1 else values for path, values in found.items()}


def _hidden_below(message: Message, path: str, *, inside: bool) -> Iterator[tuple[str, object]]:
    inside = inside or has_own_json(message.DESCRIPTOR)
    if inside:
        for number, value in strangers(message).items():
            yield f"{path}{number}", value
    for field, value in message.ListFields():
        for one in _messages(field, value):
            yield from _hidden_below(one, f"{path}{field.name}.", inside=inside)


def _messages(field: FieldDescriptor, value: Any) -> Iterable[Message]:  # noqa: ANN401 -- of any field
    """Return the messages in the value of a field."""
    if is_map(field):
        return [value[key] for key in sorted(value)] if value_of(field).message_type else ()
    if not field.message_type:
        return ()
    return value if field.is_repeated else (value,)


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
