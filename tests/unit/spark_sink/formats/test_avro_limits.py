"""Avro values that overflow the stack or the memory of fastavro are bad, and the process that decodes them lives on."""

import io
import json
import subprocess
import sys
from collections.abc import Callable
from typing import Any

import pytest
from fastavro import schemaless_writer
from fastavro.schema import parse_schema
from hypothesis import given, settings
from hypothesis import strategies as st

from spark_sink.formats import AvroDecoder
from spark_sink.formats.avro_limits import MOST_EMPTY, MOST_LEVELS, check_of
from spark_sink.formats.schema_registry import Registered
from spark_sink.formats.unknown_policy import Policy
from tests.unit.spark_sink.formats.examples import decoded
from tests.unit.spark_sink.formats.registered import Schemas, framed

LIST = {"type": "record", "name": "L", "fields": [{"name": "next", "type": ["null", "L"]}]}
TREE = {"type": "record", "name": "T", "fields": [{"name": "inner", "type": {"type": "array", "items": "T"}}]}
MAPS = {"type": "record", "name": "M", "fields": [{"name": "inner", "type": {"type": "map", "values": "M"}}]}
PLAIN = {"type": "record", "name": "L", "fields": [{"name": "other", "type": ["null", "int"], "default": None}]}


def _list(levels: int) -> bytes:
    return b"\x02" * levels + b"\x00"


def _row(kind: object) -> str:
    return json.dumps({"type": "record", "name": "R", "fields": [{"name": "f", "type": kind}]})


def _decoder(writer: object, reader: object, policy: Policy = "rescue") -> AvroDecoder:
    schemas = Schemas({1: Registered(json.dumps(writer), {})})
    return AvroDecoder(schemas, Registered(json.dumps(reader), {}), policy)


def _long(number: int) -> bytes:
    """A number of Avro."""
    number, found = (number << 1) ^ (number >> 63), b""
    while number > 0x7F:
        found, number = found + bytes([number & 0x7F | 0x80]), number >> 7
    return found + bytes([number])


_DEEP = """
import json, sys
from tests.unit.spark_sink.formats.test_avro_limits import decoded, framed, _decoder
writer, reader, policy = json.loads(sys.argv[1])
values = [framed(1, b"\\x02" * levels + b"\\x00") for levels in (3, 5_000, 1_000_000)]
print([error for _, error in decoded(values, _decoder(writer, reader, policy))])
"""


@pytest.mark.parametrize("reader", [LIST, PLAIN], ids=["read", "skipped"])
@pytest.mark.parametrize("policy", ["rescue", "ignore"])
def test_a_value_of_any_depth_ends_no_process(reader: dict[str, Any], policy: Policy) -> None:
    """Without a bound, 5,000 bytes end the process of fastavro; so another process decodes them here."""
    command = [sys.executable, "-c", _DEEP, json.dumps([LIST, reader, policy])]
    found = subprocess.run(command, capture_output=True, text=True, check=False)
    assert (found.returncode, found.stdout.strip()) == (0, "[None, 'NotDecodable', 'NotDecodable']"), found.stderr


@pytest.mark.parametrize(
    ("schema", "value"),
    [
        (LIST, _list),
        (TREE, lambda levels: b"\x02" * (levels // 2) + b"\x00" * (levels // 2 + 1)),
        (MAPS, lambda levels: b"\x02\x00" * (levels // 2) + b"\x00" * (levels // 2 + 1)),
    ],
)
def test_the_bound_counts_records_arrays_and_maps(schema: dict[str, Any], value: Callable[[int], bytes]) -> None:
    """The last depth that is allowed, and one that is not."""
    named: dict[str, Any] = {}
    check = check_of(parse_schema(schema, named_schemas=named), named)
    assert check is not None
    check(value(MOST_LEVELS - 4))
    with pytest.raises(ValueError, match="levels"):
        check(value(MOST_LEVELS + 4))


@pytest.mark.parametrize("item", ["null", {"type": "record", "name": "E", "fields": [{"name": "n", "type": "null"}]}])
def test_an_array_of_nothing_takes_no_memory_without_end(item: object) -> None:
    """Ten bytes may announce 2^62 items."""
    schema = json.loads(_row({"type": "array", "items": item}))
    values = [framed(1, _long(count) + b"\x00") for count in (3, MOST_EMPTY + 1, 2**62)]
    values.append(framed(1, (_long(MOST_EMPTY // 2 + 1)) * 2 + b"\x00"))
    rows = decoded(values, _decoder(schema, schema))
    assert [error for _, error in rows] == [None, *["NotDecodable"] * 3]
    assert len(rows[0][0]["f"]) == 3  # type: ignore[arg-type]  # a list


def test_a_record_that_contains_itself_always_is_no_schema() -> None:
    """No bytes end a value of it, not even none."""
    schema = {"type": "record", "name": "R", "fields": [{"name": "r", "type": "R"}]}
    ((_, error),) = decoded([framed(1, b"")], _decoder(schema, PLAIN))
    assert error == "UnusableSchema"


def test_most_schemas_are_not_looked_at() -> None:
    """The look costs time per byte, so only schemas that need it have one."""
    item = {"type": "record", "name": "I", "fields": [{"name": "a", "type": ["null", "string"]}]}
    fields = [
        {"name": "a", "type": item},
        {"name": "b", "type": {"type": "array", "items": "I"}},
        {"name": "c", "type": "null"},
    ]
    named: dict[str, Any] = {}
    assert check_of(parse_schema({"type": "record", "name": "R", "fields": fields}, named_schemas=named), named) is None


_ALL = {
    "type": "record",
    "name": "A",
    "namespace": "x",
    "fields": [
        {"name": "n", "type": "long"},
        {"name": "d", "type": ["null", "double", "string"]},
        {"name": "e", "type": {"type": "enum", "name": "E", "symbols": ["P", "Q"]}},
        {"name": "x", "type": {"type": "fixed", "name": "X", "size": 3}},
        {"name": "z", "type": {"type": "array", "items": "null"}},
        {"name": "m", "type": {"type": "map", "values": ["boolean", "float", "bytes", "A"]}},
        {"name": "l", "type": {"type": "array", "items": ["null", "E", "A"]}},
        {"name": "t", "type": {"type": "int", "logicalType": "date"}},
    ],
}


def _value(inner: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    return st.fixed_dictionaries(
        {
            "n": st.integers(-(2**63), 2**63 - 1),
            "d": st.none() | st.floats(allow_nan=False) | st.text(max_size=3),
            "e": st.sampled_from(["P", "Q"]),
            "x": st.binary(min_size=3, max_size=3),
            "z": st.lists(st.none(), max_size=3),
            "m": st.dictionaries(st.text(max_size=2), st.booleans() | st.binary(max_size=2) | inner, max_size=2),
            "l": st.lists(st.none() | st.sampled_from(["P", "Q"]) | inner, max_size=2),
            "t": st.integers(0, 9),
        }
    )


@settings(max_examples=200, deadline=None)
@given(st.recursive(_value(st.nothing()), _value, max_leaves=5), st.integers(0, 10_000))
def test_the_look_passes_over_exactly_what_fastavro_wrote(value: dict[str, Any], cut: int) -> None:
    """It must neither refuse a good value, nor lose its place and so miss what follows."""
    named: dict[str, Any] = {}
    schema = parse_schema(_ALL, named_schemas=named)
    stream = io.BytesIO()
    schemaless_writer(stream, schema, value)
    payload = stream.getvalue()
    check = check_of(schema, named)
    assert check is not None
    check(payload)
    with pytest.raises(ValueError, match="end inside"):
        check(payload[: cut % len(payload)])
