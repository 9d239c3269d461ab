"""Records as columns."""

import numpy as np
import pyarrow as pa
import pytest

from spark_sink.fetch.librdkafka import MESSAGE
from spark_sink.fetch.raw_columns import arrow_schema
from spark_sink.fetch.record_batches import record_batch


def test_a_time_that_microseconds_cannot_count_is_none(monkeypatch: pytest.MonkeyPatch) -> None:
    """Producers may write any 64 bits: multiplied without a look, the largest become a time long ago."""
    stamps = np.array([-1, 0, 9_223_372_036_854_775, 9_223_372_036_854_776, 2**63 - 1], np.int64)
    monkeypatch.setattr("spark_sink.fetch.record_batches.timestamps", lambda _: stamps)
    records, addresses = np.zeros(5, MESSAGE), np.zeros(5, np.uint64)
    batch = record_batch(records, addresses, pa.array(["t"] * 5), arrow_schema(headers=False))
    times = batch["timestamp"].cast(pa.int64()).to_pylist()
    assert times == [None, 0, 9_223_372_036_854_775_000, None, None]
