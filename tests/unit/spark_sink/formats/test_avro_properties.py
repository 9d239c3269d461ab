"""Avro with any schema and values, compared with fastavro: a value decodes as it was written, or has a reason."""

import io
import itertools
import json
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from decimal import Context, Decimal
from typing import Any
from uuid import UUID

import fastavro
import pyarrow as pa
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from spark_sink.formats import AvroDecoder
from spark_sink.formats.schema_registry import Registered
from spark_sink.formats.unknown_policy import COLUMN, Policy
from tests.unit.spark_sink.formats.examples import EXAMPLES, decoded
from tests.unit.spark_sink.formats.registered import Schemas, framed

EXACT = Context(prec=100)
EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


@dataclass(frozen=True)
class Case:
    """A type of Avro.

    Attributes:
        schema: as JSON has it.
        values: pairs of what is written (without logical types) and what the column holds.
        default: pair of a default as JSON has it and what the column holds.
    """

    schema: Any
    values: st.SearchStrategy[tuple[Any, Any]]
    default: tuple[Any, Any]


def _same(values: st.SearchStrategy[Any]) -> st.SearchStrategy[tuple[Any, Any]]:
    return values.map(lambda one: (one, one))


def _micros(value: int) -> datetime:
    return EPOCH + timedelta(microseconds=value)


