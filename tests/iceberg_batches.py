"""Batches of an Iceberg table with a quarantine, committed as a query commits them."""

from collections import Counter
from collections.abc import Collection, Iterable
from pathlib import Path

import pyarrow as pa

from spark_sink.formats.bad_values_quarantined import COLUMN
from spark_sink.formats.quarantine_addresses import quarantine_of
from spark_sink.lake.iceberg.stored_rows import open_stored
from spark_sink.lake.parquet_landing import normal_schema
from spark_sink.ranges.batch_offset import Offset, Range
from spark_sink.sink.query_tables import Tables
from spark_sink.sink.rows_by_table import Sorting
from spark_sink.sink.sink_options import SinkOptions
from tests.raw_rows import SCHEMA
from tests.table_kinds import ADDRESS, warehouse


class Writer:
    """One query, which keeps its handles from batch to batch.

    Args:
        root: folder of the warehouse.
        group: the consumer group.
        topic: the topic.
        more: options of the sink.
    """

    def __init__(self, root: Path, group: str = "g", topic: str = "t", more: dict[str, str] | None = None) -> None:
        given = {"path": ADDRESS, "kafka.group.id": group, "checkpointLocation": "c", **warehouse(root), **(more or {})}
        self.options, self.topic = SinkOptions.parse(given), topic
        self.tables = Tables(self.options)

    def write(self, begin: int, end: int, bad: Collection[int] = (), *, partition: int = 0) -> None:
        """Commit the offsets of one batch.

        Args:
            begin: the first offset.
            end: after the last one.
            bad: those that go to the quarantine.
            partition: of the topic.
        """
        error = {"error_class": "Bad", "error_text": "no number"}
        rows = [
            {"topic": self.topic, "partition": partition, "offset": one, "value": b"good"}
            | ({COLUMN: {**error, "value": b"%d" % one}} if one in bad else {})
            for one in range(begin, end)
        ]
        sorting = Sorting(self.options, normal_schema(SCHEMA), "run")
        sorting.write(pa.RecordBatch.from_pylist(rows, schema=SCHEMA))
        offset = Offset.of([Range(self.topic, partition, begin, end)])
        self.tables.commit(offset, sorting.close(), normal_schema(SCHEMA), 0)


def offsets(root: Path, address: str = ADDRESS, topic: str = "t") -> list[int]:
    """Return the offsets in a table, sorted; none without a table."""
    found = open_stored(address, warehouse(root))
    batches = found.rows(["topic", "offset"]) if found else ()
    return sorted(_of(batches, topic).elements())


def bad_offsets(root: Path, address: str = ADDRESS, topic: str = "t") -> list[int]:
    """Return the offsets in the quarantine of a table, sorted."""
    return offsets(root, quarantine_of(address), topic)


def _of(batches: Iterable[pa.RecordBatch], topic: str) -> Counter[int]:
    return Counter(row["offset"] for batch in batches for row in batch.to_pylist() if row["topic"] == topic)
