"""Which schemas of a registry are used while a query runs, and what the log says of the others."""

import json
from typing import Any

import pyarrow as pa
import pytest

from spark_sink.formats import AvroDecoder
from spark_sink.formats.schema_registry import Registered
from spark_sink.sink.newer_schema import new_columns, why_not
from tests.unit.spark_sink.formats.registered import Schemas, flight_schema

X = {"name": "x", "type": "long"}
Y = {"name": "y", "type": ["null", "string"], "default": None}
Z = {"name": "z", "type": "int"}
LATER = {**Z, "default": 0}


def _stop(*fields: dict[str, Any], name: str = "Stop") -> dict[str, Any]:
    return {"type": "record", "name": name, "fields": list(fields)}


def _decoder(kind: object, *more: dict[str, Any]) -> AvroDecoder:
    schema = flight_schema({"name": "place", "type": kind}, *more)
    return AvroDecoder(Schemas({}), Registered(json.dumps(schema), {}))


def _why(before: AvroDecoder, latest: AvroDecoder, table: pa.Schema | None = None) -> str | None:
    return why_not(before, latest, lambda decoder: decoder.columns, [("t", before.columns if table is None else table)])


def _array(kind: object) -> dict[str, object]:
    return {"type": "array", "items": kind}


def _map(kind: object) -> dict[str, object]:
    return {"type": "map", "values": ["null", kind]}


@pytest.mark.parametrize("around", [lambda kind: kind, _array, _map], ids=["record", "array", "map"])
def test_a_field_with_a_default_inside_a_record_is_taken_up(around: Any) -> None:
    """In any order, and in a new record: its own default counts, not those of the fields in it."""
    before = _decoder(around(_stop(X)))
    assert _why(before, _decoder(around(_stop(Y, X, LATER)))) is None
    inner = {"name": "inner", "type": ["null", _stop(Z, name="Inner")], "default": None}
    latest = _decoder(around(_stop(X, inner)), {"name": "gate", "type": "string", "default": ""})
    assert _why(before, latest) is None
    path = {"record": "place", "array": "place.element", "map": "place.value"}
    inside = next(one for one in path.values() if f"{one}.x" in before.required)
    assert new_columns(before, latest) == f"{inside}.inner, gate"


@pytest.mark.parametrize(
    ("before", "latest", "said"),
    [
        (_stop(X, Y), _stop(X), "it removes or changes place.y"),
        (_stop(X), _stop({"name": "x", "type": "string"}), "it removes or changes place.x"),
        (_stop(X), _stop({"name": "x", "type": "double"}), "it removes or changes place.x"),
        (_array(_stop(X)), _stop(X), "it removes or changes place"),
        (_stop(X), _stop(X, Z), "its fields place.z have no default"),
        (_map(_stop(X)), _map(_stop(X, Z)), "its fields place.value.z have no default"),
        (_stop(X), _stop(X, {"name": "X", "type": "long", "default": 0}), "field 'place.x' is called 'place.X'"),
    ],
    ids=["removed", "changed", "wider", "another shape", "no default", "no default in a map", "names in two cases"],
)
def test_a_schema_that_a_table_cannot_follow_waits_for_a_restart(before: object, latest: object, said: str) -> None:
    """The log names the field with its path."""
    assert said in str(_why(_decoder(before), _decoder(latest)))


def test_a_table_that_has_the_field_with_another_type_refuses_the_schema() -> None:
    """Somebody may have added it by hand."""
    table = pa.schema([("id", pa.int64()), ("place", pa.struct([("z", pa.string()), ("x", pa.int64())]))])
    before, latest = _decoder(_stop(X)), _decoder(_stop(X, LATER))
    assert "t: field 'place.z' is string in the table and int32" in str(_why(before, latest, table))


def test_a_record_inside_itself_has_no_end_of_required_fields() -> None:
    """Its column is JSON text."""
    tree = _stop(X, {"name": "more", "type": _array("Stop")})
    assert _decoder(tree).required == {"id", "place", "place.x", "place.more"}