def _unscaled(number: int, size: int | None = None) -> bytes:
    return number.to_bytes(size or number.bit_length() // 8 + 1, "big", signed=True)


def _decimals(precision: int, scale: int, size: int | None) -> st.SearchStrategy[tuple[bytes, Decimal]]:
    most = 10**precision - 1
    return st.integers(-most, most).map(lambda one: (_unscaled(one, size), Decimal(one).scaleb(-scale, EXACT)))


INTS, LONGS = st.integers(-(2**31), 2**31 - 1), st.integers(-(2**63), 2**63 - 1)
RECENT_MS = st.integers(-(10**12), 10**13)
ENUM = {"type": "enum", "symbols": ["A", "B"], "default": "A"}
_NUMBERS = itertools.count()


def _named(schema: dict[str, Any]) -> dict[str, Any]:
    return {**schema, "name": f"T{next(_NUMBERS)}"}


def _fresh(schema: Any) -> Any:
    """The schema with new names: one schema may not define a name twice."""
    if isinstance(schema, dict):
        found = {
            name: _fresh(one) if name in {"type", "items", "values", "fields"} else one for name, one in schema.items()
        }
        return _named(found) if "symbols" in found or "size" in found or "fields" in found else found
    return [_fresh(one) for one in schema] if isinstance(schema, list) else schema


def _leaf() -> list[Case]:
    def logical(kind: str, name: str, values: st.SearchStrategy[tuple[Any, Any]], default: tuple[Any, Any]) -> Case:
        return Case({"type": kind, "logicalType": name}, values, default)

    return [
        Case("null", st.just((None, None)), (None, None)),
        Case("boolean", _same(st.booleans()), (True, True)),
        Case("int", _same(INTS), (5, 5)),
        Case("long", _same(LONGS), (5, 5)),
        Case("float", _same(st.floats(width=32, allow_nan=False)), (1.5, 1.5)),
        Case("double", _same(st.floats(allow_nan=False)), (1.5, 1.5)),
        Case("string", _same(st.text(max_size=4)), ("s", "s")),
        Case("bytes", _same(st.binary(max_size=4)), ("\u00ff", b"\xff")),
        Case(_named(ENUM), _same(st.sampled_from("AB")), ("B", "B")),
        Case(_named({"type": "fixed", "size": 3}), _same(st.binary(min_size=3, max_size=3)), ("a\u0080c", b"a\x80c")),
        Case(
            {"type": "bytes", "logicalType": "decimal", "precision": 38, "scale": 6},
            _decimals(38, 6, None),
            ("\u00fe", Decimal("-0.000002")),
        ),
        Case(
            _named({"type": "fixed", "size": 5, "logicalType": "decimal", "precision": 9, "scale": 2}),
            _decimals(9, 2, 5),
            ("\0\0\0\0\u0080", Decimal("1.28")),
        ),
        Case(
            {"type": "bytes", "logicalType": "decimal", "precision": 60, "scale": 2},
            _decimals(60, 2, None).map(lambda pair: (pair[0], str(pair[1]))),
            ("\u0001", "0.01"),
        ),
        Case(
            {"type": "bytes", "logicalType": "decimal", "precision": 2, "scale": 3},
            _same(st.binary(max_size=3)),
            ("", b""),
        ),
        logical("string", "uuid", _same(st.uuids().map(str)), (str(UUID(int=5)), str(UUID(int=5)))),
        Case(
            _named({"type": "fixed", "size": 16, "logicalType": "uuid"}),
            st.uuids().map(lambda one: (one.bytes, str(one))),
            ("\0" * 15 + "\u0005", str(UUID(int=5))),
        ),
        logical("int", "date", st.dates().map(lambda d: ((d - EPOCH.date()).days, d)), (1, date(1970, 1, 2))),
        logical("long", "timestamp-millis", RECENT_MS.map(lambda n: (n, _micros(n * 1000))), (5, _micros(5_000))),
        logical("long", "timestamp-micros", RECENT_MS.map(lambda n: (n, _micros(n))), (5, _micros(5))),
        *[logical("long", name, _same(LONGS), (5, 5)) for name in _BARE_LONGS],
        logical("int", "time-millis", _same(INTS), (5, 5)),
        Case(
            _named({"type": "fixed", "size": 12, "logicalType": "duration"}),
            _same(st.binary(min_size=12, max_size=12)),
            ("\u00ff" * 12, b"\xff" * 12),
        ),
    ]


_BARE_LONGS = ("time-micros", "local-timestamp-millis", "local-timestamp-micros", "timestamp-nanos", "strange")


def _optional(case: Case) -> Case:
    if case.schema == "null" or isinstance(case.schema, list):
        return case
    return Case(["null", case.schema], case.values | st.just((None, None)), (None, None))


def _array(case: Case) -> Case:
    values = st.lists(case.values, max_size=3).map(lambda pairs: ([a for a, _ in pairs], [b for _, b in pairs]))
    return Case({"type": "array", "items": case.schema}, values, ([case.default[0]], [case.default[1]]))


def _map(case: Case) -> Case:
    keys = st.text(max_size=2)
    values = st.dictionaries(keys, case.values, max_size=3).map(
        lambda found: ({k: a for k, (a, _) in found.items()}, [(k, b) for k, (_, b) in found.items()])
    )
    return Case({"type": "map", "values": case.schema}, values, ({"k": case.default[0]}, [("k", case.default[1])]))


def _record(cases: list[Case]) -> Case:
    fields = [{"name": f"f{number}", "type": _fresh(one.schema)} for number, one in enumerate(cases)]
    names = [one["name"] for one in fields]
    values = st.tuples(*(one.values for one in cases)).map(
        lambda pairs: (
            dict(zip(names, (a for a, _ in pairs), strict=True)),
            dict(zip(names, (b for _, b in pairs), strict=True)),
        )
    )
    default = dict(zip(names, (one.default[0] for one in cases), strict=True))
    return Case(
        _named({"type": "record", "fields": fields}),
        values if cases else st.just(({}, "{}")),
        (default, dict(zip(names, (one.default[1] for one in cases), strict=True)) if cases else "{}"),
    )


TYPES: st.SearchStrategy[Case] = st.recursive(
    st.deferred(lambda: st.sampled_from(_leaf())),
    lambda inner: inner.map(_optional) | inner.map(_array) | inner.map(_map) | st.lists(inner, max_size=3).map(_record),
    max_leaves=4,
)


def _bare(schema: Any) -> Any:
    """Return the schema without logical types, to write plain numbers and bytes."""
    if isinstance(schema, dict):
        return {name: _bare(one) for name, one in schema.items() if name not in {"logicalType", "precision", "scale"}}
    return [_bare(one) for one in schema] if isinstance(schema, list) else schema


def _payload(schema: dict[str, Any], record: dict[str, Any]) -> bytes:
    target = io.BytesIO()
    fastavro.schemaless_writer(target, fastavro.parse_schema(_bare(schema)), record)
    return target.getvalue()


def _registered(schema: Any) -> Registered:
    return Registered(json.dumps(schema), {})


def _of(fields: list[dict[str, Any]], **more: Any) -> dict[str, Any]:
    return {"type": "record", "name": "Row", "fields": fields, **more}


@EXAMPLES
def test_every_value_comes_out_as_fastavro_wrote_it(examples: int) -> None:
    """All types and logical types, in each other; the decoder reads with the schema that wrote."""

    @settings(max_examples=examples)
    @given(st.data())
    def check(data: st.DataObject) -> None:
        cases = data.draw(st.lists(TYPES, min_size=1, max_size=4))
        schema = _of([{"name": f"c{number}", "type": _fresh(one.schema)} for number, one in enumerate(cases)])
        pairs = data.draw(st.lists(st.tuples(*(one.values for one in cases)), max_size=4))
        decoder = AvroDecoder(Schemas({1: _registered(schema)}), _registered(schema), "rescue")
        records = [{f"c{number}": pair[0] for number, pair in enumerate(one)} for one in pairs]
        rows = decoded([framed(1, _payload(schema, one)) for one in records], decoder)
        expected = [{f"c{number}": pair[1] for number, pair in enumerate(one)} | {COLUMN: None} for one in pairs]
        assert rows == [(one, None) for one in expected]

    check()


@EXAMPLES
def test_an_older_writer_is_resolved_and_its_own_fields_are_rescued(examples: int) -> None:
    """Defaults fill missing fields, aliases find renamed fields, and additional fields are kept in `_rescued`."""

    @settings(max_examples=examples)
    @given(st.data())
    def check(data: st.DataObject) -> None:
        shared, added = data.draw(TYPES), data.draw(TYPES)
        gone = data.draw(st.sampled_from([("int", 5), ("string", "x"), ({"type": "array", "items": "double"}, [0.5])]))
        inner = {"type": "record", "name": "Inner", "fields": [{"name": "kept", "type": "int"}]}
        old_inner = {**inner, "fields": [*inner["fields"], {"name": "gone", "type": gone[0]}]}
        writer = _of(
            [
                {"name": "old", "type": shared.schema},
                {"name": "gone", "type": gone[0]},
                {"name": "inner", "type": {"type": "array", "items": old_inner}},
            ]
        )
        reader = _of(
            [
                {"name": "new", "aliases": ["old"], "type": shared.schema},
                {"name": "added", "type": _fresh(added.schema), "default": added.default[0]},
                {"name": "inner", "type": {"type": "array", "items": inner}},
            ]
        )
        value, column = data.draw(shared.values)
        record = {"old": value, "gone": gone[1], "inner": [{"kept": 1, "gone": gone[1]}]}
        decoder = AvroDecoder(Schemas({1: _registered(writer)}), _registered(reader), "rescue")
        # Twice: a default is one object for all rows.
        for row, error in decoded([framed(1, _payload(writer, record))] * 2, decoder):
            assert error is None
            rescued = json.loads(str(row.pop(COLUMN)))
            assert rescued == {"gone": gone[1], "inner": [{"gone": gone[1]}]}
            assert row == {"new": column, "added": added.default[1], "inner": [{"kept": 1}]}

    check()


@EXAMPLES
def test_broken_bytes_stop_no_batch_and_harm_no_neighbour(examples: int) -> None:
    """Cut, changed or random bytes, and schema ids of any value."""
    fields = [{"name": f"c{number}", "type": one.schema} for number, one in enumerate(_leaf())]
    schema = _of([*fields, {"name": "list", "type": {"type": "array", "items": "string"}}])
    record = {one["name"]: case.default[1] for one, case in zip(fields, _leaf(), strict=True)}
    bare = {one["name"]: _bare_default(case.schema, case.default[0]) for one, case in zip(fields, _leaf(), strict=True)}
    good = framed(1, _payload(schema, {**bare, "list": ["a"]}))
    schemas = {
        1: _registered(schema),
        2: _registered("string"),
        3: Registered("syntax = proto3;", {}),
        4: Registered("{}", {}),
    }
    decoder = AvroDecoder(Schemas(schemas), _registered(schema), "rescue")

    @settings(max_examples=examples)
    @example(good[:91] + b"\x81\x80\x80" + good[91:])  # a date that Python does not have
    @given(
        st.builds(
            lambda at, new, skip: good[:at] + new + good[at + skip :],
            st.integers(0, len(good)),
            st.binary(max_size=3),
            st.integers(0, 3),
        )
        | st.integers(0, len(good)).map(lambda at: good[:at])
        | st.builds(framed, st.integers(-5, 5) | st.integers(-(2**31), 2**31 - 1), st.binary(max_size=20))
    )
    def check(broken: bytes) -> None:
        rows = decoded([good, broken, good], decoder)
        assert rows[0] == rows[2] == ({**record, "list": ["a"], COLUMN: None}, None)

    check()


@pytest.mark.parametrize("policy", ["ignore", "rescue", "quarantine"])
@pytest.mark.parametrize(
    ("kind", "value"),
    [
        ("string", "some text"),
        ("bytes", b"some bytes"),
        ("boolean", True),
        ("float", 1.5),
        ("double", 1.5),
        ("long", 1 << 40),
        ({"type": "fixed", "name": "Fixed", "size": 8}, b"12345678"),
        (["null", "string"], "some text"),
        ({"type": "array", "items": "string"}, ["some", "text"]),
        ({"type": "map", "values": "bytes"}, {"some": b"bytes"}),
        ({"type": "record", "name": "Inner", "fields": [{"name": "text", "type": "string"}]}, {"text": "some text"}),
    ],
    ids=str,
)
def test_a_value_that_is_cut_off_inside_a_skipped_field_is_bad(kind: object, value: object, policy: Policy) -> None:
    """When fastavro skips a field, it does not notice that the bytes end; such a record is damaged all the same."""
    latest = _of([{"name": "a", "type": "int"}])
    writer = _of([*latest["fields"], {"name": "later", "type": kind}])
    decoder = AvroDecoder(Schemas({1: _registered(writer)}), _registered(latest), policy)
    good = framed(1, _payload(writer, {"a": 3, "later": value}))
    rows = decoded([good[:at] for at in range(6, len(good))], decoder)
    assert {error for _, error in rows} == {"NotDecodable"}
    [(row, error)] = decoded([good], decoder)
    assert (row["a"], error) == ((None, "UnknownField") if policy == "quarantine" else (3, None))


def _bare_default(schema: Any, value: Any) -> Any:
    kind = schema["type"] if isinstance(schema, dict) else schema
    return value.encode("latin-1") if kind in {"bytes", "fixed"} else value


@pytest.mark.parametrize(
    ("schema", "error"),
    [
        pytest.param('"string"', "UnusableSchema", id="a primitive"),
        pytest.param('{"type": "array", "items": "int"}', "UnusableSchema", id="an array"),
        pytest.param("CgFhEgFi", "UnusableSchema", id="Protobuf"),
        pytest.param('{"type": "object"}', "UnusableSchema", id="JSON Schema"),
        pytest.param("", "UnusableSchema", id="nothing"),
        pytest.param(json.dumps(_of([])), "NotDecodable", id="a record that lacks a field without default"),
    ],
)
def test_a_schema_that_cannot_be_used_makes_its_records_bad_and_no_others(schema: str, error: str) -> None:
    """Anybody may register a schema, and write its id into the topic."""
    latest = _of([{"name": "a", "type": "int"}])
    decoder = AvroDecoder(Schemas({1: _registered(latest), 2: Registered(schema, {})}), _registered(latest))
    good = framed(1, _payload(latest, {"a": 3}))
    rows = decoded([good, framed(2, b"\x06"), good], decoder)
    assert rows == [({"a": 3}, None), ({"a": None}, error), ({"a": 3}, None)]


def test_a_record_inside_itself_and_a_union_of_types_become_text() -> None:
    """No column type has an end or a choice; refusing the whole topic for one such field would help no reader."""
    tree = _of(
        [
            {"name": "n", "type": "int"},
            {"name": "next", "type": ["null", "Row"]},
            {"name": "any", "type": ["int", "string"]},
        ]
    )
    decoder = AvroDecoder(Schemas({1: _registered(tree)}), _registered(tree), "rescue")
    assert decoder.columns.field("next").type == decoder.columns.field("any").type == pa.string()
    record = {"n": 1, "next": {"n": 2, "next": {"n": 3, "next": None, "any": "x"}, "any": 7}, "any": "y"}
    [(row, error)] = decoded([framed(1, _payload(tree, record))], decoder)
    assert error is None
    assert (row["n"], row["any"], json.loads(str(row["next"]))) == (1, '"y"', record["next"])


def test_a_decimal_of_more_digits_than_its_precision_is_bad_and_not_rounded() -> None:
    """Decimals of fastavro itself are rounded to the precision, without a word."""
    schema = _of([{"name": "d", "type": {"type": "bytes", "logicalType": "decimal", "precision": 4, "scale": 2}}])
    decoder = AvroDecoder(Schemas({1: _registered(schema)}), _registered(schema))
    values = [framed(1, _payload(schema, {"d": _unscaled(number)})) for number in (1234, 123456)]
    assert decoded(values, decoder) == [({"d": Decimal("12.34")}, None), ({"d": None}, "WrongType")]


@pytest.mark.parametrize(
    ("old", "new"), [*itertools.product(["long", "timestamp-millis", "timestamp-micros"], repeat=2)]
)
def test_a_timestamp_keeps_its_instant_when_its_unit_changes(old: str, new: str) -> None:
    """The reader's schema gives the meaning of a plain number; a timestamp is the writer's instant."""
    writer, reader = ("long" if one == "long" else {"type": "long", "logicalType": one} for one in (old, new))
    schemas = [_of([{"name": "t", "type": one}]) for one in (writer, reader)]
    decoder = AvroDecoder(Schemas({1: _registered(schemas[0])}), _registered(schemas[1]))
    [(row, error)] = decoded([framed(1, _payload(schemas[0], {"t": 5_000}))], decoder)
    assert error is None
    unit = {"timestamp-millis": 1_000, "timestamp-micros": 1}.get(new if old == "long" else old, 1)
    assert row["t"] == (5_000 if new == "long" else _micros(5_000 * unit))
