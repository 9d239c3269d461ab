"""The compiled JSON decoder beside the reference: the same bits, the same bad rows, the same reasons."""

import json
import pickle
from collections.abc import Sequence
from random import Random

import pyarrow as pa
import pyarrow.compute as pc
import pytest

from spark_sink.formats import JsonDecoder, decode_batch, json_decoder
from spark_sink.formats.bad_values_quarantined import COLUMN
from spark_sink.formats.declared_or_inferred_columns import given_columns
from spark_sink.formats.unknown_policy import POLICIES
from tests.unit.spark_sink.formats.examples import raw
from tests.unit.spark_sink.formats.json_documents import Documents, draw_schema

compiled = pytest.importorskip("spark_sink.formats.json_compiled", reason="built without a C compiler")


class Reference(JsonDecoder):
    """The decoder without its quick way."""

    def quick(self, values: pa.Array) -> None:
        """Leave every value to `decode`."""


def bits(array: pa.Array) -> object:
    """Everything that an array holds, with floats as their bits."""
    if pa.types.is_struct(array.type):
        return [array.is_null().to_pylist(), *map(bits, array.flatten())]
    if pa.types.is_list(array.type):
        return [pc.list_value_length(array).to_pylist(), bits(array.flatten())]
    if pa.types.is_floating(array.type):
        return array.view(pa.int32() if pa.types.is_float32(array.type) else pa.int64()).to_pylist()
    if pa.types.is_date(array.type) or pa.types.is_timestamp(array.type):
        return array.cast(pa.int32() if pa.types.is_date(array.type) else pa.int64()).to_pylist()
    return array.to_pylist()


def differences(one: pa.RecordBatch, other: pa.RecordBatch) -> list[str]:
    """The columns that differ."""
    assert one.schema.equals(other.schema, check_metadata=True)
    one.validate(full=True)
    return [name for name in one.schema.names if bits(one.column(name)) != bits(other.column(name))]


def compare(seed: int) -> int:
    """Decode what a seed draws in both ways; return the number of rows that the compiled decoder took."""
    random = Random(seed)
    columns, policy, texts = draw_schema(random), random.choice(POLICIES), random.random() < 0.5
    documents = Documents(columns, random, random.choice([0.0, 0.01, 0.05, 0.2]))
    rows = random.choice([1, 2, 3, 5, 8, 13, 40])
    values = [documents.draw() for _ in range(rows)]
    if random.random() < 0.01:
        # Several slices, with bad rows in some of them.
        good = documents.draw()
        values = [random.choice(values) if random.random() < 0.001 else good for _ in range(2_500)]
    quick, reference = JsonDecoder(columns, policy, texts=texts), Reference(columns, policy, texts=texts)
    batch = raw(values)
    if random.random() < 0.2:
        batch = batch.slice(random.randint(0, rows))
    found, expected = decode_batch(batch, quick), decode_batch(batch, reference)
    different = differences(found, expected)
    assert not different, (seed, columns, policy, texts, different, values[:50])
    taken = quick.quick(batch.column("value"))
    return 0 if taken is None else int((~taken.left).sum())


@pytest.mark.parametrize("seeds", [150, pytest.param(20_000, marks=[pytest.mark.slow, pytest.mark.matrix])])
def test_any_documents_give_the_same_rows_and_reasons(seeds: int) -> None:
    """Any schema and policy, any bytes; and most good rows take the quick way."""
    assert sum(map(compare, range(seeds))) > 2 * seeds


FLIGHT = {"n": 1, "carrier": "UA", "delay": None, "at": "2013-01-01T10:00:00Z", "price": "1.50", "tags": ["a", "b"]}
COLUMNS = given_columns(
    '{"n": "bigint", "carrier": "string", "delay": "double", "at": "timestamp", "price": "decimal(9,2)", '
    '"tags": ["string"]}'
)


def left(values: Sequence[bytes | None], decoder: JsonDecoder) -> list[bool]:
    """The rows that are left to the reference."""
    quick = decoder.quick(raw(values).column("value"))
    assert quick is not None
    found: list[bool] = quick.left.tolist()
    return found


