"""What `SparkLanding` refuses, and bad rows on their way through Spark's files."""

import base64
import json
from datetime import UTC, datetime
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from spark_sink import SparkLanding
from spark_sink.errors import OptionError
from spark_sink.formats.bad_values_quarantined import COLUMN, REASON, split
from spark_sink.sink.spark_landing import _unpacked

GOOD = {"path": "/lake/t", "kafka.group.id": "g", "checkpointLocation": "/lake/c"}


@pytest.mark.parametrize(
    ("name", "more", "sentence"),
    [
        ("delta", {}, "need one of delta-exactly-once, iceberg-exactly-once"),
        ("delta-exactly-once", {"batchId": "1"}, "leave it out"),
        ("delta-exactly-once", {"kafka.group.id": ""}, "needs the option 'kafka.group.id'"),
        ("delta-exactly-once", {"pth": "/x"}, "has no option 'pth'"),
        ("iceberg-exactly-once", {}, "catalog.namespace.table"),
    ],
)
def test_a_mistake_is_refused_before_the_query_starts(name: str, more: dict[str, str], sentence: str) -> None:
    """One sentence that names the option."""
    with pytest.raises(OptionError, match=sentence):
        SparkLanding(name, {**GOOD, **more})


def as_spark(value: Any, *, nulls: bool) -> Any:
    """A value as Spark's `to_json` writes it: binary values in Base64, and fields that are null only if asked for."""
    if isinstance(value, bytes):
        return base64.b64encode(value).decode()
    if isinstance(value, dict):
        return {name: as_spark(one, nulls=nulls) for name, one in value.items() if nulls or one is not None}
    return [as_spark(one, nulls=nulls) for one in value] if isinstance(value, list) else value


BYTES = st.one_of(st.none(), st.binary(max_size=5))
HEADER = st.one_of(st.none(), st.fixed_dictionaries({"key": st.one_of(st.none(), st.text(max_size=3)), "value": BYTES}))
REASONS = st.fixed_dictionaries(
    {
        "error_class": st.text(max_size=5),
        "error_text": st.one_of(st.none(), st.text(max_size=5)),
        "schema_id": st.one_of(st.none(), st.integers(0, 2**31 - 1)),
        "key": BYTES,
        "value": BYTES,
        "headers": st.one_of(st.none(), st.lists(HEADER, max_size=3)),
    }
)


@given(reasons=st.lists(REASONS, min_size=1, max_size=5), nulls=st.booleans())
def test_bad_rows_come_back_from_json_as_they_were(reasons: list[dict[str, Any]], nulls: bool) -> None:  # noqa: FBT001 -- an example
    """The topic and each part of the reason, null or empty, whether or not the session's JSON has nulls."""
    numbers = range(len(reasons))
    packed = [json.dumps({"topic": f"t{n}", COLUMN: as_spark(reasons[n], nulls=nulls)}) for n in numbers]
    offsets = {"partition": pa.array([0] * len(reasons), pa.int32()), "offset": pa.array(numbers, pa.int64())}
    found = _unpacked(pa.table({"topic": packed, **offsets}))
    direct = pa.table({"topic": [f"t{n}" for n in numbers], **offsets, COLUMN: pa.array(reasons, REASON)})
    now = datetime.now(UTC)
    assert split(found, "run", now)[1].equals(split(direct, "run", now)[1])
