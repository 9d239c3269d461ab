"""Protobuf fields whose type was changed, and extensions: a value is right, or its record is bad with a reason."""

import json
from collections.abc import Callable
from typing import Any

import pytest
from google.protobuf import descriptor_pb2, descriptor_pool, timestamp_pb2
from google.protobuf.message_factory import GetMessageClass

from spark_sink.formats import ProtobufDecoder
from spark_sink.formats.unknown_policy import COLUMN, Policy
from tests.unit.spark_sink.formats.examples import decoded
from tests.unit.spark_sink.formats.registered import Schemas, framed, registered_file

Field = descriptor_pb2.FieldDescriptorProto
_ONE, _MANY = Field.LABEL_OPTIONAL, Field.LABEL_REPEATED
_OF = {Field.TYPE_MESSAGE: ".google.protobuf.Timestamp", Field.TYPE_ENUM: ".x.Kind"}
_NUMBERS = [Field.TYPE_INT32, Field.TYPE_INT64, Field.TYPE_UINT32, Field.TYPE_UINT64, Field.TYPE_SINT64]


def _file(kind: int, label: int = _ONE, syntax: str = "proto3") -> descriptor_pb2.FileDescriptorProto:
    """A message `Row` with one field of this type."""
    file = descriptor_pb2.FileDescriptorProto(
        name="r.proto", package="x", syntax=syntax, dependency=["google/protobuf/timestamp.proto"]
    )
    zero = file.enum_type.add(name="Kind").value
    zero.add(name="ZERO", number=0)
    zero.add(name="ONE", number=1)
    row = file.message_type.add(name="Row")
    row.field.add(name="f", number=1, label=label, type=kind, type_name=_OF.get(kind))
    return file


def _payload(file: descriptor_pb2.FileDescriptorProto, value: object) -> bytes:
    pool = descriptor_pool.DescriptorPool()
    pool.AddSerializedFile(timestamp_pb2.DESCRIPTOR.serialized_pb)
    pool.Add(file)
    found: bytes = GetMessageClass(pool.FindMessageTypeByName("x.Row"))(f=value).SerializeToString()
    return found


def _read(
    writer: descriptor_pb2.FileDescriptorProto, reader: descriptor_pb2.FileDescriptorProto, value: object
) -> tuple[object, str | None]:
    """The column of the latest schema, for a value that an older one wrote; and the class of the error."""
    schemas = Schemas({1: registered_file(writer)})
    decoder = ProtobufDecoder(schemas, registered_file(reader), "x.Row", "rescue")
    ((row, error),) = decoded([framed(1, b"\x00" + _payload(writer, value))], decoder)
    return row["f"], error


@pytest.mark.parametrize(
    ("kind", "value"),
    [
        (Field.TYPE_STRING, "abc"),
        (Field.TYPE_BYTES, b"abc"),
        (Field.TYPE_INT32, -7),
        (Field.TYPE_DOUBLE, 1.5),
        (Field.TYPE_BOOL, True),
    ],
)
def test_one_value_becomes_a_list_of_one(kind: int, value: object) -> None:
    """A registry accepts this change of a text as compatible; Arrow makes `a`, `b`, `c` of the text `abc`."""
    assert _read(_file(kind), _file(kind, _MANY), value) == ([value], None)


def test_a_default_value_becomes_an_empty_list() -> None:
    """It is not on the wire, so a reader with the latest schema finds no element."""
    assert _read(_file(Field.TYPE_STRING), _file(Field.TYPE_STRING, _MANY), "") == ([], None)
    old = _file(Field.TYPE_STRING, syntax="proto2")
    assert _read(old, _file(Field.TYPE_STRING, _MANY), "") == ([""], None)


@pytest.mark.parametrize("number", _NUMBERS)
@pytest.mark.parametrize("kind", [Field.TYPE_DOUBLE, Field.TYPE_FLOAT])
@pytest.mark.parametrize("shape", [_ONE, _MANY])
def test_a_fraction_is_never_cut_to_a_whole_number(number: int, kind: int, shape: int) -> None:
    """Arrow converts 1.5 to 1."""
    value = 1.5 if shape == _ONE else [1.5]
    assert _read(_file(kind, shape), _file(number, shape), value) == (None, "NotDecodable")


def test_a_double_that_no_float_can_hold_is_bad() -> None:
    """Arrow makes it infinite."""
    double, single = _file(Field.TYPE_DOUBLE), _file(Field.TYPE_FLOAT)
    assert _read(double, single, 1e300) == (None, "NotDecodable")
    assert _read(double, single, 1.5) == (1.5, None)
    assert _read(double, single, float("inf")) == (float("inf"), None)


