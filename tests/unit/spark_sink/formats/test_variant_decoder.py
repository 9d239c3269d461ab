"""JSON into one column of Spark's variant type."""

import json
import math

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pyspark.sql.pandas.types import from_arrow_schema, to_arrow_schema
from pyspark.sql.types import StructType, VariantType, VariantVal

from spark_sink.formats import VariantDecoder
from spark_sink.formats.variant_type import VARIANT, is_variant

_JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**63), 2**63 - 1) | st.text(st.characters(exclude_categories=["Cs"])),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=5), inner, max_size=4),
    max_leaves=12,
)


@given(st.lists(_JSON, max_size=5))
def test_a_value_comes_back_as_it_was(values: list[object]) -> None:
    """Whatever its shape: nothing is known of it beforehand."""
    found = VariantDecoder().decode([json.dumps(value).encode() for value in values])
    assert not found.bad
    rows = found.columns[0].to_pylist()
    assert [VariantVal(row["value"], row["metadata"]).toPython() for row in rows] == values


@pytest.mark.parametrize(
    ("value", "error"),
    [
        (None, "NullValue"),
        (b"", "NotJson"),
        (b"{", "NotJson"),
        (b"\xff", "NotJson"),
        (b"NaN", "NotJson"),
        (b'"\\ud800"', "NotJson"),
        (b"[" * 2_000 + b"]" * 2_000, "NotJson"),
        pytest.param(json.dumps("x" * (17 << 20)).encode(), "NoVariant", id="17 MB: a variant holds 16"),
    ],
)
def test_poison_is_a_row_with_its_reason(value: bytes | None, error: str) -> None:
    """And its neighbours are untouched."""
    found = VariantDecoder().decode([b"1", value, b'{"a": 1.5}'])
    assert {number: one.error for number, one in found.bad.items()} == {1: error}
    assert found.columns[0].is_valid().to_pylist() == [True, False, True]
    last = found.columns[0][2].as_py()
    assert math.isclose(float(VariantVal(last["value"], last["metadata"]).toPython()["a"]), 1.5)


def test_spark_sees_a_variant_and_not_a_struct() -> None:
    """In both directions; a struct that only looks like one stays a struct."""
    schema = from_arrow_schema(VariantDecoder().columns)
    assert schema == StructType().add("value", VariantType())
    assert is_variant(to_arrow_schema(schema).field("value").type)
    assert not is_variant(pa.struct([("value", pa.binary()), ("metadata", pa.binary())]))
    assert not is_variant(pa.binary())
    assert to_arrow_schema(schema).field("value").type == VARIANT
