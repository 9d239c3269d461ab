"""An Iceberg table of the rows of one partition, and the changes and batches that continue it."""

from collections import Counter
from pathlib import Path

import pyarrow as pa

from spark_sink.lake.iceberg.iceberg_table import IcebergTable
from spark_sink.lake.table_contract import Change, DataFile
from spark_sink.lake.table_settings import TableSettings
from spark_sink.ranges.batch_offset import Offset, Range, TopicPartition
from spark_sink.sink.commit_by_compare_and_swap import Batch
from tests.table_kinds import ADDRESS, SCHEMA, iceberg_file, newest, peer, warehouse

A = TopicPartition("a", 0)


def table_of(root: Path, group: str = "g", settings: TableSettings | None = None) -> IcebergTable:
    """The table as a writer of this group sees it, which need not exist."""
    return IcebergTable(ADDRESS, group, warehouse(root), settings)


def made(root: Path, *, rows: int = 0) -> IcebergTable:
    """A new table with this many rows."""
    table = table_of(root)
    table.create(SCHEMA)
    newest(table)
    if rows:
        table.swap(newest(table), change_to(rows, iceberg_file(root, A, range(rows))))
    return table


def change_to(end: int, *files: DataFile) -> Change:
    """A commit of these files, after which the table continues at `end`."""
    return Change(files=files, positions={A: end}, beginnings={}, schema=SCHEMA)


def batch_of(root: Path, begin: int, end: int, schema: pa.Schema = SCHEMA) -> Batch:
    """A batch of the rows from `begin` to below `end`."""
    file = iceberg_file(root, A, range(begin, end))
    return Batch(offset=Offset.of([Range("a", 0, begin, end)]), files=[file], schema=schema)


def offset_counts(root: Path) -> Counter[int]:
    """How often each offset is in the table."""
    return Counter(peer(root).scan().to_arrow().column("offset").to_pylist())
