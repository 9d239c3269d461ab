"""JSON with any schema and values, compared with the standard library: each value decodes or has a reason."""

import json
import struct
from collections.abc import Mapping
from datetime import UTC, date, datetime
from decimal import Decimal
from typing import Any

import pyarrow as pa
from hypothesis import given, settings
from hypothesis import strategies as st

from spark_sink.formats import Decoder, JsonDecoder, VariantDecoder, infer_columns
from spark_sink.formats.declared_or_inferred_columns import given_columns
from spark_sink.formats.unknown_policy import COLUMN
from tests.unit.spark_sink.formats.examples import EXAMPLES, decoded

INTEGERS = {"byte": 7, "short": 15, "int": 31, "bigint": 63}
NAMES = st.sampled_from("abcdé")
KINDS = st.recursive(
    st.sampled_from(["string", "boolean", *INTEGERS, "float", "double", "date", "timestamp"])
    | st.tuples(st.integers(1, 38), st.integers(0, 38)).map(lambda p: f"decimal({max(p)},{p[1]})"),
    lambda inner: inner.map(lambda one: [one]) | st.dictionaries(NAMES, inner, min_size=1, max_size=3),
    max_leaves=5,
)
NUMBERS = st.one_of(
    st.integers(-(2**70), 2**70).map(str),
    st.integers(-200, 200).map(str),
    st.decimals(allow_nan=False, allow_infinity=False, places=3, min_value=-(10**20), max_value=10**20).map(str),
    st.floats(allow_nan=False, allow_infinity=False).map(repr),
    st.sampled_from(["1e300", "-1e39", "0.1000000000000000055511151231257827", "16777217", "9007199254740993", "1E-7"]),
)
TEXTS = st.text(max_size=5) | NUMBERS | st.sampled_from(["1e-999999999", "1e999999999", "+5", ".5", "5.", "nan", " 1"])


def _json(value: object) -> str:
    if isinstance(value, Decimal):
        return str(value)
    if isinstance(value, Mapping):
        return "{" + ",".join(f"{json.dumps(key)}:{_json(one)}" for key, one in value.items()) + "}"
    if isinstance(value, list):
        return "[" + ",".join(map(_json, value)) + "]"
    return json.dumps(value)


def _number(text: str) -> int | Decimal:
    return int(text) if text.lstrip("-").isdigit() else Decimal(text)


ANY = st.recursive(
    st.none() | st.booleans() | NUMBERS.map(_number) | TEXTS,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(NAMES, inner, max_size=3),
    max_leaves=6,
)


def _values(kind: object) -> st.SearchStrategy[Any]:
    """Values that mostly fit a type."""
    fitting: st.SearchStrategy[Any]
    if isinstance(kind, list):
        fitting = st.lists(_values(kind[0]), max_size=3)
    elif isinstance(kind, dict):
        # A name too many or too few now and then.
        fitting = st.fixed_dictionaries(
            {}, optional={name: _values(one) for name, one in [*kind.items(), ("z", "string")]}
        )
    elif kind == "boolean":
        fitting = st.booleans()
    elif kind == "string":
        fitting = TEXTS
    elif kind == "date":
        fitting = st.dates().map(str)
    elif kind == "timestamp":
        fitting = st.datetimes(datetime(1970, 1, 1), datetime(2200, 1, 1)).map(lambda one: one.isoformat() + "Z")  # noqa: DTZ001 -- the zone is added as text
    else:
        fitting = NUMBERS.map(_number) | NUMBERS
    return st.one_of(*[fitting] * 6, st.none(), ANY)


class UnfitError(Exception):
    """The model refuses a value."""


