"""Columns that a table keeps for JSON values: agents that take them from there decode alike."""

import json
from pathlib import Path

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from spark_sink.formats import JsonDecoder, infer_columns
from spark_sink.formats.json_evolution import agreed_columns, common_columns, new_columns, value_columns
from spark_sink.formats.unknown_policy import COLUMN
from spark_sink.lake.delta_table import DeltaLakeTable
from spark_sink.lake.schema_fit import fitting
from spark_sink.lake.table_contract import KEYS
from tests.unit.spark_sink.formats.examples import decoded
from tests.unit.spark_sink.formats.test_json_properties import ANY, _json

KNOWN = pa.schema(
    [
        ("topic", pa.string()),
        ("id", pa.int64()),
        ("place", pa.struct([("x", pa.int64())])),
        ("items", pa.list_(pa.struct([("q", pa.int64())]))),
    ]
)


def test_columns_that_json_cannot_fill_are_left_to_their_writer() -> None:
    """A table may have columns of another writer; a raw table has none that values could fill."""
    table = pa.schema(
        [
            ("topic", pa.string()),
            ("key", pa.binary()),
            (COLUMN, pa.string()),
            ("id", pa.int64()),
            ("tags", pa.list_(pa.struct([("x", pa.decimal128(5, 2))]))),
            ("blob", pa.binary()),
            ("by_name", pa.map_(pa.string(), pa.string())),
            ("part", pa.struct([("raw", pa.binary())])),
        ]
    )
    found = value_columns(table)
    assert found is not None
    assert found.names == ["id", "tags"]
    assert value_columns(pa.schema([("topic", pa.string()), ("value", pa.binary())])) is None


def test_tables_share_the_columns_that_they_have_alike() -> None:
    """A column that one of them lacks, or has in another type, would be refused there."""
    one = pa.schema([("id", pa.int64()), ("x", pa.string()), ("y", pa.int64())])
    assert common_columns([one, pa.schema([("y", pa.string()), ("id", pa.int64())])]) == pa.schema([("id", pa.int64())])
    assert common_columns([one, pa.schema([("z", pa.string())])]) is None
    assert common_columns([]) is None
    inner, other = pa.struct([("x", pa.int64()), ("y", pa.int64())]), pa.struct([("z", pa.int64()), ("x", pa.int64())])
    both = [pa.schema([("s", kind), ("l", pa.list_(kind)), ("n", kind)]) for kind in (inner, other)]
    both.append(both[0].set(2, pa.field("n", pa.struct([("y", pa.int64())]))))
    shared = pa.struct([("x", pa.int64())])
    assert common_columns(both) == pa.schema([("s", shared), ("l", pa.list_(shared))])


def test_tasks_agree_on_the_fields_of_a_struct() -> None:
    """One field without a common type must not keep the others from the table."""
    parts = [pa.schema([("s", pa.list_(pa.struct([("a", pa.int64()), ("b", pa.bool_())])))])]
    parts.append(pa.schema([("s", pa.list_(pa.struct([("b", pa.int64()), ("c", pa.int64()), ("A", pa.int64())])))]))
    merged = pa.struct([("a", pa.int64()), ("b", pa.string()), ("c", pa.int64())])
    assert agreed_columns(parts) == pa.schema([("s", pa.list_(merged))])


@pytest.mark.parametrize(
    ("rescued", "expected"),
    [
        ('{"coupon": 5}', [("coupon", pa.int64())]),
        ('{"coupon": {"code": "x", "off": 5}}', [("coupon", pa.struct({"code": pa.string(), "off": pa.int64()}))]),
        ('{"place": {"y": 1}}', [("place", pa.struct({"y": pa.int64()}))]),  # inside a column that is there
        ('{"place": {"X": 1, "y z": 2, "n": null}}', []),  # as above, inside it
        ('{"place": 5, "id": {"y": 1}}', []),  # no struct in one of both places
        ('{"items": [null, {"r": 2.5}, 5]}', [("items", pa.list_(pa.struct({"r": pa.float64()})))]),
        ('{"coupon": null, "a": [], "b": {}, "c": [null]}', []),  # nothing shows a type
        ('{"ID": 1, "Topic": 2, "offset": 3, "_RESCUED": 4}', []),  # names that are taken, whatever their case
        ('{"a b": 1, "c=d": 1, "": 1}', []),  # no names of columns
        ('{"a": 1, "A": "x"}', [("A", pa.string())]),  # one of two that differ in case
        ('{"a": {"b": 1, "B": 2}, "z": true}', [("z", pa.bool_())]),
        ('{"n": 123456789012345678901234567890}', [("n", pa.float64())]),
    ],
)
def test_fields_become_columns_where_a_table_can_take_them(
    rescued: str, expected: list[tuple[str, pa.DataType]]
) -> None:
    """A field that any producer may send must not make the table refuse the batch."""
    assert new_columns([rescued], KNOWN) == pa.schema(expected)


def test_objects_used_as_maps_do_not_fill_the_table_with_columns() -> None:
    """Names that are identifiers have no end."""
    assert len(new_columns([json.dumps({f"user-{n}": n for n in range(5_000)})], KNOWN)) < 1_000