@pytest.mark.parametrize(
    ("kind", "value"),
    [(number, 5) for number in _NUMBERS] + [(Field.TYPE_DOUBLE, 1.5), (Field.TYPE_STRING, "1970-01-01T00:00:00Z")],
)
def test_a_scalar_is_no_message(kind: int, value: object) -> None:
    """Arrow makes a time of a number, in microseconds, whatever the number counts; and nothing is on the wire for 0."""
    scalar, time = _file(kind), _file(Field.TYPE_MESSAGE)
    assert _read(scalar, time, value) == (None, "NotDecodable")
    assert _read(scalar, time, type(value)()) == (None, None)
    assert _read(time, scalar, {"seconds": 5}) == (None, "NotDecodable")


@pytest.mark.parametrize("policy", ["rescue", "quarantine"])
def test_an_extension_is_an_unknown_field(policy: Policy) -> None:
    """The type of a message does not list its extensions, but they are parsed: no column has them."""
    file = _file(Field.TYPE_STRING, syntax="proto2")
    file.message_type[0].extension_range.add(start=100, end=200)
    file.extension.add(name="f", number=100, type=Field.TYPE_STRING, label=_ONE, extendee=".x.Row")
    decoder = ProtobufDecoder(Schemas({1: registered_file(file)}), registered_file(file), None, policy)
    plain, extended = b"\x0a\x01a", b"\x0a\x01a\xa2\x06\x01b"
    found = decoded([framed(1, b"\x00" + one) for one in (plain, extended)], decoder)
    if policy == "rescue":
        assert found == [({"f": "a", COLUMN: None}, None), ({"f": "a", COLUMN: '{"[x.f]":"b"}'}, None)]
    else:
        assert found == [({"f": "a"}, None), ({"f": None}, "UnknownField")]


@pytest.mark.parametrize("name", ["StringValue", "Duration", "Any"])
def test_a_field_that_a_well_known_message_lacks_is_rescued(name: str) -> None:
    """Their columns are structs of their fields, as those of any other message."""
    file = _file(Field.TYPE_MESSAGE)
    file.message_type[0].field[0].type_name = f".google.protobuf.{name}"
    file.dependency.extend(f"google/protobuf/{one}.proto" for one in ("wrappers", "duration", "any"))
    decoder = ProtobufDecoder(Schemas({1: registered_file(file)}), registered_file(file), None, "rescue")
    ((row, error),) = decoded([framed(1, b"\x00\x0a\x03\x2a\x01z")], decoder)
    assert (row[COLUMN], error) == ('{"f":{"5":"eg=="}}', None)


HIDDEN = {
    "Timestamp": (b"\x2a\x01z", "f.5", "eg=="),
    "Struct": (b"\x2a\x01z", "f.5", "eg=="),
    "Value": (b"\x3a\x01z", "f.7", "eg=="),
    "ListValue": (b"\x0a\x03\x3a\x01z" * 2, "f.values.7", ["eg==", "eg=="]),
}


@pytest.mark.parametrize("policy", ["ignore", "rescue", "quarantine"])
@pytest.mark.parametrize("name", HIDDEN)
def test_a_field_that_a_message_with_its_own_json_lacks_is_unknown(name: str, policy: Policy) -> None:
    """The column has a time or a JSON text, which has no place for such a field: it was lost without a word."""
    payload, path, value = HIDDEN[name]
    file = _file(Field.TYPE_MESSAGE)
    file.message_type[0].field[0].type_name = f".google.protobuf.{name}"
    file.dependency.append("google/protobuf/struct.proto")
    decoder = ProtobufDecoder(Schemas({1: registered_file(file)}), registered_file(file), None, policy)
    good, more = b"\x00\x0a\x00", b"\x00\x0a" + bytes([len(payload)]) + payload
    (plain, error), (row, unknown) = decoded([framed(1, good), framed(1, more)], decoder)
    assert (error, plain.get(COLUMN)) == (None, None)
    assert unknown == ("UnknownField" if policy == "quarantine" else None)
    if policy == "rescue":
        assert json.loads(str(row[COLUMN])) == {path: value}


def test_each_change_of_a_type_gives_the_value_or_a_reason() -> None:
    """Any type to any other: the value of the writer, as one value or as a list of it, or the record is bad."""
    values: dict[int, tuple[object, Callable[[Any], object]]] = {
        Field.TYPE_INT32: (-7, int),
        Field.TYPE_UINT64: (7, int),
        Field.TYPE_BOOL: (True, bool),
        Field.TYPE_DOUBLE: (2.5, float),
        Field.TYPE_FLOAT: (2.5, float),
        Field.TYPE_STRING: ("abc", lambda found: found.decode() if isinstance(found, bytes) else found),
        Field.TYPE_ENUM: (1, {"ONE": 1, b"ONE": 1}.get),
    }
    for kind, (value, back) in values.items():
        for label in (_ONE, _MANY):
            for other in (*values, Field.TYPE_MESSAGE):
                for wanted in (_ONE, _MANY):
                    given = value if label == _ONE else [value]
                    found, error = _read(_file(kind, label), _file(other, wanted), given)
                    assert (error is None) == (found is not None)
                    if error is None:
                        listed = found if isinstance(found, list) else [found]
                        assert [back(one) for one in listed] == [value], (kind, label, other, wanted, found)
