"""Copies a data file without the rows that the table has, for a batch of which a part was committed before."""

from collections.abc import Mapping
from dataclasses import replace

import pyarrow as pa
import pyarrow.fs as pa_fs

from spark_sink.lake.parquet_landing import Landing, Layout
from spark_sink.lake.row_offsets import above
from spark_sink.lake.table_contract import DataFile
from spark_sink.ranges.batch_offset import TopicPartition

_ONE_FILE = 1 << 62  # bytes


def trimmed_copy(
    files: pa_fs.FileSystem, rows: pa.Table, floors: Mapping[TopicPartition, int], layout: Layout
) -> DataFile | None:
    """Write one file with the rows at or above the floor of their partition; None if no row is left.

    Args:
        files: the table's folder.
        rows: of one data file, with topic, partition and offset.
        floors: the lowest offset to keep, by partition.
        layout: of the rows in the file.

    Raises:
        TableError: the storage refused.
    """
    left = rows.filter(above(rows, floors))
    if not left.num_rows:
        return None
    landing = Landing(files, left.schema, replace(layout, file_bytes=_ONE_FILE))
    for batch in left.to_batches():
        landing.write(batch)
    (copy,) = landing.close()
    return copy