def _nested(levels: int, inside: object, *, lists: bool) -> object:
    for _ in range(levels // 2):
        inside = {"a": [inside]} if lists else {"a": {"a": inside}}
    return inside


@pytest.mark.parametrize("lists", [False, True])
def test_no_record_makes_a_table_deeper_than_its_readers(tmp_path: Path, *, lists: bool) -> None:
    """One record, or several of which each is a little deeper: the table could not be read any more, by any agent."""
    table = DeltaLakeTable(str(tmp_path), "g")
    known = pa.schema([("id", pa.int64())])
    table.create(pa.schema([*KEYS.items(), *known]))
    for levels in (150, *range(10, 150, 20)):
        deep = {"deep": _nested(levels, {f"b{levels}": 1}, lists=lists), f"more{levels}": 1}
        text = json.dumps(deep).encode()
        [(row, error)] = decoded([text], JsonDecoder(known, "evolve", texts=True))
        assert error is None
        table.add_columns(new_columns([str(row[COLUMN])], known))
        found = DeltaLakeTable(str(tmp_path), "g").refresh()
        assert found is not None
        known = value_columns(found.schema) or known
        [(row, error)] = decoded([text], JsonDecoder(known, "evolve", texts=True))
        assert (error, row[f"more{levels}"]) == (None, 1)
    sample = infer_columns([json.dumps(_nested(150, 1, lists=lists)).encode()])
    DeltaLakeTable(str(tmp_path / "new"), "g").create(pa.schema([*KEYS.items(), *sample]))
    assert DeltaLakeTable(str(tmp_path / "new"), "g").refresh() is not None


def test_tasks_that_saw_other_values_agree() -> None:
    """Each task sees only some records; fields without a common type become text."""
    parts = [
        pa.schema([("a", pa.int64()), ("b", pa.int64()), ("s", pa.struct([("x", pa.int64())]))]),
        pa.schema([("a", pa.float64()), ("b", pa.bool_()), ("s", pa.struct([("y", pa.string())])), ("A", pa.string())]),
    ]
    assert agreed_columns(parts) == pa.schema(
        [("a", pa.float64()), ("b", pa.string()), ("s", pa.struct([("x", pa.int64()), ("y", pa.string())]))]
    )


@given(st.lists(st.dictionaries(st.sampled_from(["a", "A", "b c", "d", "id"]), ANY, max_size=4), max_size=5))
def test_rescued_records_decode_into_the_columns_made_of_them(values: list[dict[str, object]]) -> None:
    """After its columns were made, a record of the batch that showed them is good and decodes into them."""
    texts = [_json(one).encode() for one in values]
    known = pa.schema([("q", pa.string())])
    rescued = [str(row[COLUMN]) for row, _ in decoded(texts, JsonDecoder(known, "evolve", texts=True)) if row[COLUMN]]
    made = pa.schema([*known, *new_columns(rescued, known)])
    again = decoded(texts, JsonDecoder(made, "evolve", texts=True))
    assert [error for _, error in again] == [None] * len(values)


SCALARS = st.none() | st.booleans() | st.integers(-9, 9) | st.sampled_from(["", "x", "1"])
NAMES = st.sampled_from(["a", "b", "A", "b c", "place"])
VALUES = st.recursive(
    SCALARS, lambda one: st.dictionaries(NAMES, one, max_size=3) | st.lists(one, max_size=3), max_leaves=6
)
OBJECTS = st.dictionaries(NAMES, VALUES, max_size=3)


def _lost(value: object, column: object, rest: object, path: str = "") -> list[str]:
    """The paths of members that neither the column nor the text of `_rescued` has."""
    if value in (None, [], {}) or value in (column, rest) or (isinstance(column, str) and _parsed(column) == value):
        return []
    if isinstance(value, dict):
        columns, rests = (one if isinstance(one, dict) else {} for one in (column, rest))
        return [
            lost
            for name, one in value.items()
            for lost in _lost(one, columns.get(name), rests.get(name), f"{path}.{name}")
        ]
    if isinstance(value, list):
        empty = [None] * len(value)
        cells = (column if isinstance(column, list) else empty, rest if isinstance(rest, list) else empty)
        parts = zip(value, *cells, strict=True)
        return [lost for one, some, other in parts for lost in _lost(one, some, other, f"{path}[]")]
    return [path]


def _fits(one: pa.Field, known: pa.Schema) -> bool:
    return bool(fitting("", known, pa.schema([one])))


def _parsed(text: str) -> object:
    try:
        return json.loads(text)
    except ValueError:
        return text


@settings(max_examples=50)
@given(st.lists(st.lists(OBJECTS, min_size=1, max_size=4), min_size=1, max_size=4))
def test_no_field_at_any_depth_vanishes_while_a_table_evolves(batches: list[list[dict[str, object]]]) -> None:
    """A member that gets no column, or only with the next batch, is in `_rescued`."""
    known = KNOWN
    for batch in batches:
        wanted = []
        for task in (batch[::2], batch[1::2]):  # each task sees its records only
            decoder = JsonDecoder(pa.schema([one for one in known if one.name != "topic"]), "evolve", texts=True)
            rows = decoded([_json(one).encode() for one in task], decoder)
            for value, (row, error) in zip(task, rows, strict=True):
                rest = json.loads(str(row[COLUMN] or "{}"))
                assert error is not None or _lost(value, row, rest) == []  # a bad record is kept whole
            wanted.append(new_columns([str(row[COLUMN]) for row, _ in rows if row[COLUMN]], known))
        wanted_columns = [one for one in agreed_columns(wanted) if _fits(one, known)]
        known = pa.unify_schemas([known, pa.schema(wanted_columns)])
