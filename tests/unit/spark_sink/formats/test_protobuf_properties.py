"""Protobuf with any schema and values, compared with google.protobuf: a message decodes correctly or has a reason."""

import json
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest
from google.protobuf import (
    any_pb2,
    descriptor_pb2,
    descriptor_pool,
    duration_pb2,
    empty_pb2,
    field_mask_pb2,
    json_format,
    struct_pb2,
    timestamp_pb2,
    wrappers_pb2,
)
from google.protobuf.message_factory import GetMessageClass
from hypothesis import given, settings
from hypothesis import strategies as st

from spark_sink.errors import OptionError
from spark_sink.formats import ProtobufDecoder
from spark_sink.formats.schema_registry import Registered
from spark_sink.formats.unknown_policy import COLUMN
from tests.unit.spark_sink.formats.examples import EXAMPLES, decoded
from tests.unit.spark_sink.formats.registered import Schemas, framed, registered_file

Field = descriptor_pb2.FieldDescriptorProto
EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
GOOGLE: tuple[Any, ...] = (any_pb2, duration_pb2, empty_pb2, field_mask_pb2, struct_pb2, timestamp_pb2, wrappers_pb2)


@dataclass(frozen=True)
class Case:
    """A type of field.

    Attributes:
        kind: number of the type.
        of: name of the message or enum.
        values: pairs of what the message is built with and what the column holds.
        zero: the column's value where nothing is set; None where the field has presence.
    """

    kind: int
    of: str | None
    values: st.SearchStrategy[tuple[Any, Any]]
    zero: Any = None


def _same(values: st.SearchStrategy[Any]) -> st.SearchStrategy[tuple[Any, Any]]:
    return values.map(lambda one: (one, one))


def _int(bits: int) -> st.SearchStrategy[tuple[Any, Any]]:
    return _same(st.integers(-(2 ** (bits - 1)), 2 ** (bits - 1) - 1))


