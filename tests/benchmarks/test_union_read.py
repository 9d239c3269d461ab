"""The union of a table and Kafka: seconds to the first row, and records a second of what the table lacks."""

import statistics
import time
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
from spark_sink.source.union_read.union_reader import open_union
from tests.benchmarks.lake_report import save
from tests.benchmarks.spark_topics import delete, flights, one_large_topic

pytestmark = pytest.mark.benchmark

PARTITIONS, TIMES, TAIL, ROUNDS = 6, 10, 100_000, 7


def _land(cluster: Cluster, topic: str, records: int, path: str) -> None:
    """Commit all records but the tail, in one batch."""
    each, left = (records - TAIL) // PARTITIONS, records // PARTITIONS
    ranges = [Range(topic, number, 0, min(each, left)) for number in range(PARTITIONS)]
    source = SourceOptions.parse(
        {"kafka.bootstrap.servers": cluster.bootstrap_servers, "kafka.group.id": "g", "subscribe": topic}
    )
    options = SinkOptions.parse({"path": path, "kafka.group.id": "g", "checkpointLocation": "c"})
    sorting = Sorting(options, arrow_schema(headers=False), "run")
    for batch in fetch(ranges, source.fetch, keep=False):
        sorting.write(batch)
    Tables(options).commit(Offset.of(ranges), sorting.close(), arrow_schema(headers=False), 0)


def _first_row_s(cluster: Cluster, path: str) -> float:
    began = time.perf_counter()
    next(open_union(path, cluster.bootstrap_servers).stored())
    return time.perf_counter() - began


def _tail(cluster: Cluster, path: str) -> tuple[int, float]:
    found = open_union(path, cluster.bootstrap_servers)
    began = time.perf_counter()
    rows = sum(batch.num_rows for batch in found.unread())
    return rows, time.perf_counter() - began


def test_the_first_row_and_the_tail(cluster: Cluster, tmp_path: Path) -> None:
    """A table of 3.3 million rows, and 100,000 records that it lacks; medians."""
    records = flights()
    topic, path = one_large_topic(cluster, records, TIMES, PARTITIONS), str(tmp_path / "table")
    total = len(records) * TIMES
    _land(cluster, topic, total, path)
    firsts = [_first_row_s(cluster, path) for _ in range(ROUNDS)]
    tails = [_tail(cluster, path) for _ in range(ROUNDS)]
    stored = sum(batch.num_rows for batch in open_union(path, cluster.bootstrap_servers).stored())
    assert all(rows + stored == total for rows, _ in tails)
    delete(cluster, [topic])
    result = {
        "table_rows": stored,
        "tail_rows": tails[0][0],
        "first_row_s": statistics.median(firsts),
        "tail_rows_a_second": statistics.median(rows / seconds for rows, seconds in tails),
    }
    save("union read", result)
