"""JSON values become columns; what is not JSON becomes a reason."""

import json
from datetime import UTC, date, datetime
from decimal import Decimal

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from spark_sink.errors import OptionError
from spark_sink.fetch.raw_columns import arrow_schema
from spark_sink.formats import JsonDecoder, decode_batch, decoded_schema, infer_columns
from spark_sink.formats.bad_values_quarantined import COLUMN, REASON
from spark_sink.formats.declared_or_inferred_columns import given_columns
from tests.unit.spark_sink.formats.examples import decoded, raw

COLUMNS = given_columns(
    '{"id": "bigint", "name": "string", "at": "timestamp", "day": "date", "price": "decimal(10,2)", '
    '"tags": ["string"], "place": {"x": "double"}}'
)
GOOD = {
    "id": 5,
    "name": "a",
    "at": "2020-01-02T03:04:05Z",
    "day": "2020-01-02",
    "price": "1.25",
    "tags": ["p", "q"],
    "place": {"x": 1.5},
    "unknown": 1,
}
POISON = {
    b"": "NotJson",
    b"null": "NotAnObject",
    b"5": "NotAnObject",
    b"[1]": "NotAnObject",
    b"{": "NotJson",
    b'{"id": 1} x': "NotJson",
    b'{"id": 1}{"id": 2}': "NotJson",
    b'{"id": 1}null': "NotJson",
    b"\xff\xfe": "NotJson",
    b'{"name": "\xff"}': "NotJson",
    b'{"id": "five"}': "WrongType",
    b'{"id": 1.5}': "WrongType",
    b'{"id": 99999999999999999999}': "WrongType",
    b'{"name": 5}': "WrongType",
    b'{"id": true}': "WrongType",
    b'{"at": "yesterday"}': "WrongType",
    b'{"at": 5}': "WrongType",
    b'{"day": 5}': "WrongType",
    b'{"price": 1.005}': "WrongType",
    b'{"place": {"x": "far"}}': "WrongType",
    b'{"tags": ["a", 5]}': "WrongType",
    b'{"place": 5}': "WrongType",
    b'{"tags": {"a": 1}}': "WrongType",
}


def test_members_become_columns() -> None:
    """Types that JSON lacks are text; members without a column are ignored; missing members are null."""
    batch = decode_batch(raw([json.dumps(GOOD).encode(), b"{}"]), JsonDecoder(COLUMNS))
    assert batch.schema == decoded_schema(arrow_schema(headers=False), COLUMNS)
    first, second = batch.select(COLUMNS.names).to_pylist()
    assert first == {
        "id": 5,
        "name": "a",
        "at": datetime(2020, 1, 2, 3, 4, 5, tzinfo=UTC),
        "day": date(2020, 1, 2),
        "price": Decimal("1.25"),
        "tags": ["p", "q"],
        "place": {"x": 1.5},
    }
    assert set(second.values()) == {None}
    assert batch.column(COLUMN).null_count == 2


@given(st.lists(st.sampled_from([None, json.dumps(GOOD).encode(), *POISON]), max_size=30))
def test_every_record_is_there_once_good_or_with_its_reason(values: list[bytes | None]) -> None:
    """Poison never takes its neighbours with it, and keeps its bytes."""
    batch = decode_batch(raw(values), JsonDecoder(COLUMNS))
    assert batch.column("offset").to_pylist() == list(range(len(values)))
    for value, row in zip(values, batch.to_pylist(), strict=True):
        reason = row[COLUMN]
        if value is not None and value not in POISON:
            assert reason is None
            assert row["id"] == 5
        else:
            assert reason["error_class"] == ("NullValue" if value is None else POISON[value])
            assert reason["error_text"]
            assert (reason["value"], reason["key"]) == (value, b"k")
            assert row["id"] is None


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (b'{"id": "five"}', "column 'id': 'five' does not fit its type bigint: JSON has a string here"),
        (b'{"place": 5}', "column 'place': '5' does not fit its type struct<"),
    ],
)
def test_a_wrong_type_is_named_as_the_schema_spells_it(value: bytes, text: str) -> None:
    """The reason is what a person reads in `azimuth quarantine show`."""
    [row] = decode_batch(raw([value]), JsonDecoder(COLUMNS)).to_pylist()
    assert row[COLUMN]["error_text"].startswith(text)


