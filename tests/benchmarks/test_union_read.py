"""The union of a table and Kafka: seconds to the first row, and records a second of what the table lacks."""

import statistics
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path

import pytest

from spark_sink.demo.cluster import Cluster
from spark_sink.fetch.range_reader import fetch
from spark_sink.fetch.raw_columns import arrow_schema
from spark_sink.options.source_options import SourceOptions
from spark_sink.ranges.batch_offset import Offset, Range
from spark_sink.sink.query_tables import Tables
from spark_sink.sink.rows_by_table import Sorting
from spark_sink.sink.sink_options import SinkOptions
from spark_sink.source.union_read.union_reader import Union, open_union
from tests.benchmarks.lake_report import save
from tests.benchmarks.spark_topics import delete, flights, one_large_topic

pytestmark = pytest.mark.benchmark

PARTITIONS, TIMES, TAIL, ROUNDS = 6, 10, 100_000, 7


def _land(cluster: Cluster, topic: str, records: int, table: dict[str, str]) -> None:
    """Commit all records but the tail, in one batch."""
    each, left = (records - TAIL) // PARTITIONS, records // PARTITIONS
    ranges = [Range(topic, number, 0, min(each, left)) for number in range(PARTITIONS)]
    source = SourceOptions.parse(
        {"kafka.bootstrap.servers": cluster.bootstrap_servers, "kafka.group.id": "g", "subscribe": topic}
    )
    options = SinkOptions.parse({**table, "kafka.group.id": "g", "checkpointLocation": "c"})
    sorting = Sorting(options, arrow_schema(headers=False), "run")
    for batch in fetch(ranges, source.fetch, keep=False):
        sorting.write(batch)
    Tables(options).commit(Offset.of(ranges), sorting.close(), arrow_schema(headers=False), 0)


def _first_row_s(look: Callable[[], Union]) -> float:
    began = time.perf_counter()
    next(look().stored())
    return time.perf_counter() - began


def _tail(look: Callable[[], Union]) -> tuple[int, float]:
    found = look()
    began = time.perf_counter()
    rows = sum(batch.num_rows for batch in found.unread())
    return rows, time.perf_counter() - began


def test_the_first_row_and_the_tail(cluster: Cluster, tmp_path: Path) -> None:
    """A table of 3.3 million rows in each format, and 100,000 records that it lacks; medians."""
    records = flights()
    topic = one_large_topic(cluster, records, TIMES, PARTITIONS)
    total = len(records) * TIMES
    warehouse = {"catalog.warehouse": str(tmp_path / "warehouse")}
    tables = {
        "delta": ({"path": str(tmp_path / "table")}, str(tmp_path / "table"), {}),
        "iceberg": ({"path": "lake.raw.t", "tableFormat": "iceberg", **warehouse}, "iceberg://lake.raw.t", warehouse),
    }
    result = {}
    for name, (sink, address, storage) in tables.items():
        _land(cluster, topic, total, sink)
        look = partial(open_union, address, cluster.bootstrap_servers, options=storage)
        firsts = [_first_row_s(look) for _ in range(ROUNDS)]
        tails = [_tail(look) for _ in range(ROUNDS)]
        stored = sum(batch.num_rows for batch in look().stored())
        assert all(rows + stored == total for rows, _ in tails)
        result[name] = {
            "table_rows": stored,
            "tail_rows": tails[0][0],
            "first_row_s": statistics.median(firsts),
            "tail_rows_a_second": statistics.median(rows / seconds for rows, seconds in tails),
        }
    delete(cluster, [topic])
    save("union read", result)