_UINT64 = st.integers(0, 2**64 - 1).map(lambda one: (one, Decimal(one)))
_ENUM = st.sampled_from([(0, "ZERO"), (1, "ONE"), (7, "7")])
SCALARS = [
    *[Case(kind, None, _int(32), 0) for kind in (Field.TYPE_INT32, Field.TYPE_SINT32, Field.TYPE_SFIXED32)],
    *[Case(kind, None, _int(64), 0) for kind in (Field.TYPE_INT64, Field.TYPE_SINT64, Field.TYPE_SFIXED64)],
    *[Case(kind, None, _same(st.integers(0, 2**32 - 1)), 0) for kind in (Field.TYPE_UINT32, Field.TYPE_FIXED32)],
    *[Case(kind, None, _UINT64, Decimal(0)) for kind in (Field.TYPE_UINT64, Field.TYPE_FIXED64)],
    Case(Field.TYPE_DOUBLE, None, _same(st.floats(allow_nan=False)), 0.0),
    Case(Field.TYPE_FLOAT, None, _same(st.floats(allow_nan=False, width=32)), 0.0),
    Case(Field.TYPE_BOOL, None, _same(st.booleans()), zero=False),
    Case(Field.TYPE_STRING, None, _same(st.text(max_size=4)), ""),
    Case(Field.TYPE_BYTES, None, _same(st.binary(max_size=4)), b""),
    Case(Field.TYPE_ENUM, ".x.Kind", _ENUM, "ZERO"),
]
_MICROS = st.integers(-(10**15), 10**16)
MESSAGES = [
    Case(
        Field.TYPE_MESSAGE,
        ".google.protobuf.Timestamp",
        _MICROS.map(lambda n: ({"seconds": n // 10**6, "nanos": n % 10**6 * 1000}, EPOCH + timedelta(microseconds=n))),
    ),
    Case(Field.TYPE_MESSAGE, ".google.protobuf.Duration", _same(st.just({"seconds": 5, "nanos": 7}))),
    Case(
        Field.TYPE_MESSAGE, ".google.protobuf.StringValue", _same(st.text(max_size=3).map(lambda one: {"value": one}))
    ),
    Case(Field.TYPE_MESSAGE, ".google.protobuf.Any", _same(st.just({"type_url": "u", "value": b"\xff"}))),
    Case(Field.TYPE_MESSAGE, ".google.protobuf.FieldMask", _same(st.just({"paths": ["a", "b"]}))),
    Case(Field.TYPE_MESSAGE, ".google.protobuf.Empty", st.just(({}, "{}"))),
    Case(
        Field.TYPE_MESSAGE,
        ".google.protobuf.Struct",
        st.just(
            (
                {"fields": {"a": {"number_value": 1.5}, "b": {"list_value": {"values": [{"null_value": 0}]}}}},
                '{"a":1.5,"b":[null]}',
            )
        ),
    ),
    Case(Field.TYPE_MESSAGE, ".x.Inner", st.integers(0, 9).map(lambda n: ({"n": n}, {"n": n, "names": []}))),
    Case(
        Field.TYPE_MESSAGE,
        ".x.Tree",
        st.just(({"n": 1, "next": {"n": 2, "next": {"n": 3}}}, {"n": 1, "next": '{"n":2,"next":{"n":3}}'})),
    ),
]
KEYS = [
    case for case in SCALARS if case.kind in {Field.TYPE_INT32, Field.TYPE_STRING, Field.TYPE_BOOL, Field.TYPE_UINT64}
]
SHAPES = ("plain", "optional", "repeated", "map", "oneof")


def _file(syntax: str) -> descriptor_pb2.FileDescriptorProto:
    file = descriptor_pb2.FileDescriptorProto(name="x.proto", package="x", syntax=syntax)
    file.dependency.extend(one.DESCRIPTOR.name for one in GOOGLE)
    kind = file.enum_type.add(name="Kind")
    kind.value.add(name="ZERO", number=0)
    kind.value.add(name="ONE", number=1)
    inner = file.message_type.add(name="Inner")
    inner.field.add(name="n", number=1, type=Field.TYPE_INT32, label=Field.LABEL_OPTIONAL)
    inner.field.add(name="names", number=2, type=Field.TYPE_STRING, label=Field.LABEL_REPEATED)
    tree = file.message_type.add(name="Tree")
    tree.field.add(name="n", number=1, type=Field.TYPE_INT32, label=Field.LABEL_OPTIONAL)
    tree.field.add(name="next", number=2, type=Field.TYPE_MESSAGE, label=Field.LABEL_OPTIONAL, type_name=".x.Tree")
    return file


def _add(row: Any, number: int, case: Case, shape: str, key: Case) -> None:
    name = f"f{number}"
    many = shape in {"repeated", "map"}
    field = row.field.add(name=name, number=number, label=Field.LABEL_REPEATED if many else Field.LABEL_OPTIONAL)
    field.type = case.kind
    if case.of:
        field.type_name = case.of
    if shape == "oneof":
        field.oneof_index = len(row.oneof_decl)
        row.oneof_decl.add(name=f"o{number}")
    if shape == "map":
        entry = row.nested_type.add(name=f"F{number}Entry")
        entry.options.map_entry = True
        entry.field.add(name="key", number=1, type=key.kind, label=Field.LABEL_OPTIONAL)
        entry.field.add(name="value", number=2, type=case.kind, label=Field.LABEL_OPTIONAL, type_name=case.of)
        field.type, field.type_name = Field.TYPE_MESSAGE, f".x.Row.F{number}Entry"


def _synthetic(row: Any) -> None:
    """Proto3's `optional`: a separate oneof, after all others."""
    for field in row.field:
        if field.proto3_optional:
            field.oneof_index = len(row.oneof_decl)
            row.oneof_decl.add(name=f"_{field.name}")


def _pool(file: descriptor_pb2.FileDescriptorProto) -> Any:
    pool = descriptor_pool.DescriptorPool()
    for one in GOOGLE:
        pool.AddSerializedFile(one.DESCRIPTOR.serialized_pb)
    pool.Add(file)
    return pool


def _message(file: descriptor_pb2.FileDescriptorProto, values: dict[str, Any], name: str = "x.Row") -> bytes:
    made = GetMessageClass(_pool(file).FindMessageTypeByName(name))()
    for field, value in values.items():
        _set(made, field, value)
    return bytes(made.SerializeToString())


def _set(message: Any, name: str, value: Any) -> None:
    field = message.DESCRIPTOR.fields_by_name[name]
    if field.message_type and field.message_type.GetOptions().map_entry:
        inner = field.message_type.fields_by_name["value"].message_type
        for key, one in value.items():
            if inner:
                _fill(getattr(message, name)[key], one)
            else:
                getattr(message, name)[key] = one
    elif field.message_type and field.is_repeated:
        for one in value:
            _fill(getattr(message, name).add(), one)
    elif field.message_type:
        _fill(getattr(message, name), value)
    elif field.is_repeated:
        getattr(message, name).extend(value)
    else:
        setattr(message, name, value)


def _fill(message: Any, values: dict[str, Any]) -> None:
    message.SetInParent()
    for name, value in values.items():
        _set(message, name, value)


def _drawn(case: Case, shape: str, key: Case, syntax: str) -> st.SearchStrategy[tuple[Any, Any]]:
    """Pairs of a field's value (None if not set) and the expected column value."""
    if shape == "repeated":
        return st.lists(case.values, max_size=3).map(lambda pairs: ([a for a, _ in pairs], [b for _, b in pairs]))
    if shape == "map":
        pairs = st.lists(st.tuples(key.values, case.values), max_size=1)
        return pairs.map(lambda some: ({k[0]: v[0] for k, v in some}, [(k[1], v[1]) for k, v in some]))
    unset = case.zero if shape == "plain" and syntax == "proto3" else None
    return case.values | st.just((None, unset))


FIELDS = st.lists(
    st.tuples(st.sampled_from([*SCALARS, *MESSAGES]), st.sampled_from(SHAPES), st.sampled_from(KEYS)),
    min_size=1,
    max_size=5,
)


def _with_row(syntax: str, fields: list[tuple[Case, str, Case]]) -> descriptor_pb2.FileDescriptorProto:
    file = _file(syntax)
    row = file.message_type.add(name="Row")
    for number, (case, shape, key) in enumerate(fields, 1):
        _add(row, number, case, shape, key)
        if syntax == "proto3" and shape == "optional":
            row.field[-1].proto3_optional = True
    _synthetic(row)
    return file


FRAME = b"\x02\x04"  # the third message of the file: one index, 2


@EXAMPLES
@pytest.mark.parametrize("syntax", ["proto2", "proto3"])
def test_every_message_comes_out_as_it_was_built(examples: int, syntax: str) -> None:
    """All types of fields in all shapes, well-known messages, messages inside themselves, enums without a name."""

    @settings(max_examples=examples)
    @given(st.data())
    def check(data: st.DataObject) -> None:
        fields = data.draw(FIELDS)
        if syntax == "proto2":
            # A number without a name is no value of a proto2 enum: it is an unknown field there.
            fields = [(case, shape, key) for case, shape, key in fields if case.kind != Field.TYPE_ENUM]
        file = _with_row(syntax, fields)
        drawn = data.draw(st.lists(st.tuples(*(_drawn(*field, syntax) for field in fields)), max_size=3))
        decoder = ProtobufDecoder(Schemas({1: registered_file(file)}), registered_file(file), "x.Row", "rescue")
        values, expected = [], []
        for pairs in drawn:
            given = {f"f{number}": one for number, (one, _) in enumerate(pairs, 1) if one is not None}
            values.append(framed(1, FRAME + _message(file, given)))
            expected.append({f"f{number}": one for number, (_, one) in enumerate(pairs, 1)} | {COLUMN: None})
        assert decoded(values, decoder) == [(one, None) for one in expected]

    check()


@EXAMPLES
def test_fields_that_the_latest_schema_lacks_are_rescued(examples: int) -> None:
    """By the writer's names where its schema has them, by number where not even that has; at every depth."""

    @settings(max_examples=examples)
    @given(FIELDS, st.data())
    def check(fields: list[tuple[Case, str, Case]], data: st.DataObject) -> None:
        writer = _with_row("proto3", fields)
        reader = _file("proto3")
        row = reader.message_type.add(name="Row")
        _add(row, 99, MESSAGES[-2], "repeated", KEYS[0])
        row = writer.message_type[-1]
        _add(row, 99, MESSAGES[-2], "repeated", KEYS[0])
        writer.message_type[0].field.add(name="more", number=5, type=Field.TYPE_STRING, label=Field.LABEL_OPTIONAL)
        pairs = [data.draw(_drawn(*field, "proto3")) for field in fields]
        given = {f"f{number}": one for number, (one, _) in enumerate(pairs, 1) if one is not None}
        given["f99"] = [{"n": 1}, {"n": 2, "more": "x"}]
        payload = _message(writer, given)
        made = GetMessageClass(_pool(writer).FindMessageTypeByName("x.Row")).FromString(payload)
        decoder = ProtobufDecoder(
            Schemas({1: registered_file(writer), 2: registered_file(reader)}),
            registered_file(reader),
            "x.Row",
            "rescue",
        )
        named, numbered = decoded([framed(1, FRAME + payload), framed(2, FRAME + payload)], decoder)
        for result, error in (named, numbered):
            assert error is None
            assert result["f99"] == [{"n": 1, "names": []}, {"n": 2, "names": []}]
        rescued = json.loads(str(named[0][COLUMN]))
        assert rescued["f99"] == [None, {"more": "x"}]
        assert set(rescued) == {field.name for field, _ in made.ListFields()}
        assert {int(name) for name in json.loads(str(numbered[0][COLUMN])) if name != "f99"} == {
            field.number for field, _ in made.ListFields() if field.number != 99
        }

    check()


@EXAMPLES
def test_broken_bytes_stop_no_batch_and_harm_no_neighbour(examples: int) -> None:
    """Cut, changed or random bytes, any message index, any schema id."""
    file = _with_row("proto3", [(one, "plain", KEYS[0]) for one in [*SCALARS, *MESSAGES]])
    payload = _message(file, {"f1": 7, "f14": "a", "f20": {"type_url": "u", "value": b"x"}})
    good = framed(1, FRAME + payload)
    schemas = {1: registered_file(file), 2: Registered('"string"', {}), 3: Registered("", {})}
    decoder = ProtobufDecoder(Schemas(schemas), registered_file(file), "x.Row", "rescue")

    @settings(max_examples=examples)
    @given(
        st.builds(
            lambda at, new, skip: good[:at] + new + good[at + skip :],
            st.integers(0, len(good)),
            st.binary(max_size=3),
            st.integers(0, 3),
        )
        | st.integers(0, len(good)).map(lambda at: good[:at])
        | st.builds(framed, st.integers(1, 4), st.binary(max_size=20) | st.just(b"\xff" * 5_000))
    )
    def check(broken: bytes) -> None:
        rows = decoded([good, broken, good], decoder)
        assert rows[0] == rows[2]
        assert rows[0][1] is None

    check()


def test_a_message_inside_another_may_be_the_value() -> None:
    """By its full name, its path or its own name; the indexes on the wire lead to it."""
    file = _file("proto3")
    outer = file.message_type.add(name="Outer")
    outer.nested_type.add(name="First").field.add(name="a", number=1, type=Field.TYPE_BOOL, label=Field.LABEL_OPTIONAL)
    outer.nested_type.add(name="Value").field.add(name="v", number=1, type=Field.TYPE_INT32, label=Field.LABEL_OPTIONAL)
    value = framed(1, b"\x04\x04\x02" + _message(file, {"v": 5}, "x.Outer.Value"))
    for name in ("x.Outer.Value", "Outer.Value", "Value"):
        decoder = ProtobufDecoder(Schemas({1: registered_file(file)}), registered_file(file), name)
        assert decoded([value], decoder) == [({"v": 5}, None)]
    with pytest.raises(OptionError, match=r"x\.Outer\.Value.*not 'None'"):
        ProtobufDecoder(Schemas({}), registered_file(file), "None")


def test_a_group_is_a_struct() -> None:
    """Proto2 has them still."""
    file = descriptor_pb2.FileDescriptorProto(name="g.proto", package="x", syntax="proto2")
    row = file.message_type.add(name="Row")
    row.nested_type.add(name="Part").field.add(name="n", number=1, type=Field.TYPE_INT32, label=Field.LABEL_OPTIONAL)
    row.field.add(name="part", number=1, type=Field.TYPE_GROUP, type_name=".x.Row.Part", label=Field.LABEL_REPEATED)
    pool = descriptor_pool.DescriptorPool()
    pool.Add(file)
    made = GetMessageClass(pool.FindMessageTypeByName("x.Row"))()
    json_format.ParseDict({"part": [{"n": 1}, {}]}, made)
    decoder = ProtobufDecoder(Schemas({1: registered_file(file)}), registered_file(file))
    assert decoder.columns == pa.schema([("part", pa.list_(pa.struct([("n", pa.int32())])))])
    assert decoded([framed(1, b"\x00" + made.SerializeToString())], decoder) == [
        ({"part": [{"n": 1}, {"n": None}]}, None)
    ]