def test_a_bad_row_is_null_in_every_column() -> None:
    """Half a record would be worth nothing."""
    batch = decode_batch(raw([b'{"id": 7, "at": "yesterday"}']), JsonDecoder(COLUMNS))
    assert batch.column("id").to_pylist() == [None]
    assert batch.schema.field(COLUMN).type == REASON


@pytest.mark.parametrize("beside", [b'{"id": 1}', b'{"price": 1.5}'], ids=["alone", "beside a value read exactly"])
@pytest.mark.parametrize(("levels", "error"), [(200, None), (201, "NotJson"), (1_000, "NotJson"), (2_000, "NotJson")])
def test_levels_have_one_bound_whatever_is_beside_them(levels: int, error: str | None, beside: bytes) -> None:
    """A replayed record must decode as before, although the depth of the stack may differ."""
    inner = levels - 1
    for value in (b"[" * inner + b"1.5" + b"]" * inner, b'{"q":' * inner + b"1.5" + b"}" * inner):
        for policy in ("rescue", "ignore"):
            (_, found), (_, good) = decoded([b'{"deep":' + value + b"}", beside], JsonDecoder(COLUMNS, policy))
            assert (found, good) == (error, None)


def test_a_schema_is_inferred_from_what_is_there() -> None:
    """The type that holds all that was seen; text where none does; records that are poison say nothing."""
    found = infer_columns([b'{"a": 1, "b": "x", "c": null}', None, b"nonsense", b'{"a": 2.5, "d": [1], "b": 5}'])
    assert found == pa.schema(
        [("a", pa.float64()), ("b", pa.string()), ("c", pa.string()), ("d", pa.list_(pa.int64()))]
    )
    with pytest.raises(OptionError, match="valueSchema"):
        infer_columns([b"nonsense", None])


def test_members_that_differ_in_case_only_are_told() -> None:
    """One record written by hand would otherwise end the query where the table is made, without a way out."""
    with pytest.raises(OptionError, match="members 'Delay' and 'delay' differ in case only"):
        infer_columns([b'{"delay": 1}', b'{"Delay": 2}'])


def test_a_schema_may_be_given_as_spark_writes_it() -> None:
    """The format of `df.schema.json()`."""
    text = '{"type": "struct", "fields": [{"name": "a", "type": {"type": "array", "elementType": "integer"}}]}'
    assert given_columns(text) == pa.schema([("a", pa.list_(pa.int32()))])


@pytest.mark.parametrize("text", ["", "[]", "{}", '{"a": "integerish"}', '"string"'])
def test_a_schema_that_is_none_is_refused(text: str) -> None:
    """The message shows what is needed."""
    with pytest.raises(OptionError, match="valueSchema"):
        given_columns(text)


def test_a_column_may_not_have_the_name_of_a_coordinate() -> None:
    """It would not be known which offset is meant."""
    with pytest.raises(OptionError, match="'offset'"):
        decoded_schema(arrow_schema(headers=False), pa.schema([("offset", pa.int64())]))


def test_a_batch_that_is_decoded_in_slices_is_one_batch() -> None:
    """Rows keep their places, and a bad one says why at its own."""
    values: list[bytes | None] = [b'{"id": %d}' % number for number in range(2_500)]
    poison = (0, 999, 1_000, 2_499)
    for number in poison:
        values[number] = b"{%d" % number
    batch = decode_batch(raw(values), JsonDecoder(COLUMNS))
    reasons = batch.column(COLUMN).to_pylist()
    assert {number: one["value"] for number, one in enumerate(reasons) if one} == {n: b"{%d" % n for n in poison}
    ids = batch.column("id").to_pylist()
    assert ids == [None if number in poison else number for number in range(2_500)]
