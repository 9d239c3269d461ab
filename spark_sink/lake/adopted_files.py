"""Describes a Parquet file that another writer made for the table: its rows, and the statistics of the log.

Reads the columns that identify a record, and the time: a hundredth of what writing all columns took.
"""

import time
from collections.abc import Sequence

import pyarrow as pa
import pyarrow.fs as pa_fs

from spark_sink.lake.file_statistics import BOUNDED, FileStatistics
from spark_sink.lake.foreign_parquet import open_parquet
from spark_sink.lake.parquet_landing import refuse_unidentified, storage_errors
from spark_sink.lake.row_offsets import merge_spans, spans_of
from spark_sink.lake.table_contract import DataFile, Span
from spark_sink.lake.table_storage import address_of
from spark_sink.ranges.batch_offset import TopicPartition

_ROWS = 1 << 17  # in memory at once


def describe_written(files: pa_fs.FileSystem, path: str, columns: Sequence[str]) -> DataFile:
    """Return the description of a closed file for a commit.

    Args:
        files: file system rooted at the table.
        path: of the file.
        columns: columns of the table's rows.

    Raises:
        TableError: a row has no topic, partition or offset, or the storage refused.
    """
    spans: dict[TopicPartition, Span] = {}
    statistics = FileStatistics()
    with storage_errors(address_of(files, path)):
        size = files.get_file_info(path).size
        with files.open_input_file(path) as stream:
            wanted = [name for name in BOUNDED if name in columns]
            for batch in open_parquet(stream).iter_batches(_ROWS, columns=wanted):
                rows = pa.Table.from_batches([batch])
                refuse_unidentified(rows)
                found = spans_of(rows)
                merge_spans(spans, found)
                statistics.add(rows, found)
    return DataFile(
        path=path,
        size_bytes=size,
        spans=spans,
        stats=statistics.json(list(columns)),
        written_ms=int(time.time() * 1000),
    )
