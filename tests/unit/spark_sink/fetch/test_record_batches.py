"""Records as columns."""

import numpy as np
import pyarrow as pa
import pytest
from confluent_kafka import Producer

from producer.testing import MockCluster
from spark_sink.fetch import range_reader
from spark_sink.fetch.librdkafka import NativeConsumer
from spark_sink.fetch.librdkafka_symbols import MESSAGE
from spark_sink.fetch.raw_columns import arrow_schema
from spark_sink.fetch.record_batches import record_batch
from spark_sink.options.fetch_settings import FetchSettings
from spark_sink.ranges.batch_offset import Range


def test_a_time_that_microseconds_cannot_count_is_none() -> None:
    """Producers may write any 64 bits: multiplied without a look, the largest become a time long ago."""
    records, addresses = np.zeros(5, MESSAGE), np.zeros(5, np.uint64)
    records["timestamp"] = [-1, 0, 9_223_372_036_854_775, 9_223_372_036_854_776, 2**63 - 1]
    batch = record_batch(records, addresses, pa.array(["t"] * 5), arrow_schema(headers=False))
    times = batch["timestamp"].cast(pa.int64()).to_pylist()
    assert times == [None, 0, 9_223_372_036_854_775_000, None, None]


def test_the_type_of_a_timestamp_has_sparks_numbers(monkeypatch: pytest.MonkeyPatch) -> None:
    """The numbers of librdkafka are higher by one, and its 0 means no timestamp."""
    kept: dict[str, NativeConsumer] = {}
    monkeypatch.setattr(range_reader, "_idle", kept)
    with MockCluster(["az-a"]) as cluster:
        kafka = {"bootstrap.servers": cluster.bootstrap_servers}
        writer = Producer(kafka)
        writer.produce("t", b"v", partition=0)
        assert writer.flush(30) == 0
        settings = FetchSettings(kafka={**kafka, "group.id": "none"}, timestamp_type=True)
        (batch,) = range_reader.fetch([Range("t", 0, 0, 1)], settings)
        for one in kept.values():
            one.close()
    assert batch.schema == arrow_schema(headers=False, timestamp_type=True)
    assert batch.column("timestampType").to_pylist() == [0], "the producer set it"
