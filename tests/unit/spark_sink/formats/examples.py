"""Property tests of decoders: how many examples, and raw batches of values."""

from collections.abc import Sequence

import pyarrow as pa
import pytest

from spark_sink.fetch.raw_columns import arrow_schema
from spark_sink.formats import Decoder, decode_batch
from spark_sink.formats.bad_values_quarantined import COLUMN

# A run of seconds, and a deeper one.
EXAMPLES = pytest.mark.parametrize("examples", [60, pytest.param(300, marks=pytest.mark.slow)])


def raw(values: Sequence[bytes | None]) -> pa.RecordBatch:
    """A raw batch of these values, at the offsets from 0."""
    n = len(values)
    arrays = [
        pa.array(["t"] * n, pa.string()),
        pa.array([0] * n, pa.int32()),
        pa.array(range(n), pa.int64()),
        pa.array([0] * n, pa.timestamp("us", tz="UTC")),
        pa.array([b"k"] * n, pa.binary()),
        pa.array(values, pa.binary()),
    ]
    return pa.RecordBatch.from_arrays(arrays, schema=arrow_schema(headers=False))


def decoded(values: Sequence[bytes | None], decoder: Decoder) -> list[tuple[dict[str, object], str | None]]:
    """The decoded row of each value with the class of its error; a bad row has no values, and is kept whole."""
    batch = decode_batch(raw(values), decoder)
    batch.validate(full=True)
    assert batch.column("offset").to_pylist() == list(range(len(values)))
    reasons = batch.column(COLUMN).to_pylist()
    columns = {name: batch.column(name) for name in decoder.columns.names}
    rows = [{name: _python(column[number]) for name, column in columns.items()} for number in range(len(values))]
    for row, reason, value in zip(rows, reasons, values, strict=True):
        assert reason is None or (set(row.values()) == {None} and reason["value"] == value and reason["error_text"])
    return [(row, reason and reason["error_class"]) for row, reason in zip(rows, reasons, strict=True)]


def _python(value: pa.Scalar) -> object:
    """The value in Python; a date or time beyond Python's years, which a column may hold, as Arrow's number."""
    try:
        return value.as_py()
    except (OverflowError, ValueError):
        return value.value