def _expected(kind: object, value: Any) -> object:  # noqa: C901, PLR0911 -- the model, a case a type
    """Return the expected column value from the standard library's parse; raises if the value does not fit."""
    if value is None:
        return None
    if isinstance(kind, list) and isinstance(value, list):
        return [_expected(kind[0], one) for one in value]
    if isinstance(kind, dict) and isinstance(value, dict):
        return {name: _expected(one, value.get(name)) for name, one in kind.items()}
    if not isinstance(kind, str):
        raise UnfitError
    if kind == "string" and isinstance(value, str):
        return value
    if kind == "boolean" and isinstance(value, bool):
        return value
    if kind in INTEGERS and type(value) is int and -(2 ** INTEGERS[kind]) <= value < 2 ** INTEGERS[kind]:
        return value
    if kind in {"float", "double"} and type(value) in {int, Decimal}:
        return _double(value) if kind == "double" else _float(value)
    if kind.startswith("decimal") and type(value) in {int, Decimal, str}:
        return _exact(kind, value)
    if kind == "date" and isinstance(value, str):
        return _parsed(date.fromisoformat, value)
    if kind == "timestamp" and isinstance(value, str) and value.endswith("Z"):
        return _parsed(datetime.fromisoformat, value)
    raise UnfitError


def _parsed(parse: Any, text: str) -> object:
    try:
        return parse(text)
    except ValueError:
        raise UnfitError from None


def _double(value: Decimal) -> float:
    return float(value)


def _float(value: Decimal) -> float:
    try:
        return float(struct.unpack("<f", struct.pack("<f", float(value)))[0])
    except OverflowError:
        raise UnfitError from None


def _exact(kind: str, value: int | str | Decimal) -> Decimal:
    precision, scale = map(int, kind[len("decimal(") : -1].split(","))
    try:
        number = Decimal(value)
    except ArithmeticError:
        raise UnfitError from None
    text = str(value)
    if not number.is_finite() or text != text.strip() or "_" in text or not text.isascii():
        raise UnfitError
    sign, digits, exponent = number.as_tuple()
    assert isinstance(exponent, int)
    while digits and not digits[-1] and exponent < -scale:
        digits, exponent = digits[:-1], exponent + 1
    if not any(digits):
        return Decimal(0)
    if exponent < -scale or number.adjusted() + 1 > precision - scale:
        raise UnfitError
    return Decimal((sign, digits, exponent))


def _rest(kind: object, value: Any) -> object:
    """The members that a type lacks."""
    if isinstance(kind, list) and isinstance(value, list):
        parts = [_rest(kind[0], one) for one in value]
        return parts if any(one is not None for one in parts) else None
    if isinstance(kind, dict) and isinstance(value, dict):
        rest = {name: _rest(kind[name], one) if name in kind else one for name, one in value.items()}
        return {name: one for name, one in rest.items() if name not in kind or one is not None} or None
    return None


def _strict(text: str) -> Any:
    return json.loads(text, parse_float=Decimal)


@EXAMPLES
def test_every_value_is_as_the_standard_library_has_it_or_has_a_reason(examples: int) -> None:
    """Any schema, any values, any neighbours: no good record is quarantined, and no unknown member is lost."""

    @settings(max_examples=examples)
    @given(
        st.dictionaries(NAMES, KINDS, min_size=1, max_size=4).flatmap(
            lambda kind: st.tuples(st.just(kind), st.lists(_values(kind), max_size=6))
        )
    )
    def check(drawn: tuple[dict[str, object], list[object]]) -> None:
        kind, values = drawn
        rows = decoded([_json(one).encode() for one in values], JsonDecoder(given_columns(json.dumps(kind)), "rescue"))
        for value, (row, error) in zip(values, rows, strict=True):
            text = row.pop(COLUMN)
            try:
                expected = _expected(kind, value) if isinstance(value, dict) else None
            except UnfitError:
                expected = None
            assert (error is None) == (expected is not None), (kind, value, error)
            if expected is not None:
                assert row == expected
                assert (None if text is None else _strict(str(text))) == _rest(kind, value)

    check()