def test_ordinary_records_take_the_quick_way_in_any_order_and_spelling() -> None:
    """Otherwise everything here would hold, at a twentieth of the speed."""
    turned = dict(reversed(FLIGHT.items()))
    values = [
        json.dumps(FLIGHT).encode(),
        json.dumps(turned, indent=2).encode(),
        json.dumps({**FLIGHT, "carrier": 'é 😀 "x" \n'}).encode(),
        json.dumps({**FLIGHT, "carrier": "é 😀"}, ensure_ascii=False).encode(),
        b"{}",
        b'{"delay":-0.30000000000000004,"n":999999999999999999,"price":12.5}',
    ]
    decoder = JsonDecoder(COLUMNS, "quarantine")
    assert not any(left(values, decoder))
    rows = decode_batch(raw(values), decoder)
    assert rows.column("carrier").to_pylist()[:4] == ["UA", "UA", 'é 😀 "x" \n', "é 😀"]
    assert rows.column("tags").to_pylist()[:3] == [["a", "b"]] * 3


def test_a_member_of_a_struct_is_no_member_of_its_record() -> None:
    """Both have a `c`: what followed `a` in the record before does not begin the struct in this one."""
    columns = given_columns('{"a": {"b": "bigint", "c": "bigint"}, "c": "bigint"}')
    values = [b'{"a":{"b":2},"c":3}', b'{"a":{"c":1}}', b'{"a":{"c":1},"c":4}', b'{"a":null,"c":5}']
    assert not any(left(values, JsonDecoder(columns)))
    found, expected = decode_batch(raw(values), JsonDecoder(columns)), decode_batch(raw(values), Reference(columns))
    assert not differences(found, expected)
    assert found.column("c").to_pylist() == [3, None, 4, 5]


def test_only_rows_that_are_not_certain_are_left() -> None:
    """A bad record does not slow down its neighbours; unknown members are left unless they are ignored."""
    values = [b'{"n":1}', b'{"n":"x"}', None, b'{"z":1}', b'{"n":2,"n":3}', b'{"n":4}']
    assert left(values, JsonDecoder(COLUMNS, "rescue")) == [False, True, True, True, True, False]
    assert left(values, JsonDecoder(COLUMNS, "ignore")) == [False, True, True, False, True, False]


def test_a_decoder_that_was_used_can_be_sent_to_a_task() -> None:
    """Spark pickles it; the compiled plan stays behind, and the task makes its own."""
    used = JsonDecoder(COLUMNS, "rescue")
    batch = raw([json.dumps(FLIGHT).encode()])
    rows = decode_batch(batch, used)
    assert decode_batch(batch, pickle.loads(pickle.dumps(used))).equals(rows)  # noqa: S301 -- made here


@pytest.mark.parametrize(
    "columns",
    [
        pa.schema([("a", pa.timestamp("ms", tz="UTC"))]),
        pa.schema([("a", pa.map_(pa.string(), pa.string()))]),
        pa.schema([pa.field("a", pa.struct([pa.field("b", pa.int64(), nullable=False)]))]),
        pa.schema([('"', pa.int64())]),
        pa.schema([("a", pa.int64()), ("a", pa.int64())]),
        pa.schema([]),
    ],
    ids=["time unit", "map", "not nullable", "name with a quote", "name twice", "no columns"],
)
def test_columns_without_a_plan_are_left_whole(columns: pa.Schema) -> None:
    """What the compiled decoder does not know is decoded as if it were not there."""
    assert JsonDecoder(columns).quick(raw([b'{"a":1}']).column("value")) is None


def test_without_the_compiled_module_all_rows_are_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    """A wheel in pure Python decodes as the compiled one."""
    documents = Documents(COLUMNS, Random(1), 0.05)
    batch = raw([documents.draw() for _ in range(2_500)])
    found = decode_batch(batch, JsonDecoder(COLUMNS, "rescue"))
    monkeypatch.setattr(json_decoder, "json_compiled", None)
    assert not differences(found, decode_batch(batch, JsonDecoder(COLUMNS, "rescue")))


@pytest.mark.parametrize("beside", [b'{"price":1.5}', b'{"price":"1.5"}'], ids=["inexact", "exact"])
def test_a_reason_has_the_digits_that_it_has_without_the_quick_way(beside: bytes) -> None:
    """The reference parses a slice again if doubles lose digits in it, and a reason then shows every digit."""
    batch = raw([beside, b'{"n":1.50}'])
    assert left(batch.column("value").to_pylist(), JsonDecoder(COLUMNS)) == [False, True]
    found, expected = decode_batch(batch, JsonDecoder(COLUMNS)), decode_batch(batch, Reference(COLUMNS))
    assert not differences(found, expected)
    assert ("'1.50'" if beside == b'{"price":1.5}' else "'1.5'") in found.column(COLUMN)[1]["error_text"].as_py()