@EXAMPLES
def test_columns_that_were_inferred_take_every_object(examples: int) -> None:
    """No record of the sample is refused, and of later records only those that contradict the sample."""

    @settings(max_examples=examples)
    @given(st.lists(st.dictionaries(NAMES, ANY, min_size=1, max_size=4), min_size=1, max_size=6))
    def check(sample: list[dict[str, object]]) -> None:
        texts = [_json(one).encode() for one in sample]
        columns = infer_columns(texts)
        rows = decoded(texts, JsonDecoder(columns, "rescue", texts=True))
        for value, (row, error) in zip(sample, rows, strict=True):
            assert error is None, (columns, value)
            assert row.pop(COLUMN) is None
            for field in columns:
                if pa.types.is_string(field.type) and not isinstance(value.get(field.name), str | None):
                    assert _strict(str(row[field.name])) == value[field.name]

    check()


def test_what_a_sample_does_not_show_is_taken_as_text() -> None:
    """An empty list, an empty object and null say nothing of the type; a column of no type would refuse all values."""
    columns = infer_columns([b'{"a": [], "b": {"c": null}, "d": {}, "e": [null], "f": [[]]}'])
    assert columns == pa.schema(
        [
            ("a", pa.string()),
            ("b", pa.struct([("c", pa.string())])),
            ("d", pa.string()),
            ("e", pa.string()),
            ("f", pa.list_(pa.string())),
        ]
    )
    later = b'{"a": ["q"], "b": {"c": 1.50}, "d": {"y": [1e400]}, "e": [7], "f": [[1], "x"]}'.replace(b"1e400", b"1.10")
    [(row, error)] = decoded([later], JsonDecoder(columns, texts=True))
    assert error is None
    assert row == {"a": '["q"]', "b": {"c": "1.50"}, "d": '{"y":[1.10]}', "e": "[7]", "f": ["[1]", "x"]}


@EXAMPLES
def test_broken_bytes_stop_no_batch_and_harm_no_neighbour(examples: int) -> None:
    """Whatever a producer's bug or a broken disk makes of a record."""
    good = b'{"a": 1, "b": [1.5, "x"], "c": {"d": "2020-01-01"}, "e": 12.50}'
    decoders: list[Decoder] = [
        JsonDecoder(given_columns('{"a": "int", "c": {"d": "date"}, "e": "decimal(4,2)"}'), policy)
        for policy in ("rescue", "quarantine", "ignore")
    ]

    @settings(max_examples=examples)
    @given(_mutations(good) | st.binary(max_size=40))
    def check(broken: bytes) -> None:
        for decoder in [*decoders[::2], VariantDecoder()]:
            rows = decoded([good, broken, good], decoder)
            assert [error for _, error in rows][::2] == [None, None]

    check()


def _mutations(good: bytes) -> st.SearchStrategy[bytes]:
    places = st.integers(0, len(good))
    replaced = st.builds(
        lambda at, new, skip: good[:at] + new + good[at + skip :], places, st.binary(max_size=3), st.integers(0, 3)
    )
    return replaced | places.map(lambda at: good[:at])


def test_records_that_mix_decimals_of_texts_and_numbers_are_all_read() -> None:
    """Several producers of one topic rarely agree; digits that a double lacks are kept."""
    decoder = JsonDecoder(given_columns('{"p": "decimal(38,18)"}'))
    values = [b'{"p": "12.34"}', b'{"p": 12}', b'{"p": 12.34}', b'{"p": 12345678901234567.123456789012345678}']
    rows = decoded(values, decoder)
    assert rows == [
        ({"p": Decimal("12.34")}, None),
        ({"p": Decimal(12)}, None),
        ({"p": Decimal("12.34")}, None),
        ({"p": Decimal("12345678901234567.123456789012345678")}, None),
    ]


def test_a_timestamp_keeps_its_instant() -> None:
    """Offsets other than UTC are those of the text."""
    [(row, _)] = decoded(
        [b'{"t": "2020-01-02T03:04:05.000006+02:00"}'], JsonDecoder(given_columns('{"t": "timestamp"}'))
    )
    assert row == {"t": datetime(2020, 1, 2, 1, 4, 5, 6, tzinfo=UTC)}
